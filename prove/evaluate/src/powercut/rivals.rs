//! Part `rival-powercut`: power cuts of ext4, its fast commits and XFS, with and without the gate.

use luc_harness::report::{Page, Table};

use super::super::error::EvaluateError;
use super::super::harness::Harness;
use super::super::progress::Progress;
use super::{HEADS, steps, trial};

/// Name, options of `luc powercut --clients 16`, and whether losses miss a target.
const SETTINGS: [(&str, &[&str], bool); 5] = [
    ("ext4", &[], true),
    ("ext4 + gate", &["--policy", "auto"], true),
    ("fast_commit", &["--mkfs-options", "-O fast_commit"], false),
    ("fast_commit + gate", &["--policy", "auto", "--mkfs-options", "-O fast_commit"], false),
    ("XFS", &["--fs", "xfs"], false),
];

/// Number of power cuts of each setting.
const CUTS: u64 = 50;

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let cuts = harness.options.cuts.unwrap_or(CUTS);
    let wanted = SETTINGS.into_iter().filter(|(setting, ..)| harness.options.wants(setting));
    let mut progress = Progress::new(harness.part, wanted.clone().count() * steps(cuts));
    let mut table = Table::new(&[&["setting"], &HEADS[..]].concat());
    let mut targets = Vec::new();
    for (setting, words, is_safe) in wanted {
        let words = [&["--clients", "16"], words].concat();
        let tally = trial(harness, setting, &words, cuts, &mut progress)?;
        table.row([vec![setting.to_owned()], tally.cells()].concat());
        if is_safe {
            targets.push(tally.claim_clean(setting));
        }
    }
    Ok(Page {
        title: "Power cuts: fast commits and XFS beside ext4".to_owned(),
        about: "Each cut makes a fresh emulated disk, lets 16 client threads write files, fsync them and say so, cuts \
                the power after 0.1 to 1 s, mounts what is left, checks every acknowledged file, and runs the file \
                system's checker. \"+ gate\" is under `luc run --policy auto`."
            .to_owned(),
        tables: vec![("What the cuts came to:".to_owned(), table)],
        targets,
    })
}
