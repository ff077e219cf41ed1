//! What became of the tasks, as text.

use std::fmt;

use luc_throttle::run::RunOutcome;
use luc_units::figures::Time;
use luc_units::plain;

/// A command longer than this is cut.
const COMMAND_CHARS: usize = 48;

/// A line for each task, and one for all.
pub(crate) struct Text<'o>(pub(crate) &'o RunOutcome);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.0;
        writeln!(
            f,
            "luc throttle: {} tasks, policy {}, all done after {}",
            outcome.tasks.len(),
            outcome.policy,
            Time(outcome.makespan_s * 1e9)
        )?;
        writeln!(
            f,
            "{:>10} {:>10} {:>10} {:>8} {:>7}  command",
            "took", "frozen", "longest", "freezes", "status"
        )?;
        for task in &outcome.tasks {
            let command: String = plain(&task.command).chars().take(COMMAND_CHARS).collect();
            writeln!(
                f,
                "{:>10} {:>10} {:>10} {:>8} {:>7}  {command}",
                Time(task.seconds * 1e9),
                Time(task.frozen_s * 1e9),
                Time(task.longest_frozen_s * 1e9),
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
        Ok(())
    }
}
