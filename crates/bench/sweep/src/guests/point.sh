# shellcheck shell=bash
# Runs the points of one guest, each on a disk, a file system and a module of its own. Set before: $MODEL, the words of
# `luc disk create`, or nothing for lagdisk; of a model $PAGES, the huge pages that it takes, and $ELEVATOR, the scheduler
# of a disk with an arm; $LENIENT, where a point that fails is only left out. The calls of `point` follow below; what a
# point leaves is in $OUT: N.json, N.luc, N.before, N.disk, N.mount, or N.failed.
if [ -n "$MODEL" ]; then
	device=loop0
	modprobe fuse
	# A drive with an arm has no command queueing: the elevator sorts, one request at a time is at the drive.
	modprobe loop max_loop=1 ${ELEVATOR:+hw_queue_depth=1}
	echo "$PAGES" >/proc/sys/vm/nr_hugepages
	# What the kernel keeps free is made for the memory with the huge pages.
	echo 4096 >/proc/sys/vm/min_free_kbytes
	# A boost of the watermarks follows the size of the zones, which a ballast does not change. The kernel itself spares
	# small zones, as they would run out of memory (boost_watermark).
	echo 0 >/proc/sys/vm/watermark_boost_factor
	mkdir -p /ballast
	mount -t tmpfs -o size=100% none /ballast
else
	device=lagdisk0
	modprobe ext4
	modprobe jbd2
fi
number=0
uuid=11111111-1111-1111-1111-111111111112

fail() {
	echo "$1"
	dmesg | tail -5
	exit 1
}

# The scheduler's slices and the module's times last as much longer as all that is not instructions. stretch PERMILLE
stretch() {
	local file
	stretch_permille=$1
	for file in /sys/kernel/debug/sched/*_ns; do
		echo $(($(cat "$file") * $1 / 1000)) >"$file"
	done
}

# An elevator may hold twice as many requests as the queue is deep: with a depth of 1 that is 2, nothing to sort. Kernels
# give disks 64 and more. How long it lets requests wait is stretched as all else.
set_elevator() {
	local queue=/sys/block/$device/queue file
	echo "$ELEVATOR" >$queue/scheduler || return
	echo 64 >$queue/nr_requests || return
	if [ "$(cat $queue/nr_requests)" != 64 ]; then fail "point $number: the elevator holds $(cat $queue/nr_requests)"; fi
	if [ "$stretch_permille" = 1000 ]; then return; fi
	for file in "$queue"/iosched/*_expire; do
		echo $(($(cat "$file") * stretch_permille / 1000)) >"$file"
	done
}

# make_disk "DISK": the parameters of lagdisk
make_disk() {
	# shellcheck disable=SC2086
	if [ -z "$MODEL" ]; then
		insmod /root/lagdisk.ko $1
	else
		luc disk create drive $MODEL --huge-pages >/dev/null || return
		if [ -n "$ELEVATOR" ]; then set_elevator; fi
	fi
}

remove_disk() {
	if [ -z "$MODEL" ]; then rmmod lagdisk; else luc disk remove drive >/dev/null; fi
}

# make_fs FS OPTIONS
make_fs() {
	# shellcheck disable=SC2086
	case $1 in
	xfs) mkfs.xfs -q -f ${MODEL:+-K} -m uuid=$uuid $2 /dev/$device ;;
	reiserfs) mkreiserfs -q -f -f -u $uuid $2 /dev/$device >/dev/null ;;
	btrfs) mkfs.btrfs -q -f -K -U $uuid $2 /dev/$device >/dev/null ;;
	f2fs) mkfs.f2fs -q -f -t 0 -U $uuid $2 /dev/$device >/dev/null ;;
	*) mke2fs -q -t "$1" -U $uuid -E nodiscard,lazy_itable_init=0,lazy_journal_init=1,hash_seed=$uuid $2 /dev/$device ;;
	esac
}

# A line with name and content of each file; one process for all, which is cheap in a guest.
values() {
	(cd "$1" && grep -sH '' ./* | sed 's,^\./,,; s,:, ,')
}

# What the disk has done.
counts() {
	if [ -z "$MODEL" ]; then values /sys/block/lagdisk0/lagdisk; else luc disk stats drive --json; fi
}

# A ballast takes away the memory that is available beyond KIB; 0 takes none. limit_memory KIB
limit_memory() {
	local available ratio
	if [ "$1" = 0 ]; then return; fi
	available=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	if [ "$available" -le "$1" ]; then fail "point $number: only $available KiB of memory"; fi
	fallocate -l $((available - $1))k /ballast/weight || fail "point $number: no ballast"
	# The limit of dirty pages falls with the memory, but never below what is dirty (domain_update_dirty_limit): writers
	# would fill all memory. A changed ratio makes it anew.
	ratio=$(cat /proc/sys/vm/dirty_ratio)
	echo $((ratio + 1)) >/proc/sys/vm/dirty_ratio
	echo "$ratio" >/proc/sys/vm/dirty_ratio
}

# attempt FS "OPTIONS of mkfs" "OPTIONS of mount" "SETTINGS of the module, or nothing" "DISK" SHIFT_US MEMORY_KIB
# BENCHMARK...
attempt() {
	local fs=$1 mkfs=$2 mount=$3 settings=$4 disk=$5 shift_us=$6 memory_kib=$7 setting
	shift 7
	rm -f /ballast/weight
	sync
	echo 3 >/proc/sys/vm/drop_caches
	make_disk "$disk" || fail "point $number: no disk"
	make_fs "$fs" "$mkfs" || fail "point $number: no file system"
	if [ -n "$settings" ]; then
		if [ -n "$MODEL" ]; then modprobe "$fs"; fi
		insmod /root/luc.ko stretch_permille="$stretch_permille" || fail "point $number: no module"
	fi
	modprobe "$fs"
	mount -t "$fs" ${mount:+-o "$mount"} /dev/$device /mnt || fail "point $number: not mounted"
	grep ' /mnt ' /proc/mounts >"$OUT/$number.mount"
	for setting in $settings; do
		echo "${setting#*=}" >"/sys/kernel/luc/$device-8/${setting%%=*}" || fail "point $number: $setting"
	done
	if [ -n "$MODEL" ]; then
		sync
		echo 3 >/proc/sys/vm/drop_caches
		limit_memory "$memory_kib"
	fi
	usleep "$shift_us"
	counts >"$OUT/$number.before"
	luc bench "$@" --dir /mnt --json >"$OUT/$number.json" || fail "point $number: luc bench $*"
	if [ -n "$settings" ]; then values "/sys/kernel/luc/$device-8/stats" >"$OUT/$number.luc"; fi
	counts >"$OUT/$number.disk"
	umount /mnt || fail "point $number: not unmounted"
	if [ -n "$settings" ]; then rmmod luc || fail "point $number: luc stays"; fi
	remove_disk || fail "point $number: the disk stays"
}

# As attempt.
point() {
	number=$((number + 1))
	if [ -z "$LENIENT" ]; then
		attempt "$@"
	elif (attempt "$@") >"$OUT/$number.failed" 2>&1; then
		rm "$OUT/$number.failed"
	else
		umount /mnt 2>/dev/null
		if [ -e /sys/kernel/luc ]; then rmmod luc; fi
		remove_disk
	fi
}

