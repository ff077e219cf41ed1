set $dir=/tmp
define fileset name=set1,path=$dir,size=1k,entries=1,dirwidth=1,prealloc
define fileset name=set2,path=$dir,size=1k,entries=1,dirwidth=1,prealloc
define process name=p {
thread name=t1,instances=1 {
  flowop openfile name=open1,filesetname=set1,fd=1
  flowop statfile name=op,fd=1,iters=1000000000
}
thread name=t2,instances=1 {
  flowop openfile name=open2,filesetname=set2,fd=1
  flowop statfile name=op,fd=1,iters=1000000000
}
}
