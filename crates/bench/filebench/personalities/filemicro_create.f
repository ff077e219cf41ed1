# A file grows to 1 GiB by appends of 1 MiB: Filebench's filemicro_create.

set $dir=/tmp
set $iosize=1m
set $count=1024
set $nthreads=1

define file name=bigfile,path=$dir,size=0,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop appendfile name=write-file,filename=bigfile,iosize=$iosize
    flowop finishoncount name=finish,value=$count
  }
}
