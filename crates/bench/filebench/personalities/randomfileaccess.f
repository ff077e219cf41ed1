# Files by their index, mostly the first ones, are appended to and read: Filebench's randomfileaccess.

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $nthreads=5
set $filesize=randvar(type=tabular,min=1k,round=1k,randtable={{33,1k,1k},{21,1k,3k},{13,3k,5k},{10,5k,11k},{8,11k,21k},
  {5,21k,43k},{4,43k,85k},{3,85k,171k},{2,171k,341k},{1,341k,1707k}})
set $wrtiosize=randvar(type=gamma,min=512,round=512,mean=16k)
set $rdiosize=randvar(type=tabular,min=8k,round=1k,randtable={{85,8k,8k},{15,8k,64k}})
set $fileidx=randvar(type=gamma,min=0,gamma=100)

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc,cached=false

define process name=netclient,instances=1 {
  thread name=fileuser,memsize=10m,instances=$nthreads {
    flowop openfile name=openfile1,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop openfile name=openfile2,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop openfile name=openfile3,filesetname=bigfileset,indexed=$fileidx,fd=3
    flowop appendfilerand name=appendfilerand1,iosize=$wrtiosize,fd=1
    flowop closefile name=closefile1,fd=1
    flowop readwholefile name=readfile1,iosize=$rdiosize,fd=2
    flowop readwholefile name=readfile2,iosize=$rdiosize,fd=3
    flowop closefile name=closefile2,fd=2
    flowop closefile name=closefile3,fd=3
  }
}
