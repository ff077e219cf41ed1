//! Tables of waits by victim and culprit, of the slowest fsyncs, of disks, and of all time.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use luc_explain::{Account, Actor, Report};
use luc_graphs::escape::Text;
use luc_units::figures::{Share, Size, Time};

use super::charts;
use super::findings::{place, who};
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
    fn of(report: &'a Report) -> Self {
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
pub(super) fn blame(out: &mut String, report: &Report) -> fmt::Result {
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
                    let heat = (Share::of(waited_ns, most_ns).0.sqrt() * 100.0).clamp(4.0, 100.0);
                    write!(
                        out,
                        "<td class=\"heat{itself}\" style=\"--heat:{heat:.0}%\" title=\"{waits} waits; the culprit's data \
                         added {}\">{}</td>",
                        Time::from(load_ns),
                        Time::from(waited_ns)
                    )?;
                }
                None => write!(out, "<td></td>")?,
            }
        }
        writeln!(out, "<td class=\"number\">{}</td></tr>", Time::from(*sum_ns))?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, matrix.victims.len().max(matrix.culprits.len()), MAX_ACTORS)?;
    writeln!(out, "</section>")
}

pub(super) fn slowest(out: &mut String, report: &Report) -> fmt::Result {
    if report.slowest.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"slowest\"><h2>The slowest fsyncs</h2><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\" class=\"number\">Took</th><th scope=\"col\">Process</th>\
         <th scope=\"col\">Call</th><th scope=\"col\">File system</th><th scope=\"col\" class=\"number\">Inode</th>\
         <th scope=\"col\" class=\"number\">Began at</th><th scope=\"col\" class=\"number\">Commits</th>\
         <th scope=\"col\" class=\"wide\">What it was made of</th></tr></thead><tbody>"
    )?;
    for slow in report.slowest.iter().take(MAX_ROWS) {
        write!(
            out,
            "<tr><td class=\"number\">{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"wide\">",
            Time::from(slow.duration_ns),
            who(&slow.actor),
            slow.kind,
            place(report, slow.dev),
            slow.inode,
            Time::from(slow.enter_ns.saturating_sub(report.trace.start_ns)),
            slow.commits.len()
        )?;
        charts::stacked(out, &slow.parts)?;
        writeln!(out, "</td></tr>")?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, report.slowest.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

/// Writes the latencies of services.
pub(super) fn services(out: &mut String, report: &Report) -> fmt::Result {
    if report.services.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"services\"><h2>How long requests took</h2><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">Program</th><th scope=\"col\">Side</th><th scope=\"col\" class=\"number\">Port</th>\
         <th scope=\"col\">Peer</th><th scope=\"col\" class=\"number\">Requests/s</th>\
         <th scope=\"col\" class=\"number\">Median</th><th scope=\"col\" class=\"number\">p99</th>\
         <th scope=\"col\" class=\"number\">p99.9</th><th scope=\"col\" class=\"number\">Worst interval: p99</th>\
         <th scope=\"col\" class=\"number\">It began at</th></tr></thead><tbody>"
    )?;
    for service in report.services.iter().take(MAX_ROWS) {
        let latency = &service.latency;
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td><td>{}</td>\
             <td class=\"number\">{:.1}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            Text(&service.program),
            service.side,
            service.port,
            Text(&peer(service)),
            service.per_s,
            Time::from(latency.p50_ns),
            Time::from(latency.p99_ns),
            Time::from(latency.p999_ns),
            Time::from(service.worst.p99_ns),
            Time::from(service.worst.since_start_ns),
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, report.services.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

pub(super) fn disks(out: &mut String, report: &Report) -> fmt::Result {
    if report.disks.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"disks\"><h2>Disks</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\">Disk</th>\
         <th scope=\"col\">Requests</th><th scope=\"col\" class=\"number\">Count</th>\
         <th scope=\"col\" class=\"number\">Mean</th><th scope=\"col\" class=\"number\">Median</th>\
         <th scope=\"col\" class=\"number\">p99</th><th scope=\"col\" class=\"number\">Longest</th>\
         <th scope=\"col\" class=\"number\">Bytes in all</th></tr></thead><tbody>"
    )?;
    for disk in report.disks.iter().take(MAX_ROWS) {
        for (index, (kind, latency)) in disk.device.iter().enumerate() {
            let bytes = match index {
                0 if disk.bytes > 0 => Size(disk.bytes as f64).to_string(),
                _ => String::new(),
            };
            writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{kind}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{bytes}</td></tr>",
                disk.dev,
                latency.count,
                Time::from(latency.mean_ns),
                Time::from(latency.p50_ns),
                Time::from(latency.p99_ns),
                Time::from(latency.max_ns),
            )?;
        }
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, report.disks.len(), MAX_ROWS)?;
    writeln!(out, "</section>")
}

/// Writes the time of all threads, by process and by cgroup.
pub(super) fn accounts(out: &mut String, report: &Report) -> fmt::Result {
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
    let process = |account: &Account| match account.process {
        Some(process) if !account.comm.is_empty() => {
            format!("{} ({process})", Text(&account.comm))
        }
        Some(process) => format!("process {process}"),
        None => String::new(),
    };
    table(out, "Process", &accounts.processes, process)?;
    let cgroup = |account: &Account| format!("cgroup {}", account.cgroup);
    table(out, "Cgroup", &accounts.cgroups, cgroup)?;
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

fn state_times(account: &Account) -> [u64; 6] {
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

fn table(
    out: &mut String,
    what: &str,
    accounts: &[Account],
    name: impl Fn(&Account) -> String,
) -> fmt::Result {
    if accounts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">{what}</th>\
         <th scope=\"col\" class=\"number\">Thread time</th><th scope=\"col\" class=\"number\">Processor</th>\
         <th scope=\"col\" class=\"number\">Files and disks</th><th scope=\"col\" class=\"number\">Idle</th>\
         <th scope=\"col\" class=\"wide\">All of it</th></tr></thead><tbody>"
    )?;
    for account in accounts.iter().take(MAX_ROWS) {
        let states = state_times(account);
        let known_ns = states.iter().fold(0_u64, |sum, &ns| sum.saturating_add(ns));
        let whole_ns = account.wall_ns.max(known_ns);
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"wide\"><div class=\"stack\">",
            name(account),
            Time::from(account.wall_ns),
            Time::from(account.user_ns.saturating_add(account.system_ns)),
            Time::from(account.storage_ns),
            Time::from(account.idle_ns)
        )?;
        for ((class, name), ns) in STATES.into_iter().zip(states) {
            let share = Share::of(ns, whole_ns);
            if share.0 >= 0.002 {
                let percent = share.0 * 100.0;
                write!(
                    out,
                    "<i class=\"{class}\" style=\"width:{percent:.2}%\" title=\"{name}: {share}\"></i>"
                )?;
            }
        }
        writeln!(out, "</div></td></tr>")?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, accounts.len(), MAX_ROWS)
}
