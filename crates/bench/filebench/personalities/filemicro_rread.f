# Reads of 2 KiB at random places of a file: Filebench's filemicro_rread.

set $dir=/tmp
set $filesize=1g
set $iosize=2k
set $bytes=128m
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc,reuse,cached=false

define process name=filereader,instances=1 {
  thread name=filereaderthread,memsize=10m,instances=$nthreads {
    flowop read name=read-file,filename=bigfile,random,iosize=$iosize
    flowop finishonbytes name=finish,value=$bytes
  }
}
