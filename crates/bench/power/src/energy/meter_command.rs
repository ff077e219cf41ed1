//! A meter's command: it prints watts, a line for each sample; energy is their integral by the trapezoid rule.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;
use regex_lite::Regex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::EnergySource;

/// Longest gap between samples. After a longer gap the power in between is unknown.
const MAX_GAP: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Power in watts at one moment, as the meter's command printed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WattSample {
    pub(super) at: Duration,
    pub(super) watts: f64,
}

#[derive(Debug, Default)]
struct Seen {
    samples: Vec<WattSample>,
    last_line: String,
    ended: bool,
}

/// Command of a meter while it runs.
#[derive(Debug)]
pub(super) struct MeterCommand {
    child: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    reader: Option<JoinHandle<()>>,
    origin: Instant,
    scope: String,
    begun: Duration,
}

impl MeterCommand {
    /// Starts it and waits for a first sample. Errors: why there is none.
    pub(super) fn start(
        command: &str,
        regex: Option<&str>,
        scope: Option<&str>,
    ) -> Result<Self, String> {
        let regex = regex.map(Regex::new).transpose();
        let regex = regex.map_err(|error| format!("regex: {error}").replace('\n', " "))?;
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot run sh: {error}"))?;
        let origin = Instant::now();
        let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let shared = Arc::clone(&seen);
        let pipe = child.stdout.take();
        let read = move || {
            let lines = pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
            for line in lines.map_while(Result::ok) {
                let at = origin.elapsed();
                let mut seen = lock(&shared.0);
                if let Some(watts) = watts(&line, regex.as_ref()) {
                    seen.samples.push(WattSample { at, watts });
                }
                seen.last_line = line;
                shared.1.notify_all();
            }
            lock(&shared.0).ended = true;
            shared.1.notify_all();
        };
        let reader = thread::Builder::new().name("meter".to_owned()).spawn(read);
        let mut meter = Self {
            child,
            seen,
            reader: reader.ok(),
            origin,
            scope: scope.unwrap_or("what the meter's command measures").to_owned(),
            begun: Duration::ZERO,
        };
        meter.wait_for(Duration::ZERO)?;
        Ok(meter)
    }

    /// Waits for a sample at `time` or later.
    fn wait_for(&mut self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + MAX_GAP;
        let mut seen = lock(&self.seen.0);
        loop {
            if seen.samples.last().is_some_and(|last| last.at >= time) {
                return Ok(());
            }
            if seen.ended {
                return Err(format!("the meter has ended; its last line was '{}'", seen.last_line));
            }
            if Instant::now() >= until || interrupt_flag::interrupted() {
                return Err(format!(
                    "the meter gave no number for {} s; its last line was '{}'",
                    MAX_GAP.as_secs(),
                    seen.last_line
                ));
            }
            let waited = self.seen.1.wait_timeout(seen, POLL_INTERVAL);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl EnergySource for MeterCommand {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn scope(&self) -> String {
        self.scope.clone()
    }

    fn begin(&mut self) -> Result<(), String> {
        self.begun = self.origin.elapsed();
        let mut seen = lock(&self.seen.0);
        // One sample before the run is enough.
        let before = seen.samples.partition_point(|sample| sample.at <= self.begun);
        seen.samples.drain(..before.saturating_sub(1));
        Ok(())
    }

    fn end(&mut self) -> Result<f64, String> {
        let ended = self.origin.elapsed();
        self.wait_for(ended)?;
        joules(&lock(&self.seen.0).samples, self.begun, ended)
    }

    fn group(&self) -> Option<i32> {
        Some(self.child.id().cast_signed())
    }
}

impl Drop for MeterCommand {
    fn drop(&mut self) {
        // The child is not waited for yet, so that its number is still its own, and its group's.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parses the power in a line: the whole line, or the first group. Negative or infinite power is refused.
fn watts(line: &str, regex: Option<&Regex>) -> Option<f64> {
    let text = match regex {
        Some(regex) => regex.captures(line)?.get(1)?.as_str(),
        None => line,
    };
    let watts: f64 = text.trim().parse().ok()?;
    (watts.is_finite() && watts >= 0.0).then_some(watts)
}

/// Integrates from `begun` to `ended`; at both ends power is interpolated between the samples around it. Errors: there
/// is no sample around an end, or a gap in which the meter was silent.
pub(super) fn joules(
    samples: &[WattSample],
    begun: Duration,
    ended: Duration,
) -> Result<f64, String> {
    let around = samples.first().is_some_and(|first| first.at <= begun)
        && samples.last().is_some_and(|last| last.at >= ended);
    if !around {
        return Err("the meter gave no number before the run began, or after it ended".to_owned());
    }
    let mut joules = 0.0;
    for pair in samples.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        let (from, to) = (a.at.max(begun), b.at.min(ended));
        if from >= to {
            continue;
        }
        let gap = b.at - a.at;
        if gap > MAX_GAP {
            return Err(format!("the meter was silent for {:.1} s", gap.as_secs_f64()));
        }
        let watts = |at: Duration| {
            let share = (at - a.at).as_secs_f64() / gap.as_secs_f64();
            a.watts + (b.watts - a.watts) * share
        };
        joules += (watts(from) + watts(to)) / 2.0 * (to - from).as_secs_f64();
    }
    Ok(joules)
}
