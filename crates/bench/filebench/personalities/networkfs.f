# As netsfs, written with composite flowops: Filebench's networkfs.

set $dir=/tmp
set $eventrate=10
set $nfiles=10000
set $totalfiles=$nfiles * $eventrate
set $meandirwidth=20
set $nthreads=1
set $filesize=randvar(type=tabular,min=1k,round=1k,randtable={{33,1k,1k},{21,1k,3k},{13,3k,5k},{10,5k,11k},{8,11k,21k},
  {5,21k,43k},{4,43k,85k},{3,85k,171k},{2,171k,341k},{1,341k,1707k}})
set $wrtiosize=randvar(type=tabular,min=1k,round=1k,randtable={{0,1k,7k},{50,9k,15k},{14,17k,23k},{14,33k,39k},{12,65k,71k},{10,129k,135k}})
set $rdiosize=randvar(type=tabular,min=8k,round=1k,randtable={{85,8k,8k},{8,17k,23k},{4,33k,39k},{2,65k,71k},{1,129k,135k}})
set $fileidx=randvar(type=gamma,min=0,gamma=100)

eventgen rate=$eventrate

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$totalfiles,dirwidth=$meandirwidth,prealloc=60,cached=false

define flowop name=rmw, $files {
  flowop openfile name=openfile1,filesetname=$files,indexed=$fileidx,fd=1
  flowop readwholefile name=readfile1,fd=1,iosize=$rdiosize
  flowop createfile name=newfile2,filesetname=$files,indexed=$fileidx,fd=2
  flowop writewholefile name=writefile2,fd=2,srcfd=1,iosize=$wrtiosize
  flowop closefile name=closefile1,fd=1
  flowop closefile name=closefile2,fd=2
  flowop deletefile name=deletefile1,fd=1
}

define flowop name=launch, $files {
  flowop openfile name=openfile3,filesetname=$files,indexed=$fileidx,fd=3
  flowop readwholefile name=readfile3,fd=3,iosize=$rdiosize
  flowop openfile name=openfile4,filesetname=$files,indexed=$fileidx,fd=4
  flowop readwholefile name=readfile4,fd=4,iosize=$rdiosize
  flowop closefile name=closefile3,fd=3
  flowop openfile name=openfile5,filesetname=$files,indexed=$fileidx,fd=5
  flowop readwholefile name=readfile5,fd=5,iosize=$rdiosize
  flowop closefile name=closefile4,fd=4
  flowop closefile name=closefile5,fd=5
}

define flowop name=appnd, $files {
  flowop openfile name=openfile6,filesetname=$files,indexed=$fileidx,fd=6
  flowop appendfilerand name=appendfilerand6,fd=6,iosize=$wrtiosize
  flowop closefile name=closefile6,fd=6
}

define process name=netclient,instances=1 {
  thread name=fileuser,memsize=10m,instances=$nthreads {
    flowop launch name=launch1, $files=bigfileset
    flowop rmw name=rmw1, iters=6, $files=bigfileset
    flowop appnd name=appnd1, iters=3, $files=bigfileset
    flowop statfile name=statfile1,filesetname=bigfileset,indexed=$fileidx
    flowop eventlimit name=ratecontrol
  }
}
