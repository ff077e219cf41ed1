//! Intervals as lines, for scripts and files.

use std::fmt;

use luc_units::figures::{Share, Time};

use super::columns::{Column, FILE_SYSTEMS, PARTIES, fitting};
use super::interval::Interval;

/// Width of the lines.
const WIDTH: u16 = 110;
/// Processes that are listed.
const PROCESSES: usize = 20;

/// Shows one interval as text, with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a Interval);

impl fmt::Display for Text<'_> {
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
                Share(pressure.some),
                Share(pressure.full)
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
                    Share(found.share)
                )?;
            }
            for (victim, culprit, ns_per_s) in row.blame.iter().take(3) {
                writeln!(
                    f,
                    "  {victim} waits {} a second for the work of {culprit}",
                    Time(*ns_per_s)
                )?;
            }
        }
        writeln!(f)?;
        table(f, PARTIES, interval.processes.iter().take(PROCESSES))?;
        writeln!(f)
    }
}

pub(super) fn table<'a, R: 'a>(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column<R>],
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
    let titles = chosen
        .iter()
        .map(|&(index, _)| columns[index].title.to_owned());
    writeln!(f, "{}", line(titles.collect()))?;
    for row in rows {
        let cells = chosen.iter().map(|&(index, _)| (columns[index].text)(row));
        writeln!(f, "{}", line(cells.collect()))?;
    }
    Ok(())
}
