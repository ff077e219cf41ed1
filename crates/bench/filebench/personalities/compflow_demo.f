# Three groups of threads on a fileset each, written with composite flowops, to the parameters of Filebench's
# compflow_demo.

set $dir=/tmp
set $nfiles=700
set $meandirwidth=20
set $filesize=128k
set $nthreads=10
set $meanappendsize=16k

define fileset name=fileset1,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80
define fileset name=fileset2,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80
define fileset name=fileset3,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define flowop name=readwrite, $files {
  flowop openfile name=openfile4,filesetname=$files,fd=1
  flowop openfile name=openfile5,filesetname=$files,fd=2
  flowop readwholefile name=readfile1,fd=1
  flowop writewholefile name=writefile1,fd=2,srcfd=1
  flowop closefile name=closefile4,fd=1
  flowop closefile name=closefile5,fd=2
}

define flowop name=dowork, $work, $times {
  flowop createfile name=createfile1,filesetname=$work,fd=1
  flowop appendfilerand name=appendfilerand1,iosize=$meanappendsize,fd=1
  flowop closefile name=closefile1,fd=1
  flowop readwrite name=rw1, iters=$times, $files=$work
  flowop deletefile name=deletefile1,filesetname=$work
  flowop statfile name=statfile1,filesetname=$work
}

define process name=filereader,instances=1 {
  thread name=user1,memsize=10m,instances=$nthreads {
    flowop dowork name=dowork1, $times=5, $work=fileset1
  }
  thread name=user2,memsize=10m,instances=$nthreads {
    flowop dowork name=dowork2, $times=4, $work=fileset2
  }
  thread name=user3,memsize=10m,instances=$nthreads {
    flowop dowork name=dowork3, $times=3, $work=fileset3
  }
}
