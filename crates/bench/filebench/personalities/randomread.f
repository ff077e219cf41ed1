# Random reads of 8 KiB in a large file: Filebench's randomread.

set $dir=/tmp
set $filesize=5g
set $nthreads=1
set $iosize=8k
set $directio=false

define file name=largefile1,path=$dir,size=$filesize,prealloc,reuse

define process name=rand-read,instances=1 {
  thread name=randread,memsize=10m,instances=$nthreads {
    flowop read name=rand-read,filename=largefile1,random,iosize=$iosize,directio=$directio
  }
}
