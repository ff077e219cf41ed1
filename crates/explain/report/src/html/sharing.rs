//! Tasks that share a disk: its cost, and who slowed whom.

use std::fmt::{self, Write as _};

use luc_explain::{Contention, Report};
use luc_graphs::escape::Text;
use luc_units::figures::{Share, Size, Time};

use super::findings::{place, who};
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

fn head(out: &mut String, first: &[&str], columns: &[&str]) -> fmt::Result {
    write!(out, "<div class=\"scroll\"><table><thead><tr>")?;
    for name in first {
        write!(out, "<th scope=\"col\">{name}</th>")?;
    }
    for name in columns {
        write!(out, "<th scope=\"col\" class=\"number\">{name}</th>")?;
    }
    writeln!(out, "</tr></thead><tbody>")
}

fn numbers(out: &mut String, cells: &[String]) -> fmt::Result {
    for cell in cells {
        write!(out, "<td class=\"number\">{cell}</td>")?;
    }
    writeln!(out, "</tr>")
}

fn tasks(out: &mut String, found: &Contention) -> fmt::Result {
    let columns =
        ["Device", "Bytes", "Reads on", "Switches", "They cost", "Await", "Service", "Alone"];
    head(out, &["Task"], &columns)?;
    for task in found.tasks.iter().take(MAX_ROWS) {
        write!(out, "<tr><th scope=\"row\">{}</th>", who(&task.actor))?;
        let alone = task.undisturbed_bytes_per_s;
        let cells = [
            Share::of(task.device_ns, found.busy_ns).to_string(),
            Size(task.bytes as f64).to_string(),
            Share(task.continuing).to_string(),
            task.switches.to_string(),
            Time::from(task.switch_ns).to_string(),
            Time::from(task.await_ns).to_string(),
            Time::from(task.service_ns).to_string(),
            alone.map_or_else(|| "–".to_owned(), |rate| format!("{}/s", Size(rate))),
        ];
        numbers(out, &cells)?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn pairs(out: &mut String, found: &Contention) -> fmt::Result {
    if found.slowed.is_empty() {
        return Ok(());
    }
    let first = ["Waited", "While the disk served"];
    head(out, &first, &["Time", "Switches", "They cost"])?;
    for pair in found.slowed.iter().take(MAX_ROWS) {
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td>",
            who(&pair.victim),
            who(&pair.culprit)
        )?;
        let cells = [
            Time::from(pair.waited_ns).to_string(),
            pair.switches.to_string(),
            Time::from(pair.switch_ns).to_string(),
        ];
        numbers(out, &cells)?;
    }
    writeln!(out, "</tbody></table></div>")?;
    more(out, found.slowed.len(), MAX_ROWS)
}
