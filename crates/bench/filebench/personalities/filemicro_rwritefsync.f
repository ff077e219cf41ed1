# 16384 writes of 8 KiB at random places of a file, then an fsync: Filebench's filemicro_rwritefsync.

set $dir=/tmp
set $filesize=1g
set $iosize=8k
set $writes=16384
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop write name=write-file,filename=bigfile,random,iosize=$iosize,iters=$writes
    flowop fsync name=sync-file,filename=bigfile
    flowop finishoncount name=finish,value=1
  }
}
