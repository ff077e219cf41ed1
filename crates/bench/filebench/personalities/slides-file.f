# A file server, with the parameters of "Evaluating Performance and Energy in File
# System Server Workloads" (Sehgal, Tarasov, Zadok, FAST 2010): 50,000 files of 256 KB on average,
# directories 3.6 deep, 1 MB reads and writes of whole files and 16 KB appends, 100 threads, two writes to a read.
# The loop is that of fileserver.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=20
set $filesize=cvar(type=cvar-gamma,parameters=mean:262144;gamma:1.5)
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=filereader,instances=1 {
  thread name=filereaderthread,memsize=10m,instances=$nthreads {
    flowop createfile name=createfile1,filesetname=bigfileset,fd=1
    flowop writewholefile name=wrtfile1,srcfd=1,fd=1,iosize=$iosize
    flowop closefile name=closefile1,fd=1
    flowop openfile name=openfile1,filesetname=bigfileset,fd=1
    flowop appendfilerand name=appendfilerand1,iosize=$meanappendsize,fd=1
    flowop closefile name=closefile2,fd=1
    flowop openfile name=openfile2,filesetname=bigfileset,fd=1
    flowop readwholefile name=readfile1,fd=1,iosize=$iosize
    flowop closefile name=closefile3,fd=1
    flowop deletefile name=deletefile1,filesetname=bigfileset
    flowop statfile name=statfile1,filesetname=bigfileset
  }
}

run 60
