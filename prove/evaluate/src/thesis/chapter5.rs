//! Chapter 5: PID batching and heuristic copy-out.

mod claims;

use super::super::report::{Table, number};
use super::chapter4::together;
use super::data::{
    Data, Line, commits_per_fsync, delayed_percent, delays_per_file, fsync_ms, mean_delay_ms, range,
};
use super::finding::{Claim, Finding, NOISE, Verdict, share};
use super::tables::BySpeed;
use claims::{
    COPY_GAINS, COPY_STEADIES, COPY_UNBLOCKS, OLTP_BOTH, OLTP_DELAY, OLTP_DELAYED, OLTP_GAINS,
    OLTP_PID, OLTP_STEADY, PID_GAINS, PID_SHORTENS, PID_STEADIES, THREADS_DELAY, THREADS_GAIN,
    TOGETHER, VARMAIL_COMMITS, VARMAIL_FALLS, VARMAIL_GAINS, VARMAIL_SHORTENS,
};

const STOCK: &str = "kernel:off";
const PID: &str = "kernel:pid";
const COPY_OUT: &str = "kernel:copy-out";
const LUC: &str = "kernel:luc";

const METARATES: Line = Line::new("metarates", 4, STOCK);
const IOZONE: Line = Line::new("iozone-128k", 256, STOCK);
const VARMAIL: Line = Line::new("varmail", 64, STOCK);
const OLTP: Line = Line::new("oltp", 48, STOCK);

/// Numbers of threads of figures 5.11 and 5.12.
const THREADS: [Line; 6] = [
    Line::new("varmail-few", 4, STOCK),
    Line::new("varmail-threads", 8, STOCK),
    Line::new("varmail-few", 16, STOCK),
    Line::new("varmail-threads", 32, STOCK),
    VARMAIL,
    Line::new("varmail-threads", 128, STOCK),
];

/// And of figure 5.15.
const COMBINED: [Line; 4] = [THREADS[1], THREADS[3], THREADS[4], THREADS[5]];

pub(super) fn findings(data: &Data) -> Vec<Finding> {
    let fsync = |line: Line| data.curve(line, fsync_ms);
    let delays = |line: Line| data.curve(line, delays_per_file);
    let commits = |line: Line| data.curve(line, commits_per_fsync);
    vec![
        PID_GAINS.gain(data, METARATES.with(PID), METARATES, 2.26),
        steadies(PID_STEADIES, data, METARATES, METARATES.with(PID)),
        PID_SHORTENS.below(
            &fsync(METARATES.with(PID)),
            &fsync(METARATES),
            "mean fsync, ms",
        ),
        COPY_GAINS.gain(data, IOZONE.with(COPY_OUT), IOZONE, 1.0),
        steadies(COPY_STEADIES, data, IOZONE, IOZONE.with(COPY_OUT)),
        COPY_UNBLOCKS.below(
            &delays(IOZONE.with(COPY_OUT)),
            &delays(IOZONE),
            "write delays per file",
        ),
        VARMAIL_GAINS.gain(data, VARMAIL.with(PID), VARMAIL, 1.23),
        VARMAIL_FALLS.slowdown(data, &[VARMAIL], 0.08),
        VARMAIL_SHORTENS.below(&fsync(VARMAIL.with(PID)), &fsync(VARMAIL), "mean fsync, ms"),
        VARMAIL_COMMITS.below(
            &commits(VARMAIL.with(PID)),
            &commits(VARMAIL),
            "commits per fsync",
        ),
        threads_gain(data),
        threads_delay(data),
        OLTP_GAINS.gain(data, OLTP.with(COPY_OUT), OLTP, 1.25),
        OLTP_STEADY.no_slowdown(data, &[OLTP, OLTP.with(COPY_OUT)]),
        OLTP_PID.no_change(data, OLTP.with(PID), OLTP),
        OLTP_DELAY.no_change(data, OLTP.with("kernel:delay"), OLTP),
        OLTP_BOTH.no_change(data, OLTP.with(LUC), OLTP.with(COPY_OUT)),
        delayed(data),
        combined(data),
    ]
}

/// `line` falls, and `with` by less: agrees if by less than half, in part if by less. Where `line` does not fall, there
/// is nothing to agree with.
fn steadies(claim: Claim, data: &Data, line: Line, with: Line) -> Finding {
    let fall = |line| Some(data.greatest_fall(line)?.share.max(0.0));
    let (Some(before), Some(after)) = (fall(line), fall(with)) else {
        return claim.found(Verdict::NotMeasured, "-".to_owned());
    };
    let verdict = if before <= NOISE || after >= before {
        Verdict::DoesNot
    } else if after < before / 2.0 {
        Verdict::Agrees
    } else {
        Verdict::Partly
    };
    claim.found(
        verdict,
        format!(
            "greatest fall {:.1} % without, {:.1} % with",
            before * 100.0,
            after * 100.0
        ),
    )
}

