//! Tasks that share a disk: its cost, and who slowed whom.

use std::fmt::{self, Write as _};

use luc_explain::{Contention, Report};
use luc_graphs::escape::Text;
use luc_units::figures::{Share, Size, Time};

use super::findings::{place, who};
use super::table::{self, Column, Row};
use super::tables::more;
use crate::text::summary;

/// Maximum number of shown disks.
const MAX_DISKS: usize = 8;
/// Maximum number of rows of a table.
const MAX_ROWS: usize = 20;

/// Writes the section of the disks for which tasks contended.
pub(super) fn section(out: &mut String, report: &Report) -> fmt::Result {
    let shared = report.disks.iter().filter_map(|disk| {
        let found = disk.contention.as_ref()?;
        (found.together_ns > 0).then_some((disk.dev, found))
    });
    let shared: Vec<_> = shared.collect();
    if shared.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"sharing\"><h2>Who shared a disk with whom</h2><p class=\"quiet\">A switch costs what a request \
         takes after another task's beyond what it takes after one of its own.</p>"
    )?;
    for &(dev, found) in shared.iter().take(MAX_DISKS) {
        writeln!(out, "<h3>{}</h3><p>{}</p>", place(report, dev), Text(&summary(found)))?;
        tasks(out, found)?;
        pairs(out, found)?;
    }
    more(out, shared.len(), MAX_DISKS)?;
    writeln!(out, "</section>")
}

fn tasks(out: &mut String, found: &Contention) -> fmt::Result {
    let columns = [
        Column::Text("Task"),
        Column::Number("Device"),
        Column::Number("Bytes"),
        Column::Number("Reads on"),
        Column::Number("Switches"),
        Column::Number("They cost"),
        Column::Number("Await"),
        Column::Number("Service"),
        Column::Number("Alone"),
    ];
    table::begin(out, "", &columns)?;
    for task in found.tasks.iter().take(MAX_ROWS) {
        let alone = task.undisturbed_bytes_per_s;
        Row::begin(out)
            .head(who(&task.actor))
            .number(Share::of(task.device_ns, found.busy_ns))
            .number(Size(task.bytes as f64))
            .number(Share(task.continuing))
            .number(task.switches)
            .number(Time::from(task.switch_ns))
            .number(Time::from(task.await_ns))
            .number(Time::from(task.service_ns))
            .number(alone.map_or_else(|| "–".to_owned(), |rate| format!("{}/s", Size(rate))))
            .end();
    }
    table::end(out);
    Ok(())
}

fn pairs(out: &mut String, found: &Contention) -> fmt::Result {
    if found.slowed.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::Text("Waited"),
        Column::Text("While the disk served"),
        Column::Number("Time"),
        Column::Number("Switches"),
        Column::Number("They cost"),
    ];
    table::begin(out, "", &columns)?;
    for pair in found.slowed.iter().take(MAX_ROWS) {
        Row::begin(out)
            .head(who(&pair.victim))
            .text(who(&pair.culprit))
            .number(Time::from(pair.waited_ns))
            .number(pair.switches)
            .number(Time::from(pair.switch_ns))
            .end();
    }
    table::end(out);
    more(out, found.slowed.len(), MAX_ROWS)
}
