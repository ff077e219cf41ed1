//! Text form of the advice, disk by disk.

use std::fmt;

use luc_throttle::advise::{DiskAdvice, ThrottleAdvice};
use luc_units::number_formats::{FormattedSize, FormattedTime};
use luc_units::plain;

/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 40;
/// Maximum number of tasks that are named as slowing others.
const MAX_SLOWED: usize = 6;

/// Minimum number of bytes that a disk has to move for a report.
const MIN_BYTES: u64 = 1 << 20;

/// Shows the throttle's advice, disk by disk, with [`fmt::Display`].
pub(super) struct ThrottleAdviceText<'a>(pub(super) &'a ThrottleAdvice);

fn time(seconds: f64) -> String {
    FormattedTime(seconds * 1e9).to_string()
}

fn name(text: &str) -> String {
    plain(text).chars().take(MAX_NAME_CHARS).collect()
}

impl fmt::Display for ThrottleAdviceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "luc throttle: watched for {}", time(self.0.watched_s))?;
        if self.0.disks.is_empty() {
            return writeln!(f, "nothing to be gained: no task used a disk");
        }
        for disk in &self.0.disks {
            of_disk(f, disk)?;
        }
        Ok(())
    }
}

fn of_disk(f: &mut fmt::Formatter<'_>, disk: &DiskAdvice) -> fmt::Result {
    let tasks_of = disk.tasks.iter();
    let moved = tasks_of.fold(0_u64, |sum, task| sum + task.bytes_read + task.bytes_written);
    if moved < MIN_BYTES {
        let moved = FormattedSize(moved as f64);
        return writeln!(f, "\n{}: tasks moved {moved}, too little to say anything of", disk.disk);
    }
    // What was seen of little work may be faster than the model.
    let rate = if disk.efficiency <= 1.0 {
        format!("of its rate {:.0} %", 100.0 * disk.efficiency)
    } else {
        "of its rate all".to_owned()
    };
    writeln!(
        f,
        "\n{}: busy {:.0} %, {rate}; of the time that tasks wait {:.0} % is for others",
        disk.disk,
        100.0 * disk.busy,
        100.0 * disk.soft
    )?;
    writeln!(
        f,
        "     {}/s in place, {} to another task's data, {} to the same task's ({})",
        FormattedSize(disk.model.bytes_per_s),
        time(disk.model.far_s),
        time(disk.model.near_s),
        if disk.is_learned { "measured by luc throttle learn" } else { "from what was seen" }
    )?;
    tasks(f, disk)?;
    for slowed in disk.slowed.iter().take(MAX_SLOWED) {
        writeln!(
            f,
            "     task {} waited {} for task {}",
            slowed.task,
            time(slowed.seconds),
            slowed.by
        )?;
    }
    if !disk.gains {
        writeln!(f, "nothing to be gained: {}", disk.reason)?;
        return certainty(f, disk);
    }
    gains(f, disk)
}

fn tasks(f: &mut fmt::Formatter<'_>, disk: &DiskAdvice) -> fmt::Result {
    writeln!(
        f,
        "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  task",
        "at disk", "moved", "in order", "thinks", "alone", "now", "then"
    )?;
    for (number, task) in (1..).zip(&disk.tasks) {
        writeln!(
            f,
            "{:>9} {:>9} {:>7.0} % {:>9} {:>9} {:>9} {:>9}  {number}: {}",
            time(task.device_s),
            FormattedSize((task.bytes_read + task.bytes_written) as f64).to_string(),
            100.0 * task.continued,
            time(task.think_s),
            time(task.alone_s),
            time(task.now_s),
            time(task.then_s),
            name(&task.task)
        )?;
    }
    Ok(())
}

fn certainty(f: &mut fmt::Formatter<'_>, disk: &DiskAdvice) -> fmt::Result {
    let (all, each) = (disk.model_over_seen, 100.0 * disk.model_off);
    if disk.is_doubtful {
        return writeln!(
            f,
            "     do not believe it: without the throttle the model takes {all:.2} times what was seen until all are done, \
             and is off by {each:.0} % for a task on average"
        );
    }
    writeln!(
        f,
        "     the model without the throttle takes {all:.2} times what was seen, off by {each:.0} % for a task on average"
    )
}

fn gains(f: &mut fmt::Formatter<'_>, disk: &DiskAdvice) -> fmt::Result {
    writeln!(
        f,
        "with the throttle, predicted: {} ({} freezes and thaws)",
        disk.reason, disk.orders
    )?;
    certainty(f, disk)?;
    let (now, then) = (&disk.now, &disk.then);
    let longest = disk.tasks.iter().map(|task| task.longest_frozen_s);
    writeln!(
        f,
        "     all done after {} instead of {}, tasks per hour {:.0} instead of {:.0}",
        time(then.all_done_s),
        time(now.all_done_s),
        3600.0 * then.throughput_per_s,
        3600.0 * now.throughput_per_s
    )?;
    writeln!(
        f,
        "     weighted speedup (WS) {:.2} ({:.2} to {:.2}, by who comes first) instead of {:.2}; longest freeze {}",
        then.weighted_speedup,
        disk.then_range.0,
        disk.then_range.1,
        now.weighted_speedup,
        time(longest.fold(0.0, f64::max))
    )?;
    if let Some(worst) = &disk.worst {
        writeln!(
            f,
            "     worst off: {}, {} instead of {}",
            name(&worst.task),
            time(worst.then_s),
            time(worst.now_s)
        )?;
    }
    let losers: Vec<String> = disk.losers().map(|task| name(&task.task)).collect();
    if losers.is_empty() {
        writeln!(f, "     nobody would lose")?;
    } else {
        writeln!(f, "     would lose: {}", losers.join("; "))?;
    }
    writeln!(
        f,
        "     without the throttle, read_ahead_kb = {}: all done after {}{}",
        disk.read_ahead.kib,
        time(disk.read_ahead.all_done_s),
        if disk.read_ahead.is_enough { ", which may be enough" } else { "" }
    )
}
