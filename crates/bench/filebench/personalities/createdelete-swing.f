# One process makes files, another deletes them, by turns, to the parameters of Filebench's createdelete-swing.

set $path=/tmp
set $nfiles=1000
set $filesize=500k
set $meandirwidth=$nfiles

eventgen rate=0

define fileset name=manyfiles,path=$path,entries=$nfiles,size=$filesize,dirwidth=$meandirwidth,dirgamma=0

define flowop name=createandclose {
  flowop createfile name=createfile,filesetname=manyfiles,fd=1
  flowop writewholefile name=writewholefile,filesetname=manyfiles,fd=1
  flowop closefile name=closefile,fd=1
  flowop eventlimit name=crlimit
}

define process name=crproc {
  thread name=crthread {
    flowop createandclose name=createandclose,iters=$nfiles
    flowop wakeup name=wakedelproc,target=delprocblock
    flowop block name=crprocblock
  }
}

define process name=delproc {
  thread name=delthread {
    flowop block name=delprocblock
    flowop deletefile name=dodelete,filesetname=manyfiles,iters=$nfiles
    flowop wakeup name=wakecrproc,target=crprocblock
  }
}

run 60
