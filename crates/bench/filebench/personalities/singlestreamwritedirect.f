# One thread writes a file that grows past the page cache: Filebench's singlestreamwritedirect.

set $dir=/tmp
set $nthreads=1
set $iosize=1m
set $directio=true

define file name=largefile1,path=$dir,size=1k,prealloc

define process name=seqwrite,instances=1 {
  thread name=seqwrite,memsize=10m,instances=$nthreads {
    flowop write name=seqwrite,filename=largefile1,iosize=$iosize,directio=$directio
  }
}
