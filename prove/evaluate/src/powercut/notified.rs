//! Part `notifier-powercut`: power cuts with clients whose calls are notified.

use super::super::error::EvaluateError;
use super::super::harness::Harness;
use super::super::progress::Progress;
use super::{steps, trial};

/// Names, and further options of `luc powercut --clients 64 --reach notify`.
const SETTINGS: [(&str, &[&str]); 4] = [
    ("64 threads, auto", &["--policy", "auto"]),
    ("64 processes, auto", &["--policy", "auto", "--processes"]),
    ("64 threads, pid", &["--policy", "pid"]),
    ("64 processes, pid", &["--policy", "pid", "--processes"]),
];

/// Number of power cuts of each setting.
const CUTS: u64 = 50;

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let wanted = SETTINGS.into_iter().filter(|(setting, _)| harness.options.wants(setting));
    let mut progress = Progress::new(harness.part, wanted.clone().count() * steps(cuts));
    for (setting, words) in wanted {
        let words = [&["--clients", "64", "--reach", "notify"], words].concat();
        trial(harness, setting, &words, cuts, &mut progress)?;
    }
    Ok(())
}
