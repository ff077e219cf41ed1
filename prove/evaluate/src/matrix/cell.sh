# shellcheck shell=bash
# Runs the cells of one group, each on a fresh disk and file system. $DISK_MIB is the disk's size, $MEMORY_MIB
# what the benchmark and the page cache get, $SECONDS_RUN and $SEED are the run's, $SETTINGS its variables. The calls of
# `cell` follow below; what a cell gives is left in $OUT: N.json, N.disk, N.mount.
modprobe fuse
# A drive without command queueing: the elevator above it sorts, one request at a time is at the drive.
modprobe loop hw_queue_depth=1 max_loop=1
# The disk, and twice its cache of 16 MiB for what a power cut would bring back.
echo $((DISK_MIB / 2 + 16)) >/proc/sys/vm/nr_hugepages
# What the kernel keeps free is made for the memory with the huge pages.
echo 4096 >/proc/sys/vm/min_free_kbytes
printf 'model = "hdd"\ncapacity_bytes = %s\n' $((DISK_MIB << 20)) >/root/drive.toml
uuid=11111111-1111-1111-1111-111111111112
number=0
mkdir -p /ballast
mount -t tmpfs -o size=100% none /ballast

fail() {
	echo "cell $number: $1"
	dmesg | grep -iE 'out of memory|error' | head -3
	exit 1
}

make_fs() {
	local fs=$1
	shift
	case $fs in
	ext*)
		mke2fs -q -F -t "$fs" -U $uuid -E nodiscard,lazy_itable_init=0,lazy_journal_init=1,hash_seed=$uuid \
			"$@" /dev/loop0
		;;
	reiserfs) mkreiserfs -q -f -f -u $uuid "$@" /dev/loop0 >/dev/null ;;
	xfs) mkfs.xfs -q -f -K -m uuid=$uuid "$@" /dev/loop0 ;;
	btrfs) mkfs.btrfs -q -f -K -U $uuid "$@" /dev/loop0 >/dev/null 2>&1 ;;
	f2fs) mkfs.f2fs -q -f -t 0 -U $uuid "$@" /dev/loop0 >/dev/null ;;
	esac
}

# What is available beyond $MEMORY_MIB is taken away.
limit_memory() {
	local available
	available=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
	rm -f /ballast/weight
	if [ "$available" -le $((MEMORY_MIB << 10)) ]; then fail "only $available KiB of memory"; fi
	fallocate -l $((available - (MEMORY_MIB << 10)))k /ballast/weight || fail "no ballast"
}

# cell FILE_SYSTEM "OPTIONS of mkfs" "OPTIONS of mount" "LOAD's file"
cell() {
	number=$((number + 1))
	luc disk create drive --model /root/drive.toml --size "${DISK_MIB}M" --huge-pages >/dev/null || fail "no disk"
	echo mq-deadline >/sys/block/loop0/queue/scheduler || fail "no elevator"
	# shellcheck disable=SC2086
	make_fs "$1" $2 || fail "no file system"
	modprobe "$(case $1 in ext*) echo ext4 ;; *) echo "$1" ;; esac)" || fail "no module"
	mount -t "$1" -o "$3" /dev/loop0 /mnt || fail "not mounted"
	rm -f /ballast/weight
	sync
	echo 3 >/proc/sys/vm/drop_caches
	limit_memory
	grep ' /mnt ' /proc/mounts >"$OUT/$number.mount"
	# shellcheck disable=SC2086
	luc bench filebench "$4" --dir /mnt --seconds "$SECONDS_RUN" --seed "$SEED" $SETTINGS --json \
		>"$OUT/$number.json" || fail "luc bench $4"
	luc disk stats drive --json >"$OUT/$number.disk" || fail "no counts"
	umount /mnt || fail "not unmounted"
	luc disk remove drive >/dev/null || fail "the disk stays"
}

