//! Chapter 4: delayJC.

use super::super::report::{Table, number};
use super::chapter3::IOZONE;
use super::data::{Data, Line, commits_per_fsync, delays_per_file, fsync_ms, range};
use super::finding::{Claim, Finding, Verdict, share};
use super::tables::BySpeed;

const STOCK: &str = "kernel:off";
const DELAY: &str = "kernel:delay";

const METARATES: [Line; 3] = [
    Line::new("metarates", 4, STOCK),
    Line::new("metarates", 16, STOCK),
    Line::new("metarates", 32, STOCK),
];

/// A gain of delayJC on Metarates.
const fn metarates(figure: &'static str, says: &'static str) -> Claim {
    Claim {
        figure,
        says,
        agrees: "all clients' fsyncs share one commit instead of nearly two",
        partly: "all clients' fsyncs share one commit instead of nearly two, which cannot gain more than twice on a disk \
                 that has no seeks to spare",
        does_not: "the clients share a commit without it, or come too late for the delay",
    }
}

/// A gain of delayJC on IOzone.
const fn iozone(figure: &'static str, says: &'static str) -> Claim {
    Claim {
        figure,
        says,
        agrees: "the commit begins when all have written",
        partly: "one processor needs longer for 256 children's files than delayJC holds a commit, which then begins \
                 among their writes all the same, sooner or later than stock's",
        does_not: "one processor needs longer for 256 children's files than delayJC holds a commit, which then begins \
                   among their writes all the same",
    }
}

const METARATES_GAINS: [(Claim, f64); 3] = [
    (
        metarates("4.10a", "Metarates 4: delayJC gains up to 2.57 times"),
        2.57,
    ),
    (
        metarates("4.10b", "Metarates 16: delayJC gains up to 1.82 times"),
        1.82,
    ),
    (
        metarates("4.10c", "Metarates 32: delayJC gains up to 1.49 times"),
        1.49,
    ),
];

const IOZONE_GAINS: [(Claim, f64); 3] = [
    (
        iozone(
            "4.11a",
            "IOzone 128 KB / 32 KB: delayJC gains up to 3.65 times",
        ),
        3.65,
    ),
    (
        iozone(
            "4.11b",
            "IOzone 256 KB / 64 KB: delayJC gains up to 2.04 times",
        ),
        2.04,
    ),
    (
        iozone(
            "4.11c",
            "IOzone 512 KB / 128 KB: delayJC gains up to 3.47 times",
        ),
        3.47,
    ),
];

const FEWER_CLIENTS_GAIN_MORE: Claim = Claim {
    figure: "4.10",
    says: "the more processes, the smaller delayJC's gain (2.57, 1.82, 1.49)",
    agrees: "with more clients the delay's restarts and the processor's own time are a larger share",
    partly: "the gain is bounded by two commits becoming one, whatever the number of clients",
    does_not: "the gain is bounded by two commits becoming one, and with few clients a smaller part of them is late",
};

const RISES: Claim = Claim {
    figure: "4.10, 4.11",
    says: "NOJC gets faster with the processor",
    agrees: "without commits nobody waits for others, and what is measured is the processor's",
    partly: "without commits some lines gain from a faster processor; the others are the disk's",
    does_not: "without commits nearly all of the time is the disk's, which is as fast at every speed",
};

const WAITS_LESS: Claim = Claim {
    figure: "4.10",
    says: "Metarates: an fsync takes less time with delayJC (so data is as safe as before)",
    agrees: "one commit less is longer than the delay",
    partly: "one commit less is longer than the delay only where clients are late without it",
    does_not: "the delay is longer than what it saves",
};

const FEWER_COMMITS: Claim = Claim {
    figure: "4.10, 4.11",
    says: "delayJC always needs fewer commits",
    agrees: "more fsyncs share each",
    partly: "where all fsyncs share a commit anyway, there are no fewer",
    does_not: "the fsyncs share their commits anyway",
};

const UNBLOCKED: Claim = Claim {
    figure: "4.11",
    says: "IOzone: with delayJC hardly any write is blocked by a commit (ext4 at 3.3 GHz: 216 of 256)",
    agrees: "the commit begins when all have written",
    partly: "the commit begins later, but while others still write",
    does_not: "the commit begins while others still write, with the delay as well",
};

