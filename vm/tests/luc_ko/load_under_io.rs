//! Loading and unloading under load, unmount, freeze, bad values: on both kernels, two processors.

use crate::common::{BACKPORT, STABLE, succeed};
use crate::module_under_test::ModuleTestParts;

const SCRIPT: &str = "
prepare write_ns=20000 flush_ns=1000000
luc bench metarates --dir /mnt --file-size 1k --threads 8 --seconds 1000 --json >/dev/null &
load=$!
for policy in delay pid auto; do
	for copy_out in on auto; do
		insmod luc.ko policy=$policy copy_out=$copy_out
		[[ $(cat $journal/policy) == $policy && $(cat $journal/device) == $(cat /sys/block/lagdisk0/dev) ]]
		echo 50000 >$journal/delay_us
		sleep 0.3
		[[ $(count fsyncs) -gt 0 && $(count commits) -gt 0 ]]
		rmmod luc
		[[ ! -e /sys/kernel/luc ]]
	done
done
if insmod luc.ko policy=sometimes 2>/dev/null; then echo 'policy=sometimes was taken'; exit 1; fi
message 'luc: policy=sometimes: must be'
echo 0 >/proc/sys/kernel/ftrace_enabled
if insmod luc.ko 2>/dev/null; then echo 'loaded without ftrace'; exit 1; fi
message 'luc: ftrace is switched off'
echo 1 >/proc/sys/kernel/ftrace_enabled

insmod luc.ko policy=delay copy_out=on
# Noting each task's name would patch the scheduler, and QEMU does not survive that with two processors.
echo 0 >/sys/kernel/tracing/options/record-cmd
echo 1 >/sys/kernel/tracing/events/luc/enable
refused() {
	if echo $2 >$journal/$1 2>/dev/null; then echo \"$1 takes $2\"; exit 1; fi
	message \"luc: lagdisk0-8: $1 must be\"
}
refused policy never
refused copy_out maybe
for name in delay_us timeout_us max_hold_us; do refused $name 50001; refused $name -1; refused $name soon; done
refused copy_out_clean_runs 0
refused copy_out_threshold_permille 1001
if echo 0 >/proc/sys/kernel/ftrace_enabled 2>/dev/null; then echo 'ftrace was switched off'; exit 1; fi

sleep 0.3
grep -q luc_hold_begin /sys/kernel/tracing/trace
grep -q 'luc_hold_end.*end expired' /sys/kernel/tracing/trace
for _ in 1 2 3; do
	fsfreeze --freeze /mnt
	sleep 0.05
	fsfreeze --unfreeze /mnt
done
sync
kill $load
wait || true
# The last commits of a file system are not held, and its journal is forgotten with it.
umount /mnt
[[ ! -e $journal ]]
e2fsck -fn /dev/lagdisk0 >/dev/null 2>&1
mount -t ext4 -o data=journal /dev/lagdisk0 /mnt
[[ $(cat $journal/policy) == delay ]]
luc bench metarates --dir /mnt --file-size 1k --threads 4 --seconds 0.5 --warmup 100ms --json >/dev/null
[[ $(count copies) -gt 0 && $(count holds) -gt 0 ]]
finish
rmmod luc
";

fn loads_and_unloads(version: &str) {
    let Some(parts) = ModuleTestParts::find(version) else {
        return;
    };
    succeed(&parts.vm(SCRIPT));
}

#[test]
fn it_comes_and_goes_under_load() {
    loads_and_unloads(STABLE);
}

#[test]
fn it_comes_and_goes_under_load_on_a_newer_kernel() {
    loads_and_unloads(BACKPORT);
}
