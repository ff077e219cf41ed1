//! The tasks' figures as text.

use std::fmt;

use luc_throttle::run_commands::ThrottledRunOutcome;
use luc_units::number_formats::{FormattedSize, FormattedTime};
use luc_units::plain;

/// Maximum length of a command, in characters.
const MAX_COMMAND_CHARS: usize = 48;

/// A line for each task, and one for all.
pub(crate) struct ThrottledRunText<'o>(pub(crate) &'o ThrottledRunOutcome);

impl fmt::Display for ThrottledRunText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.0;
        writeln!(
            f,
            "luc throttle: {} tasks, policy {}, all done after {}",
            outcome.tasks.len(),
            outcome.policy,
            FormattedTime(outcome.makespan_s * 1e9)
        )?;
        writeln!(
            f,
            "{:>10} {:>10} {:>10} {:>8} {:>7}  command",
            "took", "frozen", "longest", "freezes", "status"
        )?;
        for task in &outcome.tasks {
            let command: String = plain(&task.command).chars().take(MAX_COMMAND_CHARS).collect();
            writeln!(
                f,
                "{:>10} {:>10} {:>10} {:>8} {:>7}  {command}",
                FormattedTime(task.seconds * 1e9),
                FormattedTime(task.frozen_s * 1e9),
                FormattedTime(task.longest_frozen_s * 1e9),
                task.freezes,
                task.status,
            )?;
        }
        let orders: Vec<String> = outcome
            .orders
            .iter()
            .map(|order| format!("{} {} for {}", order.count, order.action, order.reason))
            .collect();
        if !orders.is_empty() {
            writeln!(f, "orders: {}", orders.join(", "))?;
        }
        write!(f, "{}", IdleTaskWarning(outcome))
    }
}

/// A warning of each task that hardly used a disk, after which the figures say nothing.
pub(crate) struct IdleTaskWarning<'o>(pub(crate) &'o ThrottledRunOutcome);

impl fmt::Display for IdleTaskWarning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for task in self.0.idle() {
            let command: String = plain(&task.command).chars().take(MAX_COMMAND_CHARS).collect();
            let bytes = FormattedSize(task.bytes.unwrap_or(0) as f64);
            writeln!(
                f,
                "luc: '{command}' hardly used a disk ({bytes}): the figures say nothing of it"
            )?;
            if std::mem::take(&mut is_first) {
                writeln!(
                    f,
                    "     its files may be in memory (--prepare 'sync; echo 3 >/proc/sys/vm/drop_caches'), or it does not \
                     read them: GNU tar does not where the archive is /dev/null; `tar cf - DIR | cat >/dev/null` does"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_throttle::run_commands::TaskOutcome;

    #[test]
    fn tasks_that_hardly_used_a_disk_are_named() {
        let task = |command: &str, bytes| TaskOutcome {
            command: command.to_owned(),
            cgroup: "/x".into(),
            start_s: 0.0,
            finish_s: 1.0,
            seconds: 1.0,
            status: 0,
            frozen_s: 0.0,
            longest_frozen_s: 0.0,
            freezes: 0,
            bytes,
        };
        let outcome = ThrottledRunOutcome {
            policy: "auto".to_owned(),
            makespan_s: 1.0,
            tasks: vec![
                task("tar cf /dev/null a", Some(180 << 10)),
                task("cat b", Some(180 << 20)),
                task("dd", None),
            ],
            orders: Vec::new(),
            interrupted: false,
        };
        let text = IdleTaskWarning(&outcome).to_string();
        assert!(text.starts_with("luc: 'tar cf /dev/null a' hardly used a disk (180"), "{text}");
        assert!(
            text.contains("| cat >/dev/null`")
                && !text.contains("'cat b'")
                && !text.contains("'dd'"),
            "{text}"
        );
    }
}
