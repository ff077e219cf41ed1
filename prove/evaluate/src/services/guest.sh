# shellcheck shell=bash
# Prepares a service on ext4 on a lagdisk, and runs it once, in a system of its own packages. MODULE: luc.ko's parameters,
# or empty; REACH: how luc run, which is in /root/luc, is to reach programs, or empty for none; SCRIPT: the service's;
# NAP_US: how much later it begins, so that one seed's runs meet the kernel's ticks elsewhere than another's.
modprobe ext4
modprobe loop
insmod lagdisk.ko size_mib=1536 flush_ns=6000000 write_ns=20000 read_ns=20000 || exit 2
# shellcheck disable=SC2086 # words
if [ -n "$MODULE" ]; then insmod luc.ko $MODULE || exit 2; fi
uuid=11111111-1111-1111-1111-111111111112
mkfs.ext4 -F -q -U $uuid -E nodiscard,lazy_itable_init=1,lazy_journal_init=1,hash_seed=$uuid -J size=256 /dev/lagdisk0 || exit 2
mkdir /system
# Files' times of access differ from image to image.
mount -o loop,noatime -t ext4 /root/system.img /system || exit 2
for folder in dev proc sys run tmp root; do
	mkdir -p "/system/$folder"
	mount -o rbind "/$folder" "/system/$folder" || exit 2
done
mkdir -p /system/mnt
mount -t ext4 -o noinit_itable /dev/lagdisk0 /system/mnt || exit 2
mkdir /system/mnt/service

service() {
	chroot /system env PATH=/usr/sbin:/usr/bin:/sbin:/bin bash "/root/$SCRIPT" /mnt/service "$1"
}
service prepare || exit
sync
usleep "$NAP_US"
if [ -n "$REACH" ]; then export SERVICE_LUC=/root/luc/luc SERVICE_REACH=$REACH; fi
service run || exit
if [ -n "$REACH" ]; then cp /system/mnt/service/luc-*.json "$OUT"; fi
cp /system/mnt/service/phase "$OUT/phase"
cat /proc/fs/jbd2/lagdisk0-8/info >"$OUT/journal"
cat /sys/block/lagdisk0/lagdisk/flushes >"$OUT/flushes"
if [ -n "$MODULE" ]; then cp /sys/kernel/luc/lagdisk0-8/stats/{holds,state} "$OUT"; fi
