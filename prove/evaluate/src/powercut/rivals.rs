//! Part `rival-powercut`: power cuts of ext4, its fast commits and XFS, with and without the gate.

use super::super::error::EvaluateError;
use super::super::harness::Harness;
use super::super::progress::Progress;
use super::{steps, trial};

/// Name, and options of `luc powercut --clients 16`.
const SETTINGS: [(&str, &[&str]); 5] = [
    ("ext4", &[]),
    ("ext4 + gate", &["--policy", "auto"]),
    ("fast_commit", &["--mkfs-options", "-O fast_commit"]),
    ("fast_commit + gate", &["--policy", "auto", "--mkfs-options", "-O fast_commit"]),
    ("XFS", &["--fs", "xfs"]),
];

/// Number of power cuts of each setting.
const CUTS: u64 = 50;

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let wanted = SETTINGS.into_iter().filter(|(setting, _)| harness.options.wants(setting));
    let mut progress = Progress::new(harness.part, wanted.clone().count() * steps(cuts));
    for (setting, words) in wanted {
        let words = [&["--clients", "16"], words].concat();
        trial(harness, setting, &words, cuts, &mut progress)?;
    }
    Ok(())
}
