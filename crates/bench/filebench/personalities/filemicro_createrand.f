# A file grows to 1 GiB by appends of random sizes up to 1 MiB, an fsync after each ten: Filebench's filemicro_createrand.

set $dir=/tmp
set $iosize=1m
set $count=10
set $bytes=1g
set $nthreads=1

define file name=bigfile,path=$dir,size=0,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop appendfilerand name=write-file,filename=bigfile,iosize=$iosize,iters=$count
    flowop fsync name=sync-file,filename=bigfile
    flowop finishonbytes name=finish,value=$bytes
  }
}
