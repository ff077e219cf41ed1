# shellcheck shell=bash
# Runs the points of one guest, each on a disk, a file system and a module of its own. The calls of `point` follow
# below; what a point leaves is in $OUT: N.json, N.luc, N.disk, N.mount.
modprobe ext4
modprobe jbd2
number=0
uuid=11111111-1111-1111-1111-111111111112

fail() {
	echo "$1"
	dmesg | tail -5
	exit 1
}

# The scheduler's slices last as much longer as all that is not instructions. stretch PERMILLE
stretch() {
	local file
	for file in /sys/kernel/debug/sched/*_ns; do
		echo $(($(cat "$file") * $1 / 1000)) >"$file"
	done
}

# make_fs FS OPTIONS
make_fs() {
	# shellcheck disable=SC2086
	case $1 in
	xfs) mkfs.xfs -q -f -m uuid=$uuid $2 /dev/lagdisk0 ;;
	*) mke2fs -q -t "$1" -U $uuid -E nodiscard,lazy_itable_init=0,lazy_journal_init=1,hash_seed=$uuid $2 /dev/lagdisk0 ;;
	esac
}

# A line with name and content of each file; one process for all, which is cheap in a guest.
values() {
	(cd "$1" && grep -sH '' ./* | sed 's,^\./,,; s,:, ,')
}

# point FS "OPTIONS of mkfs" "OPTIONS of mount" "SETTINGS of the module, or nothing" "DISK" SHIFT_US BENCHMARK...
point() {
	local fs=$1 mkfs=$2 mount=$3 settings=$4 disk=$5 shift_us=$6 setting
	shift 6
	number=$((number + 1))
	sync
	echo 3 >/proc/sys/vm/drop_caches
	# shellcheck disable=SC2086
	insmod /root/lagdisk.ko $disk || fail "point $number: no disk"
	make_fs "$fs" "$mkfs" || fail "point $number: no file system"
	if [ -n "$settings" ]; then insmod /root/luc.ko || fail "point $number: no module"; fi
	modprobe "$fs"
	mount -t "$fs" ${mount:+-o "$mount"} /dev/lagdisk0 /mnt || fail "point $number: not mounted"
	grep ' /mnt ' /proc/mounts >"$OUT/$number.mount"
	for setting in $settings; do
		echo "${setting#*=}" >"/sys/kernel/luc/lagdisk0-8/${setting%%=*}" || fail "point $number: $setting"
	done
	usleep "$shift_us"
	values /sys/block/lagdisk0/lagdisk >"$OUT/$number.before"
	luc bench "$@" --dir /mnt --json >"$OUT/$number.json" || fail "point $number: luc bench $*"
	if [ -n "$settings" ]; then values /sys/kernel/luc/lagdisk0-8/stats >"$OUT/$number.luc"; fi
	values /sys/block/lagdisk0/lagdisk >"$OUT/$number.disk"
	umount /mnt || fail "point $number: not unmounted"
	if [ -n "$settings" ]; then rmmod luc || fail "point $number: luc stays"; fi
	rmmod lagdisk || fail "point $number: lagdisk stays"
}

