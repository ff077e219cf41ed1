//! Part `notifier-powercut`: power cuts with clients whose calls are notified.

use luc_harness::report::{Page, Table, Target};

use super::super::error::EvaluateError;
use super::super::harness::Harness;
use super::super::progress::Progress;
use super::{HEADS, steps, trial};

/// Names, and further options of `luc powercut --clients 64 --reach notify`.
const SETTINGS: [(&str, &[&str]); 4] = [
    ("64 threads, auto", &["--policy", "auto"]),
    ("64 processes, auto", &["--policy", "auto", "--processes"]),
    ("64 threads, pid", &["--policy", "pid"]),
    ("64 processes, pid", &["--policy", "pid", "--processes"]),
];

/// Number of power cuts of each setting.
const CUTS: u64 = 50;
/// Minimum number of cuts of all settings together.
const MIN_CUTS: u64 = 200;

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let wanted = SETTINGS.into_iter().filter(|(setting, _)| harness.options.wants(setting));
    let mut progress = Progress::new(harness.part, wanted.clone().count() * steps(cuts));
    let mut table = Table::new(&[&["clients"], &HEADS[..]].concat());
    let mut targets = Vec::new();
    let mut rounds = 0;
    for (setting, words) in wanted {
        let words = [&["--clients", "64", "--reach", "notify"], words].concat();
        let tally = trial(harness, setting, &words, cuts, &mut progress)?;
        table.row([vec![setting.to_owned()], tally.cells()].concat());
        rounds += tally.rounds;
        targets.push(tally.claim_clean(setting));
    }
    targets.push(Target::new(
        format!("at least {MIN_CUTS} cuts"),
        rounds >= MIN_CUTS,
        format!("{rounds} cuts"),
    ));
    Ok(Page {
        title: "Power cuts under the notifier".to_owned(),
        about: "Each cut makes a fresh emulated disk with ext4, lets 64 clients under `luc run --reach notify` write \
                files, fsync them and say so, cuts the power after 0.1 to 1 s, mounts what is left, checks every \
                acknowledged file, and runs the file system's checker. Policy auto may still be learning when the \
                power goes; policy pid holds calls from the start. That such a trial finds the losses of clients \
                that skip fsync is on the page [powercut](powercut.md)."
            .to_owned(),
        tables: vec![("What the cuts came to:".to_owned(), table)],
        targets,
    })
}
