//! A report for a terminal: findings first, then their figures.

use std::fmt;
use std::io::{self, Write};

use luc_events::Dev;
use luc_explain::{
    Actor, AnalysisObserver, BlameReport, CallKindReport, CallTimePart, CallTimeParts,
    CommitReport, FileSystemReport, Finding, FindingKind, LatencyDistribution, Remedy, SyncReport,
    TimeAccount, TraceReport,
};
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};
// Names come from traces: nothing in them may steer a terminal.
use luc_units::plain as clean;

use crate::ReportExport;
use crate::evidence_text::evidence;

/// Maximum number of shown rows of a list.
const MAX_ROWS: usize = 10;
/// Minimum share of a part that is shown.
const MIN_SHARE: f64 = 0.005;
/// Length of a full bar, in characters.
const BAR_LENGTH: f64 = 40.0;

/// Shows a report, with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct ReportText<'a> {
    pub report: &'a TraceReport,
    /// Whether to use colours.
    pub colours: bool,
}

/// Writer of a report's text, without colours.
#[derive(Debug)]
pub struct PlainTextWriter<W>(pub W);

impl<W> AnalysisObserver for PlainTextWriter<W> {}

impl<W: Write> ReportExport for PlainTextWriter<W> {
    fn finish(mut self: Box<Self>, report: &TraceReport) -> io::Result<()> {
        let colours = false;
        write!(self.0, "{}", ReportText { report, colours })?;
        self.0.flush()
    }
}

impl fmt::Display for ReportText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        self.trace(f)?;
        let is_by_cost = report.findings.is_sorted_by(|a, b| a.cost_ns >= b.cost_ns);
        self.title(
            f,
            match is_by_cost {
                true => "Findings, most time lost first",
                false => "Findings, what can be cured first",
            },
        )?;
        if report.findings.is_empty() {
            writeln!(f, "  none: no call on a file system is in the trace")?;
        }
        for (number, finding) in report.findings.iter().enumerate() {
            self.finding(f, number + 1, finding)?;
        }
        if !report.remedies.is_empty() {
            self.title(f, "What would help and loses no data")?;
        }
        for remedy in &report.remedies {
            self.remedy(f, remedy)?;
        }
        if !report.warnings.is_empty() {
            self.title(f, "Beware")?;
        }
        for warning in &report.warnings {
            writeln!(f, "  - {}{}", self.on(warning.dev), clean(&warning.sentence))?;
        }
        for file_system in report.file_systems.iter().filter(|found| found.is_used()) {
            self.file_system(f, file_system)?;
        }
        self.services(f)?;
        self.sharing(f)?;
        self.blame(f)?;
        self.accounts(f)
    }
}

