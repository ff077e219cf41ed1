//! Copy-out, in virtual time: writes no longer wait for a journal that is slow to write.

use luc_vm::GuestTime;

use crate::common::{STABLE, succeed};
use crate::module_under_test::{ModuleTestParts, figure};

const SCRIPT: &str = "
prepare write_ns=2000000 flush_ns=100000
insmod luc.ko
echo 10 >$journal/copy_out_threshold_permille
for way in off on heuristic auto; do
	echo $way >$journal/copy_out
	waited=$(count write_delay_ns) delayed=$(count writes_delayed) writes=$(count writes)
	# One who syncs, and writers that never do: their changes meet its commits.
	for writer in 1 2 3 4; do
		(while [[ ! -e /tmp/stop ]]; do echo more >>/mnt/log.$writer; done) &
	done
	luc bench metarates --dir /mnt --file-size 1k --warmup 200ms --threads 1 --seconds 0.3 --json >/dev/null
	touch /tmp/stop
	wait
	rm /tmp/stop
	echo ${way}_ns $(($(count write_delay_ns) - waited))
	echo ${way}_delayed $(($(count writes_delayed) - delayed))
	echo ${way}_writes $(($(count writes) - writes))
done
echo copies $(count copies)
echo failed $(count copies_failed)
echo in_use $(count copy_bytes_in_use)
# Beyond its limit jbd2 journals the buffer itself.
echo on >$journal/copy_out
echo 0 >$journal/copy_out_limit_kib
copies=$(count copies)
luc bench metarates --dir /mnt --file-size 1k --warmup 100ms --threads 2 --seconds 0.3 --json >/dev/null
echo copies_without_memory $(($(count copies) - copies))
echo failed_without_memory $(count copies_failed)
finish
";

#[test]
fn writes_do_not_wait_for_the_journal() {
    let Some(parts) = ModuleTestParts::find(STABLE) else {
        return;
    };
    let text =
        succeed(&parts.vm(SCRIPT).mode(GuestTime::VirtualTime { shift: 0, processors: 1 })).text();
    let off_ns = figure(&text, "off_ns");
    assert!(off_ns > 3e8, "writes wait on stock jbd2\n{text}");
    assert!(figure(&text, "on_ns") < off_ns / 50.0, "{text}");
    for way in ["heuristic", "auto"] {
        let ns = figure(&text, &format!("{way}_ns"));
        assert!(ns < off_ns / 2.0, "{way}\n{text}");
    }
    assert!(figure(&text, "copies") > 100.0, "{text}");
    assert!(figure(&text, "failed") == 0.0 && figure(&text, "in_use") == 0.0, "{text}");
    assert!(figure(&text, "copies_without_memory") == 0.0, "{text}");
    assert!(figure(&text, "failed_without_memory") > 0.0, "{text}");
}
