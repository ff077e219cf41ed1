# Random writes of 8 KiB in a large file: Filebench's randomwrite.

set $dir=/tmp
set $filesize=5g
set $nthreads=1
set $iosize=8k
set $directio=false

define file name=largefile1,path=$dir,size=$filesize,prealloc,reuse

define process name=rand-write,instances=1 {
  thread name=randwrite,memsize=10m,instances=$nthreads {
    flowop write name=rand-write,filename=largefile1,random,iosize=$iosize,directio=$directio
  }
}
