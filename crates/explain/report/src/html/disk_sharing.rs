//! Tasks that share a disk: its cost, and who slowed whom.

use std::fmt::{self, Write as _};

use luc_explain::{DiskContention, TraceReport};
use luc_graphs::html_escape::EscapedText;
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};

use super::findings::{place, who};
use super::table_markup::{self, HtmlColumn, HtmlRow};
use super::wait_tables::more;
use crate::text::summary;

/// Maximum number of shown disks.
const MAX_DISKS: usize = 8;
/// Maximum number of rows of a table.
const MAX_ROWS: usize = 20;

/// Writes the section of the disks for which tasks contended.
pub(super) fn section(out: &mut String, report: &TraceReport) -> fmt::Result {
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
        writeln!(out, "<h3>{}</h3><p>{}</p>", place(report, dev), EscapedText(&summary(found)))?;
        tasks(out, found)?;
        pairs(out, found)?;
    }
    more(out, shared.len(), MAX_DISKS)?;
    writeln!(out, "</section>")
}

fn tasks(out: &mut String, found: &DiskContention) -> fmt::Result {
    let columns = [
        HtmlColumn::Text("Task"),
        HtmlColumn::Number("Device"),
        HtmlColumn::Number("Bytes"),
        HtmlColumn::Number("Reads on"),
        HtmlColumn::Number("Switches"),
        HtmlColumn::Number("They cost"),
        HtmlColumn::Number("Await"),
        HtmlColumn::Number("Service"),
        HtmlColumn::Number("Alone"),
    ];
    table_markup::begin(out, "", &columns)?;
    for task in found.tasks.iter().take(MAX_ROWS) {
        let alone = task.undisturbed_bytes_per_s;
        HtmlRow::begin(out)
            .head(who(&task.actor))
            .number(FormattedShare::of(task.device_ns, found.busy_ns))
            .number(FormattedSize(task.bytes as f64))
            .number(FormattedShare(task.continuing))
            .number(task.switches)
            .number(FormattedTime::from(task.switch_ns))
            .number(FormattedTime::from(task.await_ns))
            .number(FormattedTime::from(task.service_ns))
            .number(
                alone.map_or_else(|| "–".to_owned(), |rate| format!("{}/s", FormattedSize(rate))),
            )
            .end();
    }
    table_markup::end(out);
    Ok(())
}

fn pairs(out: &mut String, found: &DiskContention) -> fmt::Result {
    if found.slowed.is_empty() {
        return Ok(());
    }
    let columns = [
        HtmlColumn::Text("Waited"),
        HtmlColumn::Text("While the disk served"),
        HtmlColumn::Number("Time"),
        HtmlColumn::Number("Switches"),
        HtmlColumn::Number("They cost"),
    ];
    table_markup::begin(out, "", &columns)?;
    for pair in found.slowed.iter().take(MAX_ROWS) {
        HtmlRow::begin(out)
            .head(who(&pair.victim))
            .text(who(&pair.culprit))
            .number(FormattedTime::from(pair.waited_ns))
            .number(pair.switches)
            .number(FormattedTime::from(pair.switch_ns))
            .end();
    }
    table_markup::end(out);
    more(out, found.slowed.len(), MAX_ROWS)
}
