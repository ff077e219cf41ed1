# A file grows by 128 Ki appends of random sizes up to 8 KiB: Filebench's filemicro_seqwriterand.

set $dir=/tmp
set $iosize=8k
set $writes=128k
set $nthreads=1

define file name=bigfile,path=$dir,size=0,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop openfile name=open-file,filename=bigfile,fd=1
    flowop appendfilerand name=write-file,fd=1,iosize=$iosize,iters=$writes
    flowop closefile name=close-file,fd=1
    flowop finishoncount name=finish,value=1
  }
}
