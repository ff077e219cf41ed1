# A network file server: a program is started, files are rewritten and appended to, at ten rounds a second:
# Filebench's netsfs.

set $dir=/tmp
set $eventrate=10
set $nfiles=100000
set $meandirwidth=20
set $nthreads=1
set $filesize=randvar(type=tabular,min=1k,round=1k,randtable={{33,1k,1k},{21,1k,3k},{13,3k,5k},{10,5k,11k},{8,11k,21k},
  {5,21k,43k},{4,43k,85k},{3,85k,171k},{2,171k,341k},{1,341k,1707k}})
set $wrtiosize=randvar(type=tabular,min=1k,round=1k,randtable={{0,1k,7k},{50,9k,15k},{14,17k,23k},{14,33k,39k},{12,65k,71k},{10,129k,135k}})
set $rdiosize=randvar(type=tabular,min=8k,round=1k,randtable={{85,8k,8k},{8,17k,23k},{4,33k,39k},{2,65k,71k},{1,129k,135k}})
set $fileidx=randvar(type=gamma,min=0,gamma=100)

eventgen rate=$eventrate

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=60

define process name=netclient,instances=1 {
  thread name=fileuser,memsize=10m,instances=$nthreads {
    flowop openfile name=openfile3,filesetname=bigfileset,indexed=$fileidx,fd=3
    flowop readwholefile name=readfile3,fd=3,iosize=$rdiosize
    flowop openfile name=openfile4,filesetname=bigfileset,indexed=$fileidx,fd=4
    flowop readwholefile name=readfile4,fd=4,iosize=$rdiosize
    flowop closefile name=closefile3,fd=3
    flowop openfile name=openfile5,filesetname=bigfileset,indexed=$fileidx,fd=5
    flowop readwholefile name=readfile5,fd=5,iosize=$rdiosize
    flowop closefile name=closefile4,fd=4
    flowop closefile name=closefile5,fd=5
    flowop openfile name=openfile1-1,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-1,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-1,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-1,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-1,fd=1
    flowop closefile name=closefile2-1,fd=2
    flowop deletefile name=deletefile1-1,fd=1
    flowop openfile name=openfile1-2,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-2,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-2,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-2,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-2,fd=1
    flowop closefile name=closefile2-2,fd=2
    flowop deletefile name=deletefile1-2,fd=1
    flowop openfile name=openfile1-3,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-3,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-3,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-3,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-3,fd=1
    flowop closefile name=closefile2-3,fd=2
    flowop deletefile name=deletefile1-3,fd=1
    flowop openfile name=openfile1-4,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-4,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-4,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-4,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-4,fd=1
    flowop closefile name=closefile2-4,fd=2
    flowop deletefile name=deletefile1-4,fd=1
    flowop openfile name=openfile1-5,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-5,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-5,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-5,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-5,fd=1
    flowop closefile name=closefile2-5,fd=2
    flowop deletefile name=deletefile1-5,fd=1
    flowop openfile name=openfile1-6,filesetname=bigfileset,indexed=$fileidx,fd=1
    flowop readwholefile name=readfile1-6,fd=1,iosize=$rdiosize
    flowop createfile name=newfile2-6,filesetname=bigfileset,indexed=$fileidx,fd=2
    flowop writewholefile name=writefile2-6,fd=2,srcfd=1,iosize=$wrtiosize
    flowop closefile name=closefile1-6,fd=1
    flowop closefile name=closefile2-6,fd=2
    flowop deletefile name=deletefile1-6,fd=1
    flowop openfile name=openfile6-1,filesetname=bigfileset,indexed=$fileidx,fd=6
    flowop appendfilerand name=appendfilerand6-1,fd=6,iosize=$wrtiosize
    flowop closefile name=closefile6-1,fd=6
    flowop openfile name=openfile6-2,filesetname=bigfileset,indexed=$fileidx,fd=6
    flowop appendfilerand name=appendfilerand6-2,fd=6,iosize=$wrtiosize
    flowop closefile name=closefile6-2,fd=6
    flowop openfile name=openfile6-3,filesetname=bigfileset,indexed=$fileidx,fd=6
    flowop appendfilerand name=appendfilerand6-3,fd=6,iosize=$wrtiosize
    flowop closefile name=closefile6-3,fd=6
    flowop statfile name=statfile1,filesetname=bigfileset,indexed=$fileidx
    flowop eventlimit name=ratecontrol
  }
}

run 60
