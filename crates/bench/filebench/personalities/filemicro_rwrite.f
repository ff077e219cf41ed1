# Writes of 2 KiB at random places of a file: Filebench's filemicro_rwrite.

set $dir=/tmp
set $filesize=1g
set $iosize=2k
set $bytes=128m
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc,reuse

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop write name=write-file,filename=bigfile,random,iosize=$iosize
    flowop finishonbytes name=finish,value=$bytes
  }
}
