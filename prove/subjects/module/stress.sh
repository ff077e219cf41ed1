# shellcheck shell=bash
# Runs each case on a fresh ext4 and notes its name, exit status, the checker's status and a digest of
# the tree that it leaves. MODULE: luc.ko's parameters, or empty.
modprobe ext4
modprobe quota_v2
insmod lagdisk.ko size_mib=256 flush_ns=200000 write_ns=20000 read_ns=20000 || exit 2
# shellcheck disable=SC2086 # words
if [ -n "$MODULE" ]; then insmod luc.ko $MODULE || exit 2; fi
lagdisk=/sys/block/lagdisk0/lagdisk

# Names, modes, owners, links, sizes and contents: everything but times.
digest() {
	{
		find /mnt -mindepth 1 ! -name lost+found | sort | while read -r path; do
			stat -c '%n %f %u %g %h %s' "$path" | awk '{ if (substr($2, 1, 1) == "4") $6 = 0; print }'
		done
		find /mnt -type f | sort | xargs -r cat
	} | md5sum | cut -c1-12
}
# try NAME MKFS-OPTIONS MOUNT-OPTIONS COMMAND...
try() {
	local name=$1 mkfs=$2 mount=$3 status fsck tree
	shift 3
	echo 1 >$lagdisk/wipe
	# shellcheck disable=SC2086 # words
	mkfs.ext4 -F -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $mkfs /dev/lagdisk0 || exit 2
	mount -t ext4 -o "$mount" /dev/lagdisk0 /mnt || exit 2
	(cd /mnt && "$@") >/run/said 2>&1
	status=$?
	tree=$(digest)
	umount /mnt || { echo "$name: cannot be unmounted"; exit 2; }
	e2fsck -fn /dev/lagdisk0 >/run/fsck 2>&1
	fsck=$?
	echo "$name $status $fsck $tree" | tee -a "$OUT/results"
	if [ $status != 0 ] || [ $fsck != 0 ]; then
		echo "== $name: status $status, e2fsck $fsck"
		tail -n 5 /run/said
		tail -n 5 /run/fsck
	fi
}

# In eight folders at a time: a fixed series of operations each, so the tree is the same each time.
series() {
	local number
	mkdir "$1" && cd "$1" || return 1
	RANDOM=$2
	for ((number = 0; number < $3; number++)); do
		local a=f$((RANDOM % 20)) b=f$((RANDOM % 20))
		case $((RANDOM % 10)) in
		0 | 1 | 2) echo "$number $a" >>$a ;;
		3) [ -e $a ] && mv -T $a $b ;;
		4) [ -e $a ] && [ ! -e $b ] && ln $a $b ;;
		5) rm -f $a ;;
		6) truncate -s $((RANDOM * 3)) $a ;;
		7) mkdir -p d$((RANDOM % 5)) && echo $number >d$((number % 5))/$b ;;
		8) fallocate -l $((1 + RANDOM)) $a; [ -e $b ] && fallocate -p -o 0 -l 4096 $b ;;
		9) [ -e $a ] && sync $a ;;
		esac 2>/dev/null
	done
	return 0
}
series_all() {
	local number
	for number in 1 2 3 4; do (series s$number $((SEED + number)) "$1") & done
	wait
}
direct() {
	local number
	for number in 1 2 3 4; do
		dd if=/root/luc.ko of=direct$number bs=64k count=20 oflag=direct conv=fsync &
	done
	wait
	cmp direct1 direct4
}
load() { # a load of fsyncs in the background; ends with the shell that started it
	mkdir -p load
	luc bench metarates --dir load --threads 8 --seconds 86400 --file-size 1k >/dev/null 2>&1 &
	load=$!
	usleep 300000
}
unload() {
	kill -KILL "$load"
	wait "$load" 2>/dev/null
	rm -rf load
}
freeze_thaw() {
	local number
	load
	for ((number = 0; number < 15; number++)); do
		fsfreeze -f /mnt || return 1
		usleep 20000
		fsfreeze -u /mnt || return 1
		usleep 30000
	done
	unload
}
remount() {
	local option
	load
	for option in commit=1 nobarrier barrier sync async noatime commit=5 discard nodiscard; do
		mount -o remount,$option /mnt || return 1
		usleep 50000
	done
	unload
	cd /
	mount -o remount,ro /mnt && ! touch /mnt/x 2>/dev/null && mount -o remount,rw /mnt && touch /mnt/x
}
no_space() {
	local number
	fallocate -l 215M big || return 1
	for _ in 1 2 3; do
		for ((number = 0; number < 150; number++)); do
			head -c 300000 /dev/zero >full$number || break
			sync full$number || break
		done 2>/dev/null
		[ $number -lt 150 ] || return 1
		rm -f full*
	done
}
small_journal() {
	local thread
	load
	for thread in 1 2; do
		(
			mkdir t$thread
			for _ in 1 2 3; do
				for n in $(seq 150); do : >"t$thread/$n"; done
				rm -f t$thread/*
			done
		) &
		pids[thread]=$!
	done
	wait "${pids[1]}" "${pids[2]}"
	unload
}
quota() {
	local user
	for user in $(seq 1000 1020); do
		head -c $((user * 10)) /dev/zero >"file$user" || return 1
		chown "$user:$user" "file$user" || return 1
		sync "file$user" || return 1
	done
	for user in $(seq 1000 2 1020); do
		chown 0:0 "file$user"
		truncate -s 100 file$((user + 1 > 1020 ? 1020 : user + 1))
	done
}
stress() { # STRESSOR OPERATIONS
	stress-ng --temp-path /mnt --quiet --verify --timeout 20 --seed "$SEED" "--$1" 4 "--$1-ops" "$2"
}

for mode in ordered journal writeback; do
	try series-$mode "" data=$mode series_all 60
done
try direct-io "" defaults direct
try freeze-thaw "" defaults freeze_thaw
try remount "" defaults remount
try no-space "-b 1024 -N 512 -J size=2" defaults no_space
try small-journal "-b 1024 -J size=1" defaults small_journal
try quota "-O quota,project" usrquota,grpquota quota
try fast-commit "-O fast_commit" defaults series_all 60
try no-journal "-O ^has_journal" defaults series_all 60
for pair in access:400 chmod:400 chown:400 copy-file:100 dentry:2000 dir:800 dirdeep:400 dirmany:400 fallocate:100 \
	fiemap:100 filename:300 flock:1000 fpunch:20 fstat:500 getdent:100 hdd:200 inode-flags:200 io:400 iomix:200 \
	lease:200 link:400 lockf:400 mknod:200 mmap:8 open:400 rename:2000 revio:200 seek:400 sync-file:60 symlink:400 \
	touch:400 utime:400 xattr:100; do
	try stress-${pair%:*} "" defaults stress ${pair%:*} ${pair#*:}
done

if [ -n "$MODULE" ]; then rmmod luc || exit 2; fi
rmmod lagdisk || exit 2
