# Files of one set are appended to and read, those of another deleted, to the parameters of Filebench's mongo;
# the run ends when none is left to delete.

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $filesize=16k
set $nthreads=1
set $iosize=1m
set $meanappendsize=16k

set mode quit firstdone

define fileset name=postset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc
define fileset name=postsetdel,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=filereader,instances=1 {
  thread name=filereaderthread,memsize=10m,instances=$nthreads {
    flowop openfile name=openfile1,filesetname=postset,fd=1
    flowop appendfilerand name=appendfilerand1,iosize=$meanappendsize,fd=1
    flowop closefile name=closefile1,fd=1
    flowop openfile name=openfile2,filesetname=postset,fd=1
    flowop readwholefile name=readfile1,fd=1,iosize=$iosize
    flowop closefile name=closefile2,fd=1
    flowop deletefile name=deletefile1,filesetname=postsetdel
  }
}
