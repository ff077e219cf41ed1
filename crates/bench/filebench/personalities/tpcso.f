# A database of thirty files under TPC-C, to the parameters of Filebench's tpcso: as oltp, but each thread goes
# through all files. As it is, it needs 150 GB; --set unit=64k makes every file a sixteenth as large.

set $dir=/tmp
set $eventrate=0
set $iosize=2k
set $logiosize=256k
set $nshadows=200
set $ndbwriters=10
set $usermode=20000
set $directio=true
set $unit=1m
set $mb_aux_df=251 * $unit
set $mb_control_001=2 * $unit
set $mb_cust_0_0=6704 * $unit
set $mb_cust_0_1=6704 * $unit
set $mb_cust_0_2=6704 * $unit
set $mb_cust_0_3=6704 * $unit
set $mb_dist_0_0=31 * $unit
set $mb_hist_0_0=3002 * $unit
set $mb_icust1_0_0=4943 * $unit
set $mb_icust2_0_0=4943 * $unit
set $mb_idist_0_0=11 * $unit
set $mb_iitem_0_0=11 * $unit
set $mb_iordr2_0_0=1651 * $unit
set $mb_istok_0_0=2262 * $unit
set $mb_item_0_0=21 * $unit
set $mb_iware_0_0=11 * $unit
set $mb_nord_0_0=561 * $unit
set $mb_ordr_0_0=44301 * $unit
set $mb_roll1=2001 * $unit
set $mb_sp_0=1001 * $unit
set $mb_stok_0_0=8052 * $unit
set $mb_stok_0_1=8052 * $unit
set $mb_stok_0_2=8052 * $unit
set $mb_stok_0_3=8052 * $unit
set $mb_stok_0_4=8052 * $unit
set $mb_system_1=401 * $unit
set $mb_temp_0_0=4943 * $unit
set $mb_temp_0_1=4943 * $unit
set $mb_ware_0_0=11 * $unit
set $mb_log_1_1=1021 * $unit

eventgen rate=$eventrate

define file name=aux.df,path=$dir,size=$mb_aux_df,prealloc,reuse
define file name=control_001,path=$dir,size=$mb_control_001,prealloc,reuse
define file name=cust_0_0,path=$dir,size=$mb_cust_0_0,prealloc,reuse
define file name=cust_0_1,path=$dir,size=$mb_cust_0_1,prealloc,reuse
define file name=cust_0_2,path=$dir,size=$mb_cust_0_2,prealloc,reuse
define file name=cust_0_3,path=$dir,size=$mb_cust_0_3,prealloc,reuse
define file name=dist_0_0,path=$dir,size=$mb_dist_0_0,prealloc,reuse
define file name=hist_0_0,path=$dir,size=$mb_hist_0_0,prealloc,reuse
define file name=icust1_0_0,path=$dir,size=$mb_icust1_0_0,prealloc,reuse
define file name=icust2_0_0,path=$dir,size=$mb_icust2_0_0,prealloc,reuse
define file name=idist_0_0,path=$dir,size=$mb_idist_0_0,prealloc,reuse
define file name=iitem_0_0,path=$dir,size=$mb_iitem_0_0,prealloc,reuse
define file name=iordr2_0_0,path=$dir,size=$mb_iordr2_0_0,prealloc,reuse
define file name=istok_0_0,path=$dir,size=$mb_istok_0_0,prealloc,reuse
define file name=item_0_0,path=$dir,size=$mb_item_0_0,prealloc,reuse
define file name=iware_0_0,path=$dir,size=$mb_iware_0_0,prealloc,reuse
define file name=nord_0_0,path=$dir,size=$mb_nord_0_0,prealloc,reuse
define file name=ordr_0_0,path=$dir,size=$mb_ordr_0_0,prealloc,reuse
define file name=roll1,path=$dir,size=$mb_roll1,prealloc,reuse
define file name=sp_0,path=$dir,size=$mb_sp_0,prealloc,reuse
define file name=stok_0_0,path=$dir,size=$mb_stok_0_0,prealloc,reuse
define file name=stok_0_1,path=$dir,size=$mb_stok_0_1,prealloc,reuse
define file name=stok_0_2,path=$dir,size=$mb_stok_0_2,prealloc,reuse
define file name=stok_0_3,path=$dir,size=$mb_stok_0_3,prealloc,reuse
define file name=stok_0_4,path=$dir,size=$mb_stok_0_4,prealloc,reuse
define file name=system_1,path=$dir,size=$mb_system_1,prealloc,reuse
define file name=temp_0_0,path=$dir,size=$mb_temp_0_0,prealloc,reuse
define file name=temp_0_1,path=$dir,size=$mb_temp_0_1,prealloc,reuse
define file name=ware_0_0,path=$dir,size=$mb_ware_0_0,prealloc,reuse
define file name=log_1_1,path=$dir,size=$mb_log_1_1,prealloc,reuse

