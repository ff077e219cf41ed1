//! Tasks that share a disk, for a terminal.

use std::fmt::{self, Write as _};

use luc_explain::{DiskContention, DiskReport, DiskTask, TaskSlowdown, UndisturbedBasis};
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime};

use super::{MAX_ROWS, ReportText, more, who};

impl ReportText<'_> {
    /// Writes the disks for which tasks contended.
    pub(super) fn sharing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for disk in &self.report.disks {
            match &disk.contention {
                Some(found) if found.together_ns > 0 => self.shared_disk(f, disk, found)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn shared_disk(
        &self,
        f: &mut fmt::Formatter<'_>,
        disk: &DiskReport,
        found: &DiskContention,
    ) -> fmt::Result {
        self.title(f, &format!("Who shared the disk {}", self.place(disk.dev)))?;
        writeln!(f, "  {}", summary(found))?;
        writeln!(
            f,
            "  {:<28} {:>8} {:>10} {:>9} {:>9} {:>10} {:>8} {:>8} {:>10}",
            "task",
            "device",
            "bytes",
            "reads on",
            "switches",
            "they cost",
            "await",
            "service",
            "alone"
        )?;
        for task in found.tasks.iter().take(MAX_ROWS) {
            task_row(f, task, found)?;
        }
        more(f, found.tasks.len())?;
        for pair in found.slowed.iter().take(MAX_ROWS) {
            let TaskSlowdown { victim, culprit, .. } = pair;
            writeln!(
                f,
                "    {} waited {} while the disk served {}, and {} for {} switches",
                who(victim),
                FormattedTime::from(pair.waited_ns),
                who(culprit),
                FormattedTime::from(pair.switch_ns),
                pair.switches
            )?;
        }
        more(f, found.slowed.len())
    }
}

/// Summarizes time and rate, measured and without switches.
pub(crate) fn summary(found: &DiskContention) -> String {
    let rate = |ns: u64| FormattedSize(found.bytes_together as f64 * 1e9 / ns.max(1) as f64);
    let mut said = format!(
        "{} together at {}/s",
        FormattedTime::from(found.together_ns),
        rate(found.together_ns)
    );
    // Writing to a string cannot fail.
    let _ = if found.gain > 0.0 {
        write!(
            said,
            "; one after the other {} at {}/s; {} switches of {}",
            FormattedTime::from(found.apart_ns),
            rate(found.apart_ns),
            found.switches,
            FormattedTime::from(found.switch_cost_ns)
        )
    } else if found.basis == UndisturbedBasis::Unknown {
        Ok(())
    } else {
        write!(said, "; nothing is lost by it")
    };
    if found.efficiency < 1.0 {
        let _ = write!(said, "; efficiency {}", FormattedShare(found.efficiency));
    }
    said.push_str(match found.basis {
        UndisturbedBasis::Seen => "",
        UndisturbedBasis::Assumed => {
            "; each request came after another task's, and took as long as with an arm: assumed is one that reads on \
             at 50 MB/s"
        }
        UndisturbedBasis::Unknown => {
            "; what is lost by it the trace does not tell, as hardly a request came after one of its own task's: \
             `luc throttle advise` does"
        }
    });
    if let Some(soft) = soft(found) {
        let _ = write!(
            said,
            "; {} of a request's time is waiting for other requests",
            FormattedShare(soft)
        );
    }
    said
}

/// Returns the share of the requests' time that was not the device's; `None` without requests.
fn soft(found: &DiskContention) -> Option<f64> {
    let (mut response_ns, mut service_ns) = (0.0, 0.0);
    for task in found.tasks.iter().filter(|task| !task.is_kernel) {
        response_ns += task.await_ns as f64 * task.requests as f64;
        service_ns += task.service_ns.min(task.await_ns) as f64 * task.requests as f64;
    }
    (response_ns > 0.0).then(|| 1.0 - service_ns / response_ns)
}

fn task_row(f: &mut fmt::Formatter<'_>, task: &DiskTask, found: &DiskContention) -> fmt::Result {
    let alone = task
        .undisturbed_bytes_per_s
        .map_or_else(|| "-".to_owned(), |rate| format!("{}/s", FormattedSize(rate)));
    writeln!(
        f,
        "  {:<28} {:>8} {:>10} {:>9} {:>9} {:>10} {:>8} {:>8} {alone:>10}",
        who(&task.actor),
        FormattedShare::of(task.device_ns, found.busy_ns),
        FormattedSize(task.bytes as f64),
        FormattedShare(task.continuing),
        task.switches,
        FormattedTime::from(task.switch_ns),
        FormattedTime::from(task.await_ns),
        FormattedTime::from(task.service_ns)
    )
}
