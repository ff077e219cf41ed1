# Small files are made in one directory: Filebench's filemicro_createfiles.

set $dir=/tmp
set $nfiles=20000
set $meandirwidth=100000
set $filesize=1k
set $iosize=1m
set $count=15000
set $nthreads=1

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=50

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop createfile name=create-file,filesetname=bigfileset,fd=1
    flowop writewholefile name=write-file,fd=1,iosize=$iosize
    flowop closefile name=close-file,fd=1
    flowop finishoncount name=finish,value=$count
  }
}
