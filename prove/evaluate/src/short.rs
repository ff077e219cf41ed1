//! Part `short`: what programs of 2 seconds gain, beside those of 20.
//!
//! A program is a `luc run` of its own, and all of its time counts. Learning is a part of it: so a
//! program that was never run before is told from one that was.

use luc_stats::Interval;

use super::disks::EXT4;
use super::error::EvaluateError;
use super::harness::Harness;
use super::report::{NOTATION, Page, Table, Target, number, ratio, spread};
use super::rounds::{self, Job, Runs, Under, files_per_s};

const CLIENTS: [usize; 3] = [4, 16, 64];
/// How many times as long as a short program a long one takes.
const LONGER: f64 = 10.0;
const LEAST_SHARE: f64 = 0.95;

/// Column, what it runs under, whether the program is long.
const SETTINGS: [(&str, Under, bool); 5] = [
    ("stock, short", Under::Bare, false),
    ("first, short", Under::First, false),
    ("again, short", Under::Again, false),
    ("stock, long", Under::Bare, true),
    ("first, long", Under::First, true),
];

fn cell(clients: usize) -> String {
    format!("{clients} threads")
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(7);
    let seconds = harness.options.seconds.unwrap_or(2.0);
    let mut jobs = Vec::new();
    for clients in CLIENTS {
        jobs.extend(SETTINGS.map(|(setting, under, is_long)| Job {
            cell: cell(clients),
            setting,
            disk: EXT4,
            words: words(clients, if is_long { LONGER * seconds } else { seconds }),
            under,
        }));
    }
    let runs = rounds::run(harness, &jobs, repeats)?;
    Ok(page(harness, &runs, repeats, seconds))
}

/// A program of which nothing is left out.
fn words(clients: usize, seconds: f64) -> Vec<String> {
    let mut words = rounds::metarates(clients, false, seconds);
    words.extend(["--warmup", "0"].map(str::to_owned));
    words
}

fn page(harness: &Harness, runs: &Runs, repeats: usize, seconds: f64) -> Page {
    let long = LONGER * seconds;
    let mut table = Table::new(&[
        "clients",
        "stock, short, files/s",
        "gate, first, short",
        "gate, again, short",
        "gain, first, short",
        "gain, again, short",
        "gain, long",
        "share, first",
        "share, again",
    ]);
    let mut targets = Vec::new();
    for cell in CLIENTS.map(cell) {
        if !harness.options.wants(&cell) {
            continue;
        }
        let of = |setting| spread(&runs.figures(&cell, setting, files_per_s));
        let gain =
            |with, without| runs.ratio(&cell, (with, without), files_per_s, harness.options.seed);
        let first = gain("first, short", "stock, short");
        let again = gain("again, short", "stock, short");
        let whole = gain("first, long", "stock, long");
        let share = |short: Option<&Interval>| Some(short?.ratio / whole.as_ref()?.ratio);
        let shares = [share(first.as_ref()), share(again.as_ref())];
        let [shown_first, shown_again] =
            shares.map(|share| share.map_or_else(|| "-".to_owned(), number));
        table.row(vec![
            cell.clone(),
            of("stock, short"),
            of("first, short"),
            of("again, short"),
            ratio(first.as_ref()),
            ratio(again.as_ref()),
            ratio(whole.as_ref()),
            shown_first,
            shown_again,
        ]);
        for (share, which) in shares.into_iter().zip(["first-ever", "repeated"]) {
            targets.push(Target::at_least(
                format!("{cell}: gain of {which} programs of {seconds} s, of that of {long} s,"),
                share,
                LEAST_SHARE,
            ));
        }
    }
    Page {
        title: "Short programs".to_owned(),
        about: format!(
            "A program is `luc bench metarates` with client threads, files of 1 KB and no warm-up, on \
             ext4 on a disk that takes 20 µs for a request and 6 ms for a flush; each is run by a \
             `luc run --policy auto` of its own, {repeats} times. \"short\" takes {seconds} s, \
             \"long\" {long} s. \"first\" has a home directory where nothing was ever run so; \"again\" \
             is the second run of the same command with the same home directory on the same file \
             system. A share is the gain of short programs over that of long ones. {NOTATION}"
        ),
        tables: vec![("Gains by the programs' length:".to_owned(), table)],
        targets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_program_counts() {
        assert_eq!(
            words(4, 2.0).join(" "),
            "metarates --threads 4 --file-size 1k --seconds 2 --warmup 0"
        );
    }
}