const LIKE_NOJC: Claim = Claim {
    figure: "4.11",
    says: "IOzone: delayJC is mostly as fast as NOJC",
    agrees: "writes are timed, not fsyncs, and no write waits",
    partly: "only where no write waits for the delayed commit either",
    does_not: "writes still wait for commits, or for the processor that others' fsyncs need",
};

pub(super) fn findings(data: &Data) -> Vec<Finding> {
    let gains = |claims: &[(Claim, f64); 3], lines: [Line; 3]| -> Vec<Finding> {
        let found = |(line, (claim, theirs)): (Line, &(Claim, f64))| {
            claim.gain(data, line.with(DELAY), line, *theirs)
        };
        lines.into_iter().zip(claims).map(found).collect()
    };
    let mut all = gains(&METARATES_GAINS, METARATES);
    all.push(fewer_clients_gain_more(data));
    all.push(waits_less(data));
    all.extend(gains(&IOZONE_GAINS, IOZONE));
    all.push(unblocked(data));
    all.push(like_nojc(data));
    all.push(fewer_commits(data));
    all.push(rises(data));
    all
}

fn fewer_clients_gain_more(data: &Data) -> Finding {
    let of = |line: Line| range(&data.over(line.with(DELAY), line)).map(|(_, most)| most);
    let gains: Vec<f64> = METARATES.into_iter().filter_map(of).collect();
    let falling = gains
        .windows(2)
        .filter(|pair| pair[0] > 1.01 * pair[1])
        .count();
    let verdict = match gains.len() {
        3 => share(falling, 2),
        _ => Verdict::NotMeasured,
    };
    let words: Vec<String> = gains.into_iter().map(number).collect();
    FEWER_CLIENTS_GAIN_MORE.found(verdict, format!("up to {}", words.join(", ")))
}

fn waits_less(data: &Data) -> Finding {
    let curve = |line: Line| data.curve(line, fsync_ms);
    let of = |line: Line| WAITS_LESS.below(&curve(line.with(DELAY)), &curve(line), "");
    let found = METARATES.map(|line| (line, of(line)));
    let words =
        |(line, finding): &(Line, Finding)| format!("{}{}, ms", line.threads, finding.found);
    let text: Vec<String> = found.iter().map(words).collect();
    WAITS_LESS.found(
        together(found.iter().map(|(_, f)| f.verdict)),
        text.join("; "),
    )
}

fn fewer_commits(data: &Data) -> Finding {
    let curve = |line: Line| data.curve(line, commits_per_fsync);
    let of = |line: Line| FEWER_COMMITS.below(&curve(line.with(DELAY)), &curve(line), "");
    let lines: Vec<Line> = METARATES.into_iter().chain(IOZONE).collect();
    let found: Vec<(Line, Finding)> = lines.into_iter().map(|line| (line, of(line))).collect();
    let words = |(line, finding): &(Line, Finding)| {
        format!("{} {}{}", line.workload, line.threads, finding.found)
    };
    let text: Vec<String> = found.iter().map(words).collect();
    let verdict = together(found.iter().map(|(_, f)| f.verdict));
    FEWER_COMMITS.found(verdict, format!("commits per fsync: {}", text.join("; ")))
}

/// The delays that are left of stock's: none but a tenth agrees, less than stock's in part.
fn unblocked(data: &Data) -> Finding {
    let mean = |line: Line| {
        let curve = data.curve(line, delays_per_file);
        let sum: f64 = curve.iter().map(|(_, spread)| spread.median).sum();
        (!curve.is_empty()).then(|| sum / curve.len() as f64)
    };
    let pairs: Vec<(Line, f64, f64)> = IOZONE
        .into_iter()
        .filter_map(|line| Some((line, mean(line)?, mean(line.with(DELAY))?)))
        .collect();
    let verdict = if pairs.is_empty() {
        Verdict::NotMeasured
    } else if pairs.iter().all(|(_, stock, delay)| *delay <= 0.1 * stock) {
        Verdict::Agrees
    } else if pairs.iter().any(|(_, stock, delay)| *delay < 0.9 * stock) {
        Verdict::Partly
    } else {
        Verdict::DoesNot
    };
    let words: Vec<String> = pairs
        .iter()
        .map(|(line, stock, delay)| {
            format!(
                "{} {} instead of {}",
                line.workload,
                number(*delay),
                number(*stock)
            )
        })
        .collect();
    UNBLOCKED.found(
        verdict,
        format!(
            "write delays per file, mean of all speeds: {}",
            words.join("; ")
        ),
    )
}

