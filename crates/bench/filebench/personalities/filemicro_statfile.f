# Files are looked up: Filebench's filemicro_statfile.

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $filesize=128k
set $nthreads=20

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=filestat,instances=1 {
  thread name=filestatthread,memsize=10m,instances=$nthreads {
    flowop statfile name=stat-file,filesetname=bigfileset
  }
}