impl ReportText<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        if self.colours { writeln!(f, "\n\x1b[1m{title}\x1b[0m") } else { writeln!(f, "\n{title}") }
    }

    fn trace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = &self.report.trace;
        let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
        write!(
            f,
            "{} on {} (Linux {}, {} processors): {} events",
            FormattedTime::from(length_ns),
            clean(&trace.host),
            clean(&trace.kernel),
            trace.processors,
            trace.events
        )?;
        if !trace.command.is_empty() {
            write!(f, " of `{}`", clean(&trace.command))?;
        }
        writeln!(f)?;
        if !trace.complete {
            writeln!(f, "the recorder was killed: its last moments may be missing")?;
        }
        for (table, count) in &self.report.lost {
            writeln!(f, "lost: {count} {}", clean(table))?;
        }
        Ok(())
    }

    /// `/srv/mail (7:0): `, or nothing.
    fn on(&self, dev: Option<Dev>) -> String {
        dev.map_or_else(String::new, |dev| format!("{}: ", self.place(dev)))
    }

    fn place(&self, dev: Dev) -> String {
        let mounted = self
            .report
            .file_systems
            .iter()
            .find(|found| found.dev == dev && !found.mount_point.is_empty());
        match mounted {
            Some(found) => format!("{} ({dev})", clean(&found.mount_point)),
            None => dev.to_string(),
        }
    }

    fn finding(&self, f: &mut fmt::Formatter<'_>, number: usize, found: &Finding) -> fmt::Result {
        writeln!(f, "{number:>3}. {}{}", self.on(found.dev), clean(&found.sentence))?;
        let kind = found.kind.name().replace('_', " ");
        match found.kind {
            FindingKind::NotStorage => writeln!(f, "     {kind}")?,
            _ => writeln!(
                f,
                "     {kind}: {} of thread time, {} of the working time",
                FormattedTime::from(found.cost_ns),
                FormattedShare(found.share)
            )?,
        }
        for (role, actor) in [("lost most", &found.victim), ("whose work", &found.culprit)] {
            if let Some(actor) = actor {
                writeln!(f, "     {role}: {}", who(actor))?;
            }
        }
        for figure in &found.evidence {
            writeln!(f, "     {}: {}", figure.what, evidence(figure))?;
        }
        Ok(())
    }

    fn remedy(&self, f: &mut fmt::Formatter<'_>, remedy: &Remedy) -> fmt::Result {
        let gain = match remedy.predicted_gain {
            Some(gain) => format!("predicted {:+.0} %", gain * 100.0),
            None => "no prediction".to_owned(),
        };
        writeln!(
            f,
            "  - {}{}: {gain} ({})",
            self.on(remedy.dev),
            clean(&remedy.sentence),
            remedy.basis
        )
    }

    fn file_system(&self, f: &mut fmt::Formatter<'_>, found: &FileSystemReport) -> fmt::Result {
        let mut about =
            vec![if found.kind.is_empty() { "file system".to_owned() } else { clean(&found.kind) }];
        if found.journal_bytes > 0 {
            about.push(format!("journal {}", FormattedSize(found.journal_bytes as f64)));
        }
        if found.fast_commit {
            about.push("fast_commit".to_owned());
        }
        self.title(f, &format!("{}, {}", self.place(found.dev), about.join(", ")))?;
        syncs(f, &found.syncs)?;
        let model = &found.fsync_model;
        if model.count > 0 {
            writeln!(
                f,
                "  Algorithm 4.1: {:.2} commits waited for by each; {} measured, {} predicted (error {}); \
                 by transaction: {} (error {})",
                model.commits_waited,
                FormattedTime(model.measured_ns),
                FormattedTime(model.predicted_ns),
                FormattedShare(model.error),
                FormattedTime(model.ours_ns),
                FormattedShare(model.our_error)
            )?;
        }
        commits(f, &found.commits)?;
        for (name, call) in &found.calls {
            other_call(f, name, call)?;
        }
        Ok(())
    }

    fn blame(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.report.blame.is_empty() {
            return Ok(());
        }
        self.title(f, "Who waited for whose work in commits")?;
        writeln!(
            f,
            "  {:<28} {:<28} {:>10} {:>14} {:>8}",
            "waited", "for the work of", "time", "its data added", "waits"
        )?;
        for blame in self.report.blame.iter().take(MAX_ROWS) {
            let BlameReport { victim, culprit, .. } = blame;
            writeln!(
                f,
                "  {:<28} {:<28} {:>10} {:>14} {:>8}",
                who(victim),
                if victim == culprit { "itself".to_owned() } else { who(culprit) },
                FormattedTime::from(blame.waited_ns),
                FormattedTime::from(blame.load_ns),
                blame.waits
            )?;
        }
        more(f, self.report.blame.len())
    }

    fn accounts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts = &self.report.accounts.processes;
        if accounts.is_empty() {
            return Ok(());
        }
        self.title(f, "Where processes' time went, summed over threads")?;
        writeln!(
            f,
            "  {:<28} {:>10} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8}",
            "process", "wall", "user", "system", "runnable", "storage", "blocked", "idle"
        )?;
        for account in accounts.iter().take(MAX_ROWS) {
            account_row(f, account)?;
        }
        more(f, accounts.len())
    }
}

