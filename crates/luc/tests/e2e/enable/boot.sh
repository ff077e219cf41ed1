#!/bin/sh
# Becomes systemd as process 1 of a machine of its own: this system's files below an overlay in memory, with own mounts,
# processes, cgroups and network. To be run in new namespaces of all of these. What it changes goes with it.
#
# usage: boot.sh WORK LUC_DIR DATA    WORK is an empty folder, LUC_DIR has what is built, DATA has a folder for each
#                                     service's state, which is bound to /var/lib. The first line that it says is the
#                                     number of process 1 outside
set -e
# Its number outside: this /proc is not yet the one of the new processes.
read -r number _ </proc/self/stat
echo "$number"
work=$1 built=$2 data=$3
units=$(realpath "$(dirname "$0")/../../../../../packaging")
PATH=$PATH:/usr/sbin:/sbin
mount --make-rprivate /
mount -t tmpfs -o mode=755 luc-machine "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" luc-machine "$work/root"
cd "$work/root"

# Nothing of what this system starts, and no doubt about which packages it has.
rm -rf etc/systemd/system etc/fstab
mkdir etc/systemd/system
printf '%s\n' 0123456789abcdef0123456789abcdef >etc/machine-id
for unit in systemd-udevd.service systemd-hwdb-update.service systemd-journal-flush.service \
	systemd-networkd.service systemd-resolved.service systemd-timesyncd.service systemd-logind.service \
	systemd-binfmt.service systemd-update-utmp.service getty.target dev-hugepages.mount dev-mqueue.mount; do
	ln -s /dev/null "etc/systemd/system/$unit"
done
install -D -m 755 "$built/luc" usr/bin/luc
for file in luc-exec lucd libluc_gate_preload.so; do
	install -D -m 755 "$built/$file" "usr/lib/luc/$file"
done
sed 's|@LIB@|/usr/lib/luc|' "$units/lucd.service" >usr/lib/systemd/system/lucd.service
install -m 644 "$units/lucd.socket" usr/lib/systemd/system/lucd.socket

mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
mkdir dev/shm dev/pts
for device in null zero full random urandom tty; do
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
for folder in "$data"/*; do
	state=var/lib/${folder##*/}
	mkdir -p "$state"
	mount --bind "$folder" "$state"
done
mkdir -p mnt
pivot_root . mnt
umount -l /mnt
exec env -i container=luc-test PATH="$PATH" LC_ALL=C.UTF-8 setpriv \
	--bounding-set=-sys_module,-sys_time,-sys_rawio,-sys_boot \
	/lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no </dev/null >/dev/null 2>&1
