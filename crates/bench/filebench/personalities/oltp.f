# A database, to the parameters of Filebench's oltp: readers ("shadow") that each post to the writers and to
# the log; a writer makes 100 writes for 1000 reads, the log one for 3200.

set $dir=/tmp
set $eventrate=0
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=10m
set $nfiles=10
set $logfilesize=10m
set $nlogfiles=1
set $workingset=0
set $directio=false

eventgen rate=$eventrate

define fileset name=datafiles,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc,reuse
define fileset name=logfile,path=$dir,size=$logfilesize,entries=$nlogfiles,dirwidth=1024,prealloc,reuse

define process name=lgwr,instances=1 {
  thread name=lgwr,memsize=1m {
    flowop aiowrite name=lg-write,filesetname=logfile,iosize=256k,random,directio=$directio,dsync
    flowop aiowait name=lg-aiowait
    flowop semblock name=lg-block,value=3200,highwater=1000
  }
}

define process name=dbwr,instances=$ndbwriters {
  thread name=dbwr,memsize=1m {
    flowop aiowrite name=dbwrite-a,filesetname=datafiles,iosize=$iosize,workingset=$workingset,random,opennext,directio=$directio,dsync,iters=100
    flowop hog name=dbwr-hog,value=10000
    flowop semblock name=dbwr-block,value=1000,highwater=2000
    flowop aiowait name=dbwr-aiowait
  }
}

define process name=shadow,instances=$nshadows {
  thread name=shadow,memsize=1m {
    flowop read name=shadowread,filesetname=datafiles,iosize=$iosize,workingset=$workingset,random,opennext,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop sempost name=shadow-post-lg,target=lg-block,value=1,blocking
    flowop sempost name=shadow-post-dbwr,target=dbwr-block,value=1,blocking
    flowop eventlimit name=random-rate
  }
}

run 60
