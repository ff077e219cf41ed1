# As copyfiles, at ten copies a second: Filebench's ratelimcopyfiles.

set $dir=/tmp
set $eventrate=10
set $nfiles=1000
set $meandirwidth=20
set $filesize=16k
set $iosize=1m
set $nthreads=1

set mode quit firstdone
eventgen rate=$eventrate

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc
define fileset name=destfiles,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth

define process name=filereader,instances=1 {
  thread name=filereaderthread,memsize=10m,instances=$nthreads {
    flowop openfile name=openfile1,filesetname=bigfileset,fd=1
    flowop readwholefile name=readfile1,fd=1,iosize=$iosize
    flowop createfile name=createfile2,filesetname=destfiles,fd=2
    flowop writewholefile name=writefile2,fd=2,srcfd=1,iosize=$iosize
    flowop closefile name=closefile1,fd=1
    flowop closefile name=closefile2,fd=2
    flowop iopslimit name=limit,target=writefile2
  }
}
