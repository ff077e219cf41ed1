# Five threads read a file each from its beginning past the page cache: Filebench's fivestreamreaddirect.

set $dir=/tmp
set $filesize=1g
set $nthreads=1
set $iosize=1m
set $directio=true

define file name=largefile1,path=$dir,size=$filesize,prealloc,reuse
define file name=largefile2,path=$dir,size=$filesize,prealloc,reuse
define file name=largefile3,path=$dir,size=$filesize,prealloc,reuse
define file name=largefile4,path=$dir,size=$filesize,prealloc,reuse
define file name=largefile5,path=$dir,size=$filesize,prealloc,reuse

define process name=seqread,instances=1 {
  thread name=seqread1,memsize=10m,instances=$nthreads {
    flowop read name=seqread1,filename=largefile1,iosize=$iosize,directio=$directio
  }
  thread name=seqread2,memsize=10m,instances=$nthreads {
    flowop read name=seqread2,filename=largefile2,iosize=$iosize,directio=$directio
  }
  thread name=seqread3,memsize=10m,instances=$nthreads {
    flowop read name=seqread3,filename=largefile3,iosize=$iosize,directio=$directio
  }
  thread name=seqread4,memsize=10m,instances=$nthreads {
    flowop read name=seqread4,filename=largefile4,iosize=$iosize,directio=$directio
  }
  thread name=seqread5,memsize=10m,instances=$nthreads {
    flowop read name=seqread5,filename=largefile5,iosize=$iosize,directio=$directio
  }
}