/// At the slowest and the fastest speed of all.
fn ends(data: &Data) -> Vec<u64> {
    let speeds = &data.speeds;
    speeds
        .first()
        .into_iter()
        .chain(speeds.last())
        .copied()
        .collect()
}

fn threads_gain(data: &Data) -> Finding {
    let ends = ends(data);
    let ratios: Vec<f64> = THREADS[..5]
        .iter()
        .flat_map(|line| data.over(line.with(PID), *line))
        .filter(|(mips, _)| ends.contains(mips))
        .map(|(_, spread)| spread.median)
        .collect();
    let gains = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    THREADS_GAIN.found(
        share(gains, ratios.len()),
        format!(
            "{} to {} times; faster in {gains} of {} cases",
            number(least),
            number(most),
            ratios.len()
        ),
    )
}

fn threads_delay(data: &Data) -> Finding {
    let slowest = data.speeds.first().copied();
    let at = |curve: super::data::Curve| {
        let found = curve.into_iter().find(|(mips, _)| Some(*mips) == slowest);
        found.map(|(_, spread)| spread.median)
    };
    let rates: Vec<f64> = THREADS[..5]
        .iter()
        .filter_map(|l| at(data.rates(*l)))
        .collect();
    let waits: Vec<f64> = THREADS[..5]
        .iter()
        .filter_map(|line| at(data.curve(*line, fsync_ms)))
        .collect();
    let grows = |values: &[f64]| {
        let steps = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
        share(steps, values.len().saturating_sub(1))
    };
    let list = |values: &[f64]| {
        let words: Vec<String> = values.iter().copied().map(number).collect();
        words.join(", ")
    };
    THREADS_DELAY.found(
        together([grows(&rates), grows(&waits)].into_iter()),
        format!(
            "ext4 at the slowest speed, 4 to 64 threads: {} operations/s; mean fsync {} ms",
            list(&rates),
            list(&waits)
        ),
    )
}

/// Agrees if oltp's share is within a third to three times of the thesis' and varMail's is below a tenth of it; in part
/// if oltp's is the greater.
fn delayed(data: &Data) -> Finding {
    let of = |line: Line| {
        let (_, share) = range(&data.curve(line, delayed_percent))?;
        Some((
            share,
            range(&data.curve(line, mean_delay_ms)).map(|(_, ms)| ms),
        ))
    };
    let (Some((oltp, oltp_ms)), Some((varmail, varmail_ms))) = (of(OLTP), of(VARMAIL)) else {
        return OLTP_DELAYED.found(Verdict::NotMeasured, "-".to_owned());
    };
    let verdict = if (10.0..=96.0).contains(&oltp) && varmail < 0.1 * oltp {
        Verdict::Agrees
    } else if oltp > varmail {
        Verdict::Partly
    } else {
        Verdict::DoesNot
    };
    let ms = |ms: Option<f64>| ms.map_or("-".to_owned(), number);
    OLTP_DELAYED.found(
        verdict,
        format!(
            "of changes of metadata at most {} % are delayed in oltp, {} ms each; {} % in varMail, {} ms",
            number(oltp),
            ms(oltp_ms),
            number(varmail),
            ms(varmail_ms)
        ),
    )
}

fn combined(data: &Data) -> Finding {
    let medians = |with: &str| -> Vec<f64> {
        let policy = [PID, COPY_OUT, LUC]
            .into_iter()
            .find(|policy| *policy == with);
        let policy = policy.unwrap_or(STOCK);
        let curves = COMBINED
            .iter()
            .map(|line| data.over(line.with(policy), *line));
        curves.flatten().map(|(_, spread)| spread.median).collect()
    };
    let batched = [medians(PID), medians(LUC)].concat();
    let copied = medians(COPY_OUT);
    let no_worse = batched.iter().filter(|ratio| **ratio >= 0.97).count();
    let same = copied
        .iter()
        .filter(|ratio| (0.97..=1.03).contains(*ratio))
        .count();
    let words = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        format!("{} to {}", number(least), number(most))
    };
    TOGETHER.found(
        together([share(no_worse, batched.len()), share(same, copied.len())].into_iter()),
        format!(
            "with PID batching {} times ext4, not below in {no_worse} of {} cases; copy-out alone {}",
            words(&batched),
            batched.len(),
            words(&copied)
        ),
    )
}

