//! Tests the controller against models of callers and their journal. The simulation is exact, and checks decisions, not
//! speed.

mod clients_and_journal;
mod fed_commits;
mod passing_processes;
mod random_think_times;

use luc_control::auto_gate::AutoGate;
use luc_control::commit_end::{CommitEnd, OtherController};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_memory_is_harmless(
        words in proptest::collection::vec(any::<u64>(), size_of::<AutoGate>() / 8 + 1),
        feeds in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), 0u32..600), 1..20),
    ) {
        let mut auto = AutoGate::default();
        // SAFETY: Auto is made of integers and floats only, and `words` is at least as large.
        unsafe {
            std::ptr::copy_nonoverlapping(
                words.as_ptr().cast::<u8>(),
                std::ptr::from_mut(&mut auto).cast::<u8>(),
                size_of::<AutoGate>(),
            );
        }
        for (end_ns, completions, participants, released) in feeds {
            let plan = auto.on_epoch(&CommitEnd {
                end_ns, completions, own_completions: completions / 2,
                others: OtherController { gated: released % 3 == 0, trying: released % 5 == 0, lost: released % 7 == 0 },
                newcomers: completions / 3, most_at_once: participants / 2, latencies_ns: completions.wrapping_mul(1_000),
                participants, commit_ns: end_ns / 2, released, exact: released % 2 == 0, arrivals_ns: &[1, 2, 3],
            });
            prop_assert!(plan.set_point >= 1);
        }
    }
}
