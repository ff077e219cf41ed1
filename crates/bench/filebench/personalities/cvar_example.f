# A file is read in calls of a random size, a custom variable: Filebench's cvar_example.

set $dir=/tmp
set $filesize=100m
set $iosize=cvar(type=cvar-uniform,parameters=lower:4096;upper:8192)
set $nthreads=1

define file name=bigfile,path=$dir,size=$filesize,prealloc

define process name=reader,instances=1 {
  thread name=readerthread,memsize=10m,instances=$nthreads {
    flowop openfile name=openfile1,filename=bigfile,fd=1
    flowop read name=readfile1,fd=1,iosize=$iosize
    flowop closefile name=closefile1,fd=1
  }
}

run 60
