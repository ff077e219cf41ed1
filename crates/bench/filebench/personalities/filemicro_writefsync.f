# 1024 appends of 8 KiB, then an fsync, 128 times: Filebench's filemicro_writefsync.

set $dir=/tmp
set $iosize=8k
set $writes=1024
set $syncs=128
set $nthreads=1

set mode quit firstdone

define file name=bigfile,path=$dir,size=0,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop appendfile name=append-file,filename=bigfile,iosize=$iosize,iters=$writes
    flowop fsync name=sync-file,filename=bigfile
    flowop finishoncount name=finish,target=sync-file,value=$syncs
  }
}

run
