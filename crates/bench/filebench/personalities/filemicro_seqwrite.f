# A file grows to 1 GiB by appends of 1 MiB: Filebench's filemicro_seqwrite.

set $dir=/tmp
set $iosize=1m
set $writes=1024
set $nthreads=1

define file name=bigfile,path=$dir,size=0,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop appendfile name=write-file,filename=bigfile,iosize=$iosize,iters=$writes
    flowop finishoncount name=finish,value=1
  }
}
