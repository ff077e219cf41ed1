//! `stretch_permille` lengthens the module's times, in virtual time. Figures repeat to the last digit.

use luc_vm::GuestTime;

use crate::common::{STABLE, succeed};
use crate::module_under_test::{ModuleTestParts, figure};

/// A lone client whose commits are held for 2 ms, and six clients under `auto` for 5 s. Counts how often `auto` checks
/// again whether holding gains.
const SCRIPT: &str = "
prepare write_ns=20000 flush_ns=3000000
for bad in 9 100001 0; do
	if insmod luc.ko stretch_permille=$bad 2>/dev/null; then echo \"stretch_permille=$bad was taken\"; exit 1; fi
	message \"luc: stretch_permille=$bad: must be a whole number from 10 to 100000\"
done
if insmod luc.ko stretch_permille=much 2>/dev/null; then echo 'stretch_permille=much was taken'; exit 1; fi
[[ ! -e /sys/kernel/luc ]]
for permille in 1000 10000; do
	insmod luc.ko policy=delay stretch_permille=$permille
	[[ $(cat /sys/module/luc/parameters/stretch_permille) == $permille ]]
	echo 2000 >$journal/delay_us
	echo lone_$permille $(files --threads 1 --seconds 1)
	echo hold_us_$permille $(($(count hold_ns) / $(count holds) / 1000))
	echo auto >$journal/policy
	echo >/sys/kernel/tracing/trace
	echo 1 >/sys/kernel/tracing/events/luc/luc_auto_state/enable
	files --threads 6 --seconds 5 >/dev/null
	echo 0 >/sys/kernel/tracing/events/luc/luc_auto_state/enable
	grep auto_state /sys/kernel/tracing/trace
	echo checks_$permille $(grep -c 'luc_auto_state.* to check ' /sys/kernel/tracing/trace || true)
	rmmod luc
done
finish
";

#[test]
fn stretched_times_count_for_holds_and_for_when_auto_looks_again() {
    let Some(parts) = ModuleTestParts::find(STABLE) else {
        return;
    };
    let text =
        succeed(&parts.vm(SCRIPT).mode(GuestTime::VirtualTime { shift: 0, processors: 1 })).text();
    let files = |permille: &str| figure(&text, &format!("lone_{permille}"));
    // 20 ms for each file, and not 2, beside some 9 ms of the disk's.
    assert!(files("10000") < 0.6 * files("1000"), "{text}");
    // In its own time it has held for as long as it was told.
    for permille in ["1000", "10000"] {
        let us = figure(&text, &format!("hold_us_{permille}"));
        assert!((2000.0..2200.0).contains(&us), "{text}");
    }
    // After 2 s, and after 20.
    assert!(figure(&text, "checks_1000") >= 1.0, "{text}");
    assert_eq!(figure(&text, "checks_10000"), 0.0, "{text}");
}
