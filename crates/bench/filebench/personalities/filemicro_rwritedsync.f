# Synchronous writes of 2 KiB at random places of a file: Filebench's filemicro_rwritedsync.

set $dir=/tmp
set $filesize=1g
set $iosize=2k
set $count=65536
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc,reuse

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop write name=write-file,filename=bigfile,random,dsync,iosize=$iosize
    flowop finishoncount name=finish,value=$count
  }
}
