//! Progress of the evaluation: a bar on a terminal, else a line per run.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Progress through a known number of steps.
#[derive(Debug)]
pub struct Progress {
    part: &'static str,
    steps: usize,
    done: usize,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    #[must_use]
    pub fn new(part: &'static str, steps: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps as u64);
            if let Ok(style) =
                ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len}, {eta} left: {msg}")
            {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(part);
            bar.tick();
            bar
        });
        Self { part, steps, done: 0, started: Instant::now(), bar }
    }

    /// Counts a step; `what` names it, with its figure.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(what.to_owned());
                bar.inc(1);
            }
            None => eprintln!(
                "{} {}/{}, {} left: {what}",
                self.part,
                self.done,
                self.steps,
                format_time_left(self.started.elapsed(), self.done, self.steps)
            ),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns the time left if the other steps take as long as those done.
fn format_time_left(elapsed: Duration, done: usize, steps: usize) -> String {
    let each = elapsed.as_secs_f64() / done.max(1) as f64;
    let seconds = (each * steps.saturating_sub(done) as f64).round() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left() {
        assert_eq!(format_time_left(Duration::from_secs(10), 5, 10), "10 s");
        assert_eq!(format_time_left(Duration::from_secs(60), 1, 4), "3 min");
        assert_eq!(format_time_left(Duration::from_secs(60), 4, 4), "0 s");
    }
}
