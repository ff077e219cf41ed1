# shellcheck shell=bash
# What LUC does on a kernel, in a guest with lagdisk.ko, luc.ko and luc. Each line of the output is `NAME: VALUE`.
# CUTS: power cuts; WRITES: synchronous writes of each of four writers; BYTES: writes of a byte to a pipe.
set -u
say() { echo "$1: $2"; }
# The sum of tables $3 in line $2 ("recorded", "lost") of what the recorder said, $1.
count() {
	sed -n "s/^luc:.* *$2[^:]*: //p" "$1" | tr ',;' '\n' |
		awk -v tables=" $3 " 'NF == 2 && index(tables, " " $2 " ") { sum += $1 } END { print sum + 0 }'
}
make_disk() {
	mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$1" || exit 1
	mount -t ext4 "$1" /mnt || exit 1
}

modprobe ext4
say release "$(uname -r)"
say preemption "$(cat /sys/kernel/debug/sched/preempt 2>/dev/null)"
insmod lagdisk.ko disks=2 size_mib=256 flush_ns=2000000 write_ns=50000 read_ns=50000 || exit 1

# The module.
insmod luc.ko policy=delay copy_out=on || exit 1
say layout "$(cat /sys/kernel/luc/layout)"
say tested "$(cat /sys/kernel/luc/kernel)"
luc powercut --lagdisk /dev/lagdisk0 --clients 8 --rounds "$CUTS" --json >"$OUT/cuts.json"
say cuts $?
make_disk /dev/lagdisk1
# A busy host may leave time for a few calls only.
for _ in $(seq 20); do
	luc bench metarates --dir /mnt --threads 4 --seconds 1 --file-size 1k --json >/dev/null || exit 1
	if [ "$(cat /sys/kernel/luc/lagdisk1-8/stats/holds)" != 0 ]; then break; fi
done
say holds "$(cat /sys/kernel/luc/lagdisk1-8/stats/holds)"
say copies "$(cat /sys/kernel/luc/lagdisk1-8/stats/copies)"
rmmod luc
say unloaded $?

# The recorder, beside threads that preempt one another.
cat >/run/storm <<EOF
for i in 1 2 3 4; do
	dd if=/dev/zero of=/mnt/\$i bs=512 count=$WRITES oflag=dsync 2>/dev/null &
	dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null &
done
wait
EOF
luc record --all --out /run/trace -- bash /run/storm 2>"$OUT/record.txt" || exit 1
say syncs_made $((4 * WRITES))
say syncs_seen "$(count "$OUT/record.txt" recorded sync)"
say syncs_lost "$(count "$OUT/record.txt" lost "sync call")"
say calls_lost "$(count "$OUT/record.txt" lost call)"
luc explain --json /run/trace >"$OUT/explained.json" || exit 1
cat >/run/piped <<EOF
for i in 1 2 3 4; do
	dd if=/dev/zero bs=1 count=$BYTES 2>/dev/null | dd of=/dev/null bs=1 2>/dev/null &
done
wait
EOF
luc record --fleet --all --pipes --tokens --out /run/fleet -- bash /run/piped 2>"$OUT/fleet.txt" || exit 1
say messages_made $((8 * BYTES))
say messages_seen "$(count "$OUT/fleet.txt" recorded message)"
say messages_lost "$(count "$OUT/fleet.txt" lost message)"

# The gate by notifications of system calls.
for _ in $(seq 20); do
	luc run --quiet --no-why --level gate --reach notify --policy delay:1ms --json "$OUT/notified.json" -- \
		luc bench metarates --dir /mnt --threads 4 --seconds 1 --file-size 1k --json >/dev/null
	status=$?
	if [ $status != 0 ] || grep -q '"gated": *[1-9]' "$OUT/notified.json"; then break; fi
done
say notifier "$status"

# The throttle.
write() { echo "dd if=/dev/zero of=/mnt/big$1 bs=64k count=300 oflag=direct 2>/dev/null"; }
luc throttle run --policy fcfs --disk /dev/lagdisk1 --json "$OUT/throttled.json" \
	--task "$(write 1)" --task "$(write 2)" >/dev/null 2>"$OUT/throttle.txt"
say throttle $?
umount /mnt
e2fsck -fn /dev/lagdisk1 >/dev/null 2>&1
say fsck $?
