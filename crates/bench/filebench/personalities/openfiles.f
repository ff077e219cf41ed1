# Empty files are opened and closed, to the parameters of Filebench's openfiles.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $nthreads=16

define fileset name=bigfileset,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=fileopen,instances=1 {
  thread name=fileopener,memsize=1m,instances=$nthreads {
    flowop openfile name=openfile1,filesetname=bigfileset,fd=1
    flowop closefile name=closefile1,fd=1
  }
}
