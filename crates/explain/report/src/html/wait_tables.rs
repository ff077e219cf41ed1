//! Tables of waits by victim and culprit, of the slowest fsyncs, of disks, and of all time.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use luc_explain::{Actor, TimeAccount, TraceReport};
use luc_graphs::html_escape::EscapedText;
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};

use super::findings::{place, who};
use super::table_markup::{self, HtmlColumn, HtmlRow};
use crate::text::peer;

/// Maximum number of victims and of culprits in the matrix.
const MAX_ACTORS: usize = 12;
/// Maximum number of rows of other tables.
const MAX_ROWS: usize = 25;

/// Writes "... and 7 more", if rows are left out.
pub(super) fn more(out: &mut String, count: usize, shown: usize) -> fmt::Result {
    match count.saturating_sub(shown) {
        0 => Ok(()),
        left => writeln!(
            out,
            "<p class=\"quiet\">… and {left} more, in <code>luc explain --json</code>.</p>"
        ),
    }
}

/// Process and cgroup: a process has a row for each cgroup.
type Id = (u32, u64);

fn id(actor: &Actor) -> Id {
    (actor.process.0, actor.cgroup.0)
}

/// Victims, culprits and times, largest sums first.
#[derive(Default)]
struct Matrix<'a> {
    cells: BTreeMap<(Id, Id), (u64, u64, u64)>,
    victims: Vec<(&'a Actor, u64)>,
    culprits: Vec<(&'a Actor, u64)>,
}

impl<'a> Matrix<'a> {
    fn of(report: &'a TraceReport) -> Self {
        let mut matrix = Self::default();
        for blame in &report.blame {
            let (victim, culprit) = (&blame.victim, &blame.culprit);
            let cell = matrix.cells.entry((id(victim), id(culprit))).or_default();
            cell.0 = cell.0.saturating_add(blame.waited_ns);
            cell.1 = cell.1.saturating_add(blame.load_ns);
            cell.2 = cell.2.saturating_add(blame.waits);
            add_time(&mut matrix.victims, victim, blame.waited_ns);
            add_time(&mut matrix.culprits, culprit, blame.waited_ns);
        }
        for actors in [&mut matrix.victims, &mut matrix.culprits] {
            actors.sort_by_key(|&(actor, ns)| (std::cmp::Reverse(ns), id(actor)));
        }
        matrix
    }
}

fn add_time<'a>(sums: &mut Vec<(&'a Actor, u64)>, actor: &'a Actor, ns: u64) {
    match sums.iter_mut().find(|(found, _)| id(found) == id(actor)) {
        Some((_, sum)) => *sum = sum.saturating_add(ns),
        None => sums.push((actor, ns)),
    }
}

/// Writes the matrix of victims and culprits.
pub(super) fn blame(out: &mut String, report: &TraceReport) -> fmt::Result {
    if report.blame.is_empty() {
        return Ok(());
    }
    let matrix = Matrix::of(report);
    let most_ns = matrix.cells.values().map(|cell| cell.0).max().unwrap_or(0);
    writeln!(
        out,
        "<section id=\"blame\"><h2>Who waited for whose work</h2><p class=\"quiet\">Time that a process (row) \
         waited for commits and data, shared out by whose bytes (column) were in them. <span class=\"hint\">Point at a \
         cell for what the culprit's data added.</span></p><div class=\"scroll\"><table class=\"matrix\"><thead><tr><th scope=\"col\">waited \
         ↓ for the work of →</th>"
    )?;
    let culprits: Vec<_> = matrix.culprits.iter().take(MAX_ACTORS).collect();
    for (culprit, _) in &culprits {
        write!(out, "<th scope=\"col\">{}</th>", who(culprit))?;
    }
    writeln!(out, "<th scope=\"col\" class=\"number\">all</th></tr></thead><tbody>")?;
    for (victim, sum_ns) in matrix.victims.iter().take(MAX_ACTORS) {
        write!(out, "<tr><th scope=\"row\">{}</th>", who(victim))?;
        for (culprit, _) in &culprits {
            match matrix.cells.get(&(id(victim), id(culprit))) {
                Some(&(waited_ns, load_ns, waits)) => {
                    let itself = if id(victim) == id(culprit) { " itself" } else { "" };
                    let heat =
                        (FormattedShare::of(waited_ns, most_ns).0.sqrt() * 100.0).clamp(4.0, 100.0);
                    write!(
                        out,
                        "<td class=\"heat{itself}\" style=\"--heat:{heat:.0}%\" title=\"{waits} waits; the culprit's data \
                         added {}\">{}</td>",
                        FormattedTime::from(load_ns),
                        FormattedTime::from(waited_ns)
                    )?;
                }
                None => write!(out, "<td></td>")?,
            }
        }
        writeln!(out, "<td class=\"number\">{}</td></tr>", FormattedTime::from(*sum_ns))?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, matrix.victims.len().max(matrix.culprits.len()), MAX_ACTORS)?;
    writeln!(out, "</section>")
}

