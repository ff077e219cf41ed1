# shellcheck shell=bash
# Runs the cells of one group, each on a disk, a file system and a module of its own. The calls of
# `cell` follow below; what a cell gives is left in $OUT: N.json, N.stats, N.disk.
modprobe ext4
modprobe jbd2
number=0
uuid=11111111-1111-1111-1111-111111111112

fail() {
	echo "$1"
	dmesg | tail -5
	exit 1
}

make_fs() {
	ext4="mke2fs -q -t ext4 -b 4096 -U $uuid -J size=64
		-E nodiscard,lazy_itable_init=0,lazy_journal_init=1,hash_seed=$uuid"
	case $1 in
	Ext4FastCommit) $ext4 -O fast_commit /dev/lagdisk0 ;;
	Xfs) mkfs.xfs -q -f -m uuid=$uuid /dev/lagdisk0 ;;
	*) $ext4 /dev/lagdisk0 ;;
	esac
}

mount_fs() {
	case $1 in
	Xfs) modprobe xfs && mount -t xfs /dev/lagdisk0 /mnt ;;
	Ext4Writeback) mount -t ext4 -o data=writeback /dev/lagdisk0 /mnt ;;
	*) mount -t ext4 /dev/lagdisk0 /mnt ;;
	esac
}

# A line with name and content of each file; one process for all, which is cheap in a guest.
values() {
	(cd "$1" && grep -sH '' ./* | sed 's,^\./,,; s,:, ,')
}

# cell FILE_SYSTEM "SETTINGS of the module, or nothing" "DISK's latencies" BENCHMARK...
cell() {
	local fs=$1 settings=$2 latencies=$3
	shift 3
	number=$((number + 1))
	sync
	echo 3 >/proc/sys/vm/drop_caches
	# shellcheck disable=SC2086
	insmod /root/lagdisk.ko size_mib=400 $latencies || fail "cell $number: no disk"
	make_fs "$fs" || fail "cell $number: no file system"
	if [ -n "$settings" ]; then insmod /root/luc.ko || fail "cell $number: no module"; fi
	mount_fs "$fs" || fail "cell $number: not mounted"
	for setting in $settings; do
		echo "${setting#*=}" >"/sys/kernel/luc/lagdisk0-8/${setting%%=*}" ||
			fail "cell $number: $setting"
	done
	luc bench "$@" --dir /mnt --json >"$OUT/$number.json" || fail "cell $number: luc bench $*"
	if [ -n "$settings" ]; then
		values /sys/kernel/luc/lagdisk0-8/stats >"$OUT/$number.stats"
	fi
	values /sys/block/lagdisk0/lagdisk >"$OUT/$number.disk"
	umount /mnt || fail "cell $number: not unmounted"
	if [ -n "$settings" ]; then rmmod luc || fail "cell $number: luc stays"; fi
	rmmod lagdisk || fail "cell $number: lagdisk stays"
}

