# shellcheck shell=bash
# Files per second of clients that create and sync, with luc.ko's policy off and auto in turn. ROUNDS: of each.
id=11111111-1111-1111-1111-111111111111
modprobe ext4
insmod lagdisk.ko size_mib=400 write_ns=20000 flush_ns=3000000 || exit 2
mke2fs -q -t ext4 -U $id -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed=$id /dev/lagdisk0 || exit 2
mount -t ext4 /dev/lagdisk0 /mnt || exit 2
insmod luc.ko || exit 2
journal=/sys/kernel/luc/lagdisk0-8
for clients in 4 16; do
	for _ in $(seq "$ROUNDS"); do
		for policy in off auto; do
			echo $policy >$journal/policy
			before=$(cat $journal/stats/fsyncs)
			luc bench metarates --dir /mnt --file-size 1k --threads $clients --seconds 1 --warmup 300ms --json >/dev/null || exit 2
			echo "${policy}_$clients: $(($(cat $journal/stats/fsyncs) - before))"
		done
	done
done
rmmod luc
umount /mnt
