# A file grows by 128 Ki appends whose sizes are a gamma variable: Filebench's filemicro_seqwriterandvargam.

set $dir=/tmp
set $iosize=randvar(type=gamma,min=1k,mean=5632,gamma=1500)
set $writes=128k
set $nthreads=1

define fileset name=bigfileset,path=$dir,size=0,entries=1,dirwidth=1024,prealloc

define process name=filewriter,instances=1 {
  thread name=filewriterthread,memsize=10m,instances=$nthreads {
    flowop openfile name=open-file,filesetname=bigfileset,fd=1
    flowop appendfile name=write-file,fd=1,iosize=$iosize,iters=$writes
    flowop closefile name=close-file,fd=1
    flowop finishoncount name=finish,value=1
  }
}
