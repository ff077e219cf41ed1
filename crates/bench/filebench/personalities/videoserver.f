# Streams of video files at a fixed rate while others are replaced, to the parameters of Filebench's videoserver.
# As it is, it needs more than 1 TB; --set filesize=... makes it smaller.

set $dir=/tmp
set $eventrate=96
set $filesize=10g
set $nthreads=48
set $numactivevids=32
set $numpassivevids=194
set $readiosize=256k
set $writeiosize=1m
set $repintval=10

eventgen rate=$eventrate

define fileset name=activevids,path=$dir,size=$filesize,entries=$numactivevids,dirwidth=4,prealloc
define fileset name=passivevids,path=$dir,size=$filesize,entries=$numpassivevids,dirwidth=20,prealloc=50

define process name=vidwriter,instances=1 {
  thread name=vidwriter,memsize=10m,instances=1 {
    flowop deletefile name=vidremover,filesetname=passivevids
    flowop createfile name=wrtopen,filesetname=passivevids,fd=1
    flowop writewholefile name=newvid,iosize=$writeiosize,fd=1,srcfd=1
    flowop closefile name=wrtclose,fd=1
    flowop delay name=replaceinterval,value=$repintval
  }
}

define process name=vidreaders,instances=1 {
  thread name=vidreaders,memsize=10m,instances=$nthreads {
    flowop read name=vidreader,filesetname=activevids,iosize=$readiosize
    flowop bwlimit name=serverlimit,target=vidreader
  }
}
