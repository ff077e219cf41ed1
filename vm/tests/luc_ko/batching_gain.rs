//! Batching, in virtual time. Figures repeat to the last digit for the same binaries, on any machine and under any
//! load.
//!
//! Another build of the binaries (another path is enough) moves them by some percent, hence the wide bounds here. The
//! gains are recorded in `docs/evaluation/kernel.md`.

use luc_vm::GuestTime;

use crate::common::{STABLE, succeed};
use crate::module_under_test::{ModuleTestParts, figure};

const SCRIPT: &str = "
prepare write_ns=20000 flush_ns=3000000
insmod luc.ko
for clients in 1 6; do
	for policy in off delay pid auto; do
		echo $policy >$journal/policy
		echo 300 >$journal/delay_us
		echo $clients >$journal/set_point
		echo ${policy}_$clients $(files --threads $clients --seconds 1)
	done
	echo state_$clients $(count state)
done
echo fsyncs $(count fsyncs)
echo commits $(count commits_by_fsync)
finish
";

#[test]
fn held_commits_serve_more_and_a_lone_caller_is_left_alone() {
    let Some(parts) = ModuleTestParts::find(STABLE) else {
        return;
    };
    let text =
        succeed(&parts.vm(SCRIPT).mode(GuestTime::VirtualTime { shift: 0, processors: 1 })).text();
    let ratio = |name: &str, clients: &str| {
        figure(&text, &format!("{name}_{clients}")) / figure(&text, &format!("off_{clients}"))
    };
    for policy in ["delay", "pid", "auto"] {
        let gain = ratio(policy, "6");
        assert!(gain >= 1.3, "{policy}: {gain} times stock with 6 clients\n{text}");
    }
    let alone = ratio("auto", "1");
    assert!(alone >= 0.95, "{alone} times stock for a lone client\n{text}");
    // The fixed delay does cost a lone client: the figures are not just all the same.
    assert!(ratio("delay", "1") < 0.97, "{text}");
    assert!(!text.contains("state_1 engaged") && text.contains("state_6 engaged"), "{text}");
    assert!(figure(&text, "fsyncs") > 2.0 * figure(&text, "commits"), "{text}");
}
