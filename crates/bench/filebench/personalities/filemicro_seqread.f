# A file is read from its beginning to its end, over and over: Filebench's filemicro_seqread.

set $dir=/tmp
set $filesize=1g
set $iosize=1m
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc,reuse,cached=false

define process name=filereader,instances=1 {
  thread name=filereaderthread,memsize=10m,instances=$nthreads {
    flowop read name=read-file,filename=bigfile,iosize=$iosize
  }
}