fn like_nojc(data: &Data) -> Finding {
    let of = |line: Line| range(&data.over(line.with(DELAY), line.nojc()));
    let found: Vec<(Line, (f64, f64))> = IOZONE
        .into_iter()
        .filter_map(|line| Some((line, of(line)?)))
        .collect();
    let alike = found.iter().filter(|(_, (least, _))| *least >= 0.9).count();
    let words: Vec<String> = found
        .iter()
        .map(|(line, (least, most))| {
            format!(
                "{} {} to {} times NOJC",
                line.workload,
                number(*least),
                number(*most)
            )
        })
        .collect();
    LIKE_NOJC.found(share(alike, found.len()), words.join("; "))
}

/// The fastest speed over the slowest, by more than noise.
fn rises(data: &Data) -> Finding {
    let last = |line: Line| Some(data.normalized(line.nojc()).last()?.1.median);
    let found: Vec<(Line, f64)> = METARATES
        .into_iter()
        .chain(IOZONE)
        .filter_map(|line| Some((line, last(line)?)))
        .collect();
    let risen = found.iter().filter(|(_, ratio)| *ratio > 1.03).count();
    let words: Vec<String> = found
        .iter()
        .map(|(line, ratio)| format!("{} {}: {}", line.workload, line.threads, number(*ratio)))
        .collect();
    RISES.found(
        share(risen, found.len()),
        format!("fastest over slowest: {}", words.join("; ")),
    )
}

/// Of several: all, some, or none.
pub(super) fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let known: Vec<Verdict> = verdicts.filter(|v| *v != Verdict::NotMeasured).collect();
    let all = |wanted| known.iter().all(|verdict| *verdict == wanted);
    if known.is_empty() {
        Verdict::NotMeasured
    } else if all(Verdict::Agrees) {
        Verdict::Agrees
    } else if all(Verdict::DoesNot) {
        Verdict::DoesNot
    } else {
        Verdict::Partly
    }
}

pub(super) fn tables(data: &Data) -> Vec<(String, Table)> {
    let mut all = Vec::new();
    for (part, line) in ["4.10a", "4.10b", "4.10c"].into_iter().zip(METARATES) {
        let table = BySpeed::new(data)
            .rate(line, "files/s")
            .normalized(line)
            .normalized(line.nojc())
            .normalized(line.with(DELAY))
            .over(line.with(DELAY), line)
            .over(line.with("kernel:auto"), line)
            .figure(line, "mean fsync, ms", fsync_ms)
            .figure(line.with(DELAY), "mean fsync, ms", fsync_ms);
        let title = format!("**Figure {part}**, Metarates, {} processes:", line.threads);
        all.push((title, table.end()));
    }
    for (part, line) in ["4.11a", "4.11b", "4.11c"].into_iter().zip(IOZONE) {
        let table = BySpeed::new(data)
            .rate(line, "KiB/s")
            .normalized(line)
            .normalized(line.nojc())
            .normalized(line.with(DELAY))
            .over(line.with(DELAY), line)
            .over(line.with("kernel:auto"), line)
            .figure(line, "write delays per file", delays_per_file)
            .figure(line.with(DELAY), "write delays per file", delays_per_file);
        let title = format!("**Figure {part}**, {}, 256 threads:", line.workload);
        all.push((title, table.end()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_verdicts_are_one() {
        use Verdict::{Agrees, DoesNot, NotMeasured, Partly};
        for (verdicts, expected) in [
            (vec![Agrees, Agrees, NotMeasured], Agrees),
            (vec![Agrees, DoesNot], Partly),
            (vec![DoesNot, DoesNot], DoesNot),
            (vec![NotMeasured], NotMeasured),
        ] {
            assert_eq!(together(verdicts.into_iter()), expected);
        }
    }
}