pub(super) fn slowest(out: &mut String, report: &TraceReport) -> fmt::Result {
    if report.slowest.is_empty() {
        return Ok(());
    }
    write!(out, "<section id=\"slowest\"><h2>The slowest fsyncs</h2>")?;
    let columns = [
        HtmlColumn::Number("Took"),
        HtmlColumn::Text("Process"),
        HtmlColumn::Text("Call"),
        HtmlColumn::Text("File system"),
        HtmlColumn::Number("Inode"),
        HtmlColumn::Number("Began at"),
        HtmlColumn::Number("Commits"),
        HtmlColumn::Bars("What it was made of"),
    ];
    table_markup::begin(out, "", &columns)?;
    for slow in report.slowest.iter().take(MAX_ROWS) {
        HtmlRow::begin(out)
            .number(FormattedTime::from(slow.duration_ns))
            .head(who(&slow.actor))
            .text(slow.kind)
            .text(place(report, slow.dev))
            .number(slow.inode)
            .number(FormattedTime::from(slow.enter_ns.saturating_sub(report.trace.start_ns)))
            .number(slow.commits.len())
            .parts(&slow.parts)
            .end();
    }
    table_markup::end(out);
    more(out, report.slowest.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

/// Writes the latencies of services.
pub(super) fn services(out: &mut String, report: &TraceReport) -> fmt::Result {
    if report.services.is_empty() {
        return Ok(());
    }
    write!(out, "<section id=\"services\"><h2>How long requests took</h2>")?;
    let columns = [
        HtmlColumn::Text("Program"),
        HtmlColumn::Text("Side"),
        HtmlColumn::Number("Port"),
        HtmlColumn::Text("Peer"),
        HtmlColumn::Number("Requests/s"),
        HtmlColumn::Number("Median"),
        HtmlColumn::Number("p99"),
        HtmlColumn::Number("p99.9"),
        HtmlColumn::Number("Worst interval: p99"),
        HtmlColumn::Number("It began at"),
    ];
    table_markup::begin(out, "", &columns)?;
    for service in report.services.iter().take(MAX_ROWS) {
        let latency = &service.latency;
        HtmlRow::begin(out)
            .head(EscapedText(&service.program))
            .text(service.side)
            .number(service.port)
            .text(EscapedText(&peer(service)))
            .number(format_args!("{:.1}", service.per_s))
            .number(FormattedTime::from(latency.p50_ns))
            .number(FormattedTime::from(latency.p99_ns))
            .number(FormattedTime::from(latency.p999_ns))
            .number(FormattedTime::from(service.worst.p99_ns))
            .number(FormattedTime::from(service.worst.since_start_ns))
            .end();
    }
    table_markup::end(out);
    more(out, report.services.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

pub(super) fn disks(out: &mut String, report: &TraceReport) -> fmt::Result {
    if report.disks.is_empty() {
        return Ok(());
    }
    write!(out, "<section id=\"disks\"><h2>Disks</h2>")?;
    let columns = [
        HtmlColumn::Text("Disk"),
        HtmlColumn::Text("Requests"),
        HtmlColumn::Number("Count"),
        HtmlColumn::Number("Mean"),
        HtmlColumn::Number("Median"),
        HtmlColumn::Number("p99"),
        HtmlColumn::Number("Longest"),
        HtmlColumn::Number("Bytes in all"),
    ];
    table_markup::begin(out, "", &columns)?;
    for disk in report.disks.iter().take(MAX_ROWS) {
        for (index, (kind, latency)) in disk.device.iter().enumerate() {
            let bytes = match index {
                0 if disk.bytes > 0 => FormattedSize(disk.bytes as f64).to_string(),
                _ => String::new(),
            };
            HtmlRow::begin(out)
                .head(disk.dev)
                .text(kind)
                .number(latency.count)
                .number(FormattedTime::from(latency.mean_ns))
                .number(FormattedTime::from(latency.p50_ns))
                .number(FormattedTime::from(latency.p99_ns))
                .number(FormattedTime::from(latency.max_ns))
                .number(bytes)
                .end();
        }
    }
    table_markup::end(out);
    more(out, report.disks.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

/// Writes the time of all threads, by process and by cgroup.
pub(super) fn accounts(out: &mut String, report: &TraceReport) -> fmt::Result {
    let accounts = &report.accounts;
    if accounts.processes.is_empty() && accounts.cgroups.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section id=\"accounts\"><h2>Where all time went</h2><p class=\"legend\">")?;
    for (class, name) in STATES {
        write!(out, "<span><b class=\"key {class}\"></b>{name}</span>")?;
    }
    writeln!(
        out,
        "</p><p class=\"quiet\">Time of threads, from their first sight to their last. What is left of a bar is not \
         accounted for.</p>"
    )?;
    let process = |account: &TimeAccount| match account.process {
        Some(process) if !account.comm.is_empty() => {
            format!("{} ({process})", EscapedText(&account.comm))
        }
        Some(process) => format!("process {process}"),
        None => String::new(),
    };
    account_table(out, "Process", &accounts.processes, process)?;
    let cgroup = |account: &TimeAccount| format!("cgroup {}", account.cgroup);
    account_table(out, "Cgroup", &accounts.cgroups, cgroup)?;
    writeln!(out, "</section>")
}

/// States of threads, with the classes of their colours.
const STATES: [(&str, &str); 6] = [
    ("s-user", "user"),
    ("s-system", "system"),
    ("s-runnable", "runnable"),
    ("s-storage", "files and disks"),
    ("s-blocked", "otherwise blocked"),
    ("s-idle", "idle"),
];

fn state_times(account: &TimeAccount) -> [u64; 6] {
    let blocked_ns = account.blocked.values().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
    [
        account.user_ns,
        account.system_ns,
        account.runnable_ns,
        account.storage_ns,
        blocked_ns.saturating_sub(account.storage_ns),
        account.idle_ns,
    ]
}

fn account_table(
    out: &mut String,
    what: &'static str,
    accounts: &[TimeAccount],
    name: impl Fn(&TimeAccount) -> String,
) -> fmt::Result {
    if accounts.is_empty() {
        return Ok(());
    }
    let columns = [
        HtmlColumn::Text(what),
        HtmlColumn::Number("Thread time"),
        HtmlColumn::Number("Processor"),
        HtmlColumn::Number("Files and disks"),
        HtmlColumn::Number("Idle"),
        HtmlColumn::Bars("All of it"),
    ];
    table_markup::begin(out, "", &columns)?;
    for account in accounts.iter().take(MAX_ROWS) {
        let states = state_times(account);
        let known_ns = states.iter().fold(0_u64, |sum, &ns| sum.saturating_add(ns));
        let whole_ns = account.wall_ns.max(known_ns);
        let mut bar = String::new();
        for ((class, name), ns) in STATES.into_iter().zip(states) {
            let share = FormattedShare::of(ns, whole_ns);
            if share.0 >= 0.002 {
                let percent = share.0 * 100.0;
                write!(
                    bar,
                    "<i class=\"{class}\" style=\"width:{percent:.2}%\" title=\"{name}: {share}\"></i>"
                )?;
            }
        }
        HtmlRow::begin(out)
            .head(name(account))
            .number(FormattedTime::from(account.wall_ns))
            .number(FormattedTime::from(account.user_ns.saturating_add(account.system_ns)))
            .number(FormattedTime::from(account.storage_ns))
            .number(FormattedTime::from(account.idle_ns))
            .wide(format_args!("<div class=\"stack\">{bar}</div>"))
            .end();
    }
    table_markup::end(out);
    more(out, accounts.len(), MAX_ROWS)
}