define process name=dbwr,instances=$ndbwriters {
  thread name=dbwr,memsize=1m {
    flowop aiowrite name=dbaiowrite-aux.df,filename=aux.df,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-control_001,filename=control_001,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-cust_0_0,filename=cust_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-cust_0_1,filename=cust_0_1,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-cust_0_2,filename=cust_0_2,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-cust_0_3,filename=cust_0_3,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-dist_0_0,filename=dist_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-hist_0_0,filename=hist_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-icust1_0_0,filename=icust1_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-icust2_0_0,filename=icust2_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-idist_0_0,filename=idist_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-iitem_0_0,filename=iitem_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-iordr2_0_0,filename=iordr2_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-istok_0_0,filename=istok_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-item_0_0,filename=item_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-iware_0_0,filename=iware_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-nord_0_0,filename=nord_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-ordr_0_0,filename=ordr_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-roll1,filename=roll1,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-sp_0,filename=sp_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-stok_0_0,filename=stok_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-stok_0_1,filename=stok_0_1,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-stok_0_2,filename=stok_0_2,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-stok_0_3,filename=stok_0_3,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-stok_0_4,filename=stok_0_4,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-system_1,filename=system_1,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-temp_0_0,filename=temp_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-temp_0_1,filename=temp_0_1,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop aiowrite name=dbaiowrite-ware_0_0,filename=ware_0_0,iosize=$iosize,random,dsync,directio=$directio,iters=10
    flowop hog name=dbwr-hog,value=10000
    flowop semblock name=dbwr-block,value=100,highwater=10000
    flowop aiowait name=dbwr-aiowait
  }
}

define process name=lgwr,instances=1 {
  thread name=lgwr,memsize=1m {
    flowop write name=lg-write,filename=log_1_1,iosize=$logiosize,random,dsync,directio=$directio
    flowop semblock name=lg-block,value=320,highwater=1000
  }
}

define process name=shadow,instances=$nshadows {
  thread name=shadow,memsize=1m {
    flowop read name=shadowread-aux.df,filename=aux.df,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-control_001,filename=control_001,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-cust_0_0,filename=cust_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-cust_0_1,filename=cust_0_1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-cust_0_2,filename=cust_0_2,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-cust_0_3,filename=cust_0_3,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-dist_0_0,filename=dist_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-hist_0_0,filename=hist_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-icust1_0_0,filename=icust1_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-icust2_0_0,filename=icust2_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-idist_0_0,filename=idist_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-iitem_0_0,filename=iitem_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-iordr2_0_0,filename=iordr2_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-istok_0_0,filename=istok_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-item_0_0,filename=item_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-iware_0_0,filename=iware_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-nord_0_0,filename=nord_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-ordr_0_0,filename=ordr_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-roll1,filename=roll1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-sp_0,filename=sp_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-stok_0_0,filename=stok_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-stok_0_1,filename=stok_0_1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-stok_0_2,filename=stok_0_2,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-stok_0_3,filename=stok_0_3,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-stok_0_4,filename=stok_0_4,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-system_1,filename=system_1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-temp_0_0,filename=temp_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-temp_0_1,filename=temp_0_1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-ware_0_0,filename=ware_0_0,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop read name=shadowread-log_1_1,filename=log_1_1,iosize=$iosize,random,dsync,directio=$directio
    flowop hog name=shadowhog,value=$usermode
    flowop sempost name=shadow-post-lg,target=lg-block,value=1,blocking
    flowop sempost name=shadow-post-dbwr,target=dbwr-block,value=1,blocking
    flowop eventlimit name=random-rate
  }
}
