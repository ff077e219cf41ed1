//! Intervals as lines, for scripts and files.

use std::fmt;

use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};

use super::columns::{ACTORS, FILE_SYSTEMS, TableColumn, fitting};
use super::disk_sharing::SHARED;
use super::top_interval::TopInterval;

/// Width of a line, in characters.
const WIDTH: u16 = 110;
/// Maximum number of listed processes.
const MAX_PROCESSES: usize = 20;

/// Shows one interval as text, with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct IntervalText<'a>(pub &'a TopInterval);

impl fmt::Display for IntervalText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.0;
        write!(
            f,
            "luc top: {}, Linux {}, {} processors; {:.2} s; ",
            interval.host.name, interval.host.kernel, interval.host.processors, interval.seconds
        )?;
        if let Some(pressure) = interval.machine.pressure {
            write!(
                f,
                "I/O pressure: some {}, full {}; ",
                FormattedShare(pressure.some),
                FormattedShare(pressure.full)
            )?;
        }
        writeln!(f, "lost events: {}", interval.machine.lost)?;
        writeln!(f)?;
        table(f, FILE_SYSTEMS, interval.file_systems.iter())?;
        for row in &interval.file_systems {
            if let Some(found) = &row.found {
                writeln!(
                    f,
                    "  {} ({} of the time in calls)",
                    found.sentence,
                    FormattedShare(found.share)
                )?;
            }
            for (victim, culprit, ns_per_s) in row.blame.iter().take(3) {
                writeln!(
                    f,
                    "  {victim} waits {} a second for the work of {culprit}",
                    FormattedTime(*ns_per_s)
                )?;
            }
        }
        sharing(f, interval)?;
        writeln!(f)?;
        table(f, ACTORS, interval.processes.iter().take(MAX_PROCESSES))?;
        writeln!(f)
    }
}

/// Writes the disks that tasks share, and what the throttle does, if there are any.
fn sharing(f: &mut fmt::Formatter<'_>, interval: &TopInterval) -> fmt::Result {
    if !interval.shared_disks.is_empty() {
        writeln!(f)?;
        table(f, SHARED, interval.shared_disks.iter())?;
    }
    for disk in &interval.shared_disks {
        for used in &disk.users {
            writeln!(
                f,
                "  {}: {} of its time for {}, {}/s",
                disk.name,
                FormattedShare(used.device),
                used.task,
                FormattedSize(used.bytes_per_s)
            )?;
        }
        for (victim, culprit, ns_per_s) in disk.slowed.iter().take(3) {
            writeln!(
                f,
                "  {}: {victim} waits {} a second while it serves {culprit}",
                disk.name,
                FormattedTime(*ns_per_s)
            )?;
        }
        if let Some(gain) = disk.predicted_gain.filter(|gain| *gain > 0.0) {
            writeln!(f, "  {}: one after the other, predicted {:+.0} %", disk.name, gain * 100.0)?;
        }
    }
    match (&interval.machine.throttle, interval.shared_disks.is_empty()) {
        (Some(throttle), _) => writeln!(f, "luc throttle: {throttle}"),
        (None, false) => writeln!(f, "luc throttle: no daemon runs"),
        (None, true) => Ok(()),
    }
}

pub(super) fn table<'a, R: 'a>(
    f: &mut fmt::Formatter<'_>,
    columns: &[TableColumn<R>],
    rows: impl Iterator<Item = &'a R>,
) -> fmt::Result {
    let chosen = fitting(columns, WIDTH);
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells
            .into_iter()
            .zip(&chosen)
            .map(|(cell, &(index, width))| match columns[index].width {
                0 => format!("{cell:<width$}", width = usize::from(width)),
                width => format!("{cell:>width$}", width = usize::from(width)),
            })
            .collect();
        cells.join(" ").trim_end().to_owned()
    };
    let titles = chosen.iter().map(|&(index, _)| columns[index].title.to_owned());
    writeln!(f, "{}", line(titles.collect()))?;
    for row in rows {
        let cells = chosen.iter().map(|&(index, _)| columns[index].text(row));
        writeln!(f, "{}", line(cells.collect()))?;
    }
    Ok(())
}