fn account_row(f: &mut fmt::Formatter<'_>, account: &TimeAccount) -> fmt::Result {
    let share = |ns: u64| FormattedShare::of(ns, account.wall_ns);
    let name = match account.process {
        Some(process) => format!("{} ({process})", clean(&account.comm)),
        None => clean(&account.comm),
    };
    writeln!(
        f,
        "  {name:<28} {:>10} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8}",
        FormattedTime::from(account.wall_ns),
        share(account.user_ns),
        share(account.system_ns),
        share(account.runnable_ns),
        share(account.storage_ns),
        share(account.blocked.values().sum::<u64>()),
        share(account.idle_ns)
    )
}

fn more(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    match count.saturating_sub(MAX_ROWS) {
        0 => Ok(()),
        left => writeln!(f, "  ... and {left} more (--json has all)"),
    }
}

fn syncs(f: &mut fmt::Formatter<'_>, syncs: &SyncReport) -> fmt::Result {
    if syncs.latency.count == 0 {
        return Ok(());
    }
    let kinds: Vec<String> =
        syncs.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    writeln!(
        f,
        "  {} by {} threads, {:.0}/s: {}",
        kinds.join(", "),
        syncs.callers,
        syncs.per_s,
        latency(&syncs.latency)
    )?;
    parts(f, &syncs.parts)
}

fn commits(f: &mut fmt::Formatter<'_>, commits: &CommitReport) -> fmt::Result {
    for (name, durations) in [("commits", &commits.full), ("fast commits", &commits.fast)] {
        if durations.count > 0 {
            writeln!(f, "  {} {name}: {}", durations.count, latency(durations))?;
        }
    }
    if commits.serving > 0 {
        writeln!(f, "  {:.1} fsyncs served by each", commits.syncs_per_commit)?;
    }
    for by in commits.by.iter().take(MAX_ROWS) {
        writeln!(
            f,
            "    {:<28} asked for {}, {} handles, {} blocks, {} of data",
            who(&by.actor),
            by.asked,
            by.handles,
            by.blocks,
            FormattedSize(by.data_bytes as f64)
        )?;
    }
    more(f, commits.by.len())
}

fn other_call(f: &mut fmt::Formatter<'_>, name: &str, call: &CallKindReport) -> fmt::Result {
    if call.latency.count == 0 {
        return Ok(());
    }
    writeln!(f, "  {} {name}: {}", call.latency.count, latency(&call.latency))?;
    parts(f, &call.parts)
}

/// Writes the parts of a time with bars, largest first.
fn parts(f: &mut fmt::Formatter<'_>, parts: &CallTimeParts) -> fmt::Result {
    let whole = parts.sum();
    let mut shares: Vec<(CallTimePart, f64)> = parts
        .iter()
        .map(|(part, ns)| (part, FormattedShare::of(ns, whole).0))
        .filter(|(_, share)| *share >= MIN_SHARE)
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (part, share) in shares {
        let bar = "#".repeat((share * BAR_LENGTH).round() as usize);
        let name = part.name().replace('_', " ");
        let line = format!("    {name:<16} {:>7}  {bar}", FormattedShare(share));
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn latency(latency: &LatencyDistribution) -> String {
    format!(
        "mean {}, median {}, p99 {}, longest {}",
        FormattedTime::from(latency.mean_ns),
        FormattedTime::from(latency.p50_ns),
        FormattedTime::from(latency.p99_ns),
        FormattedTime::from(latency.max_ns)
    )
}

fn who(actor: &Actor) -> String {
    if actor.comm.is_empty() {
        return format!("process {}", actor.process);
    }
    format!("{} ({})", clean(&actor.comm), actor.process)
}

mod disk_sharing;
mod service_latencies;
#[cfg(test)]
mod tests;

pub(crate) use disk_sharing::summary;
pub(crate) use service_latencies::peer;
