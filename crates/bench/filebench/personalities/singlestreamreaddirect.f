# One thread reads a large file over and over past the page cache: Filebench's singlestreamreaddirect.

set $dir=/tmp
set $filesize=5g
set $nthreads=1
set $iosize=1m
set $directio=true

define file name=largefile1,path=$dir,size=$filesize,prealloc,reuse

define process name=seqread,instances=1 {
  thread name=seqread,memsize=10m,instances=$nthreads {
    flowop read name=seqread,filename=largefile1,iosize=$iosize,directio=$directio
  }
}
