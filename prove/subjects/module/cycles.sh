# shellcheck shell=bash
# Loads and unloads MODULE, luc or another, CYCLES times under load and says what memory the kernel has after the
# first four times, after half of them and at the end.
RANDOM=$SEED
modprobe ext4
insmod lagdisk.ko size_mib=512 flush_ns=1000000 write_ns=20000 || exit 2

begin() {
	mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/lagdisk0 || exit 2
	mount -t ext4 /dev/lagdisk0 /mnt || exit 2
	luc bench metarates --dir /mnt --threads 8 --seconds 86400 --file-size 1k >/dev/null 2>&1 &
	load=$!
}
end() {
	kill -KILL "$load"
	wait "$load" 2>/dev/null
	(cd /mnt && rm -rf -- *)
	umount /mnt || exit 1
	e2fsck -fn /dev/lagdisk0 >/run/fsck 2>&1 || { cat /run/fsck; exit 1; }
	echo 1 >/sys/block/lagdisk0/lagdisk/wipe
}
# With nothing mounted: the journal holds on to pages that belong to no cache any more. Frees what can be
# freed, then prints the kernel's own memory in KiB and the objects of each slab cache.
figures() {
	for _ in 1 2 3; do
		sync
		echo 3 >/proc/sys/vm/drop_caches
		for cache in /sys/kernel/slab/*; do echo 1 >"$cache/shrink"; done 2>/dev/null
		sleep 1
	done
	# Pages on the processors' own lists are free, too.
	awk '$1 == "count:" { lists += 4 * $2 } { kib[$1] = $2 } END { print kib["MemTotal:"] - lists \
		- kib["MemFree:"] - kib["Buffers:"] - kib["Cached:"] - kib["AnonPages:"] }' \
		/proc/meminfo /proc/zoneinfo >"$OUT/memory_kib.$1"
	awk 'NR > 2 { print $1, $2 }' /proc/slabinfo >"$OUT/slab.$1"
}
policies=(delay pid auto off)
copies=(on heuristic auto off)
journal=/sys/kernel/luc/lagdisk0-8
holds=0 copied=0
cycle_other() {
	modprobe "$MODULE" || { echo "cycle $1: not loaded"; exit 1; }
	usleep $((RANDOM * 4))
	rmmod "$MODULE" || { echo "cycle $1: not unloaded"; exit 1; }
}
cycle_luc() {
	insmod luc.ko "policy=${policies[$1 % 4]}" "copy_out=${copies[$1 / 4 % 4]}" ||
		{ echo "cycle $1: not loaded"; exit 1; }
	usleep $((RANDOM * 4))
	# Sometimes settings change while commits are held.
	if (($1 % 5 == 0)); then echo "${policies[RANDOM % 4]}" >$journal/policy; fi
	read -r count <$journal/stats/holds && holds=$((holds + count))
	read -r count <$journal/stats/copies && copied=$((copied + count))
	rmmod luc || { echo "cycle $1: not unloaded"; exit 1; }
}

case $MODULE in luc) cycle=cycle_luc ;; *) cycle=cycle_other ;; esac
cycles() {
	begin
	for ((number = $1; number < $2; number++)); do $cycle $number; done
	sleep 2
	end
}

cycles 0 4
figures before
cycles 0 $((CYCLES / 2))
figures half
cycles $((CYCLES / 2)) "$CYCLES"
figures after
echo $holds >"$OUT/holds"
echo $copied >"$OUT/copies"
rmmod lagdisk
# Caches with at least one more object for each cycle, as after a leak in each. (The kernel counts a cache's objects by
# whole slabs, so a few cycles more or less say nothing.)
awk -v least=$((CYCLES > 250 ? CYCLES : 250)) 'NR == FNR { before[$1] = $2; next }
	$2 - before[$1] >= least { print $1 ": " $2 - before[$1] }' "$OUT/slab.before" "$OUT/slab.after" >"$OUT/growing"
