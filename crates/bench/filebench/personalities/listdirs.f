# Directories of about five files are listed, to the parameters of Filebench's listdirs.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=5
set $nthreads=16

define fileset name=bigfileset,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=lsdir,instances=1 {
  thread name=dirlister,memsize=1m,instances=$nthreads {
    flowop listdir name=listdir1,filesetname=bigfileset
  }
}