pub(super) fn tables(data: &Data) -> Vec<(String, Table)> {
    let metarates = BySpeed::new(data)
        .normalized(METARATES)
        .normalized(METARATES.with(PID))
        .over(METARATES.with(PID), METARATES)
        .over(METARATES.with("kernel:auto"), METARATES)
        .figure(METARATES, "mean fsync, ms", fsync_ms)
        .figure(METARATES.with(PID), "mean fsync, ms", fsync_ms);
    let iozone = BySpeed::new(data)
        .normalized(IOZONE)
        .normalized(IOZONE.with(COPY_OUT))
        .over(IOZONE.with(COPY_OUT), IOZONE)
        .over(IOZONE.with(LUC), IOZONE)
        .over(IOZONE.with("kernel:auto"), IOZONE)
        .figure(IOZONE, "write delays per file", delays_per_file)
        .figure(
            IOZONE.with(COPY_OUT),
            "write delays per file",
            delays_per_file,
        );
    let varmail = BySpeed::new(data)
        .rate(VARMAIL, "operations/s")
        .normalized(VARMAIL)
        .normalized(VARMAIL.with(PID))
        .over(VARMAIL.with(PID), VARMAIL)
        .over(VARMAIL.with(COPY_OUT), VARMAIL)
        .over(VARMAIL.with(LUC), VARMAIL)
        .over(VARMAIL.with("kernel:auto"), VARMAIL)
        .figure(VARMAIL, "mean fsync, ms", fsync_ms)
        .figure(VARMAIL.with(PID), "mean fsync, ms", fsync_ms)
        .figure(VARMAIL, "commits per fsync", commits_per_fsync)
        .figure(VARMAIL.with(PID), "commits per fsync", commits_per_fsync);
    let oltp = BySpeed::new(data)
        .rate(OLTP, "operations/s")
        .normalized(OLTP)
        .normalized(OLTP.with(COPY_OUT))
        .over(OLTP.with(COPY_OUT), OLTP)
        .over(OLTP.with(PID), OLTP)
        .over(OLTP.with("kernel:delay"), OLTP)
        .over(OLTP.with(LUC), OLTP)
        .over(OLTP.with("kernel:auto"), OLTP)
        .figure(OLTP, "changes of metadata delayed, %", delayed_percent)
        .figure(OLTP, "their mean delay, ms", mean_delay_ms)
        .figure(
            OLTP.with(COPY_OUT),
            "changes of metadata delayed, %",
            delayed_percent,
        );
    vec![
        ("**Figure 5.8**, Metarates, 4 processes, PID batching:".to_owned(), metarates.end()),
        ("**Figure 5.9**, IOzone, 256 threads, 128 KB / 32 KB, heuristic copy-out:".to_owned(), iozone.end()),
        ("**Figure 5.10**, varMail, 64 threads:".to_owned(), varmail.end()),
        (
            "**Figures 5.11 and 5.12**, varMail by threads, at the fastest and the slowest speed:".to_owned(),
            by_threads(data),
        ),
        (
            "**Figures 5.13 and 5.14**, oltp; 5.14 is the last column (the thesis: 1.25 with copy-out and with both, \
             the others as ext4):"
                .to_owned(),
            oltp.end(),
        ),
        (
            "**Figure 5.15**, varMail with both controllers, times ext4, by threads and speed:".to_owned(),
            combinations(data),
        ),
    ]
}

fn at(curve: &super::data::Curve, mips: u64) -> String {
    let found = curve.iter().find(|(speed, _)| *speed == mips);
    found.map_or("-".to_owned(), |(_, spread)| spread.text())
}

fn by_threads(data: &Data) -> Table {
    let mut table = Table::new(&[
        "MIPS, threads",
        "ext4, operations/s",
        "PID batching",
        "mean fsync, ms: ext4",
        "PID batching",
    ]);
    for mips in ends(data).into_iter().rev() {
        for line in &THREADS[..5] {
            let fsync = |line: Line| at(&data.curve(line, fsync_ms), mips);
            let cells = [
                at(&data.rates(*line), mips),
                at(&data.rates(line.with(PID)), mips),
                fsync(*line),
                fsync(line.with(PID)),
            ];
            if cells.iter().any(|cell| cell != "-") {
                let name = format!("{mips}, {}", line.threads);
                table.row(std::iter::once(name).chain(cells).collect());
            }
        }
    }
    table
}

fn combinations(data: &Data) -> Table {
    let mut table = Table::new(&[
        "MIPS, threads",
        "PID batching",
        "heuristic copy-out",
        "LUC (both)",
    ]);
    for mips in data.speeds_of(COMBINED[0]) {
        for line in COMBINED {
            let cells = [PID, COPY_OUT, LUC].map(|p| at(&data.over(line.with(p), line), mips));
            if cells.iter().any(|cell| cell != "-") {
                let name = format!("{mips}, {}", line.threads);
                table.row(std::iter::once(name).chain(cells).collect());
            }
        }
    }
    table
}
