//! A waiter for a commit that is no fsync ends its hold; an fsync alone does not. On both kernels.

use crate::common::{BACKPORT, STABLE, succeed};
use crate::module_under_test::{ModuleTestParts, figure};

/// Holds each commit for 50 ms. Beside a client that syncs a file again and again, another waits for commits by another
/// way. `dirsync` makes handles synchronous: jbd2 waits at their end.
const SCRIPT: &str = "
prepare write_ns=20000 flush_ns=200000
insmod luc.ko policy=delay
[[ $(cat /sys/kernel/luc/layout) == checked && $(cat /sys/kernel/luc/kernel) == tested ]]
[[ $(stat -c %a $journal/stats/fsyncs) == 400 ]]
for file in delay_us max_hold_us; do echo 50000 >$journal/$file; done
luc bench metarates --dir /mnt --file-size 1k --threads 1 --seconds 1000 --json >/dev/null &
load=$!
sleep 0.5
measure() {
	local name=$1 holds=$(count holds) awaited=$(count holds_awaited) i
	shift
	for i in {1..20}; do \"$@\"; done
	echo ${name}_holds $(($(count holds) - holds))
	echo ${name}_awaited $(($(count holds_awaited) - awaited))
}
name() { touch /mnt/synchronous/$RANDOM$RANDOM; }
measure nobody sleep 0.05
measure sync sync
measure syncfs sync -f /mnt
mkdir /mnt/synchronous
chattr +D /mnt/synchronous
measure handle name
kill $load
wait || true
finish
rmmod luc
";

fn ends_holds(version: &str) {
    let Some(parts) = ModuleTestParts::find(version) else {
        return;
    };
    let vm = parts.vm(SCRIPT).program("chattr").program("stat");
    let text = succeed(&vm).text();
    assert!(figure(&text, "nobody_holds") > 5.0, "{text}");
    assert!(figure(&text, "nobody_awaited") == 0.0, "{text}");
    for who in ["sync", "syncfs", "handle"] {
        let awaited = figure(&text, &format!("{who}_awaited"));
        assert!(awaited > 5.0, "{who}\n{text}");
    }
}

#[test]
fn a_waiter_that_is_no_fsync_ends_a_hold() {
    ends_holds(STABLE);
}

#[test]
fn a_waiter_that_is_no_fsync_ends_a_hold_on_a_newer_kernel() {
    ends_holds(BACKPORT);
}
