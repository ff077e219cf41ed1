# Files are deleted: Filebench's filemicro_delete.

set $dir=/tmp
set $nfiles=5000
set $meandirwidth=100
set $filesize=16k
set $count=1000
set $nthreads=16

set mode quit firstdone

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=filedelete,instances=1 {
  thread name=filedeletethread,memsize=10m,instances=$nthreads {
    flowop deletefile name=delete-file,filesetname=bigfileset
    flowop opslimit name=limit
    flowop finishoncount name=finish,value=$count
  }
}
