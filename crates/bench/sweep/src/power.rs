//! A sweep's processors and its energy: what the plan asks of both, for one repeat after the other.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::interrupt;
use luc_power::energy::{About, Energymeter};
use luc_power::frequency::throttle::{Throttle, find};
use luc_power::frequency::{Lent, Setting};
use luc_units::OnPath as _;
use luc_units::parse_duration_ns;

use super::cleanup::CleanupProcess;
use super::error::SweepError;
use crate::Sweep;

/// As long as a process holds this file open, the processors wake up in the time that it wrote there, µs (the kernel's
/// Documentation/power/pm_qos_interface.rst).
const WAKE_UP_LATENCY: &str = "/dev/cpu_dma_latency";

/// How often waiting looks for an interruption.
const POLL: Duration = Duration::from_millis(20);

/// Both, for as long as the sweep runs. The cleanup process puts the processors back.
#[derive(Debug)]
pub(super) struct Power {
    lent: Option<Lent>,
    throttle: Option<Throttle>,
    pub(super) energy: Energymeter,
    pub(super) sysfs: PathBuf,
    /// Open while idle processors are to poll.
    _awake: Option<File>,
}

impl Power {
    /// Sets what holds for the whole sweep, and measures the idle machine, if that has not been done for `out`.
    pub(super) fn start(
        sweep: &Sweep<'_>,
        cleanup: &mut CleanupProcess,
    ) -> Result<Self, SweepError> {
        let &Sweep { plan, out, sysfs, .. } = sweep;
        let state = &cleanup.state;
        let lent = if plan.lends_processors() {
            let lent = Lent::take(sysfs, &state.processors, &plan.frequency_options)?;
            Some(lent)
        } else {
            None
        };
        let awake = plan.poll_idle.then(keep_awake).transpose()?;
        let throttle = match &state.cgroup {
            Some(dir) => {
                let name = dir.file_name().unwrap_or_default();
                let throttle = Throttle::create(&find(sysfs)?, &name.to_string_lossy())?;
                Some(throttle)
            }
            None => None,
        };
        let mut energy = match Energymeter::open(sysfs, &plan.energy) {
            Err(_) if interrupt::interrupted() => return Err(SweepError::Interrupted),
            energy => energy.map_err(SweepError::Meter)?,
        };
        if let Some(group) = energy.group() {
            cleanup.also_end(group)?;
        }
        let before = about(out);
        match before.idle_watts {
            Some(watts) if before.source == energy.about().source => energy.set_idle_watts(watts),
            _ => measure_idle(&mut energy, &plan.energy.idle)?,
        }
        if interrupt::interrupted() {
            return Err(SweepError::Interrupted);
        }
        let path = file(out);
        let text = format!("{:#}\n", serde_json::json!(energy.about()));
        fs::write(&path, text).map_err(SweepError::io("write", &path))?;
        Ok(Self { lent, throttle, energy, sysfs: sysfs.to_owned(), _awake: awake })
    }

    /// Brings processors and throttle to a point's `setting`, and lets its workload begin there.
    pub(super) fn set(
        &self,
        setting: Option<Setting>,
        command: &mut Command,
    ) -> Result<(), SweepError> {
        let Some(setting) = setting else {
            return Ok(());
        };
        if let Some(lent) = &self.lent {
            lent.set(&setting)?;
        }
        if let (Some(throttle), Some(percent)) = (&self.throttle, setting.share()) {
            throttle.limit(percent)?;
            throttle.enter(command)?;
        }
        Ok(())
    }
}

/// Keeps idle processors from halting until the file is closed. A virtual processor that halts loses its place on the
/// host, and its next wake-up takes as long as the host's other guests please.
fn keep_awake() -> Result<File, SweepError> {
    let mut file = open_latency()?;
    let written = file.write_all(&0_i32.to_ne_bytes());
    written.map_err(SweepError::io("write", Path::new(WAKE_UP_LATENCY)))?;
    Ok(file)
}

/// Opens the file in which a process asks for short wake-ups. Opening alone asks for nothing.
pub(super) fn open_latency() -> Result<File, SweepError> {
    let opened = File::options().write(true).open(WAKE_UP_LATENCY);
    opened.map_err(|reason| {
        SweepError::Plan(format!(
            "poll-idle: cannot open {WAKE_UP_LATENCY} ({reason}): run as root, or leave poll-idle out"
        ))
    })
}

/// How energy was measured for the results in `out`; nothing if it never was.
pub(super) fn about(out: &Path) -> About {
    let text = fs::read_to_string(file(out)).unwrap_or_default();
    // One that was half written is made again.
    serde_json::from_str(&text).unwrap_or_default()
}

fn file(out: &Path) -> PathBuf {
    out.join("energy.json")
}

fn measure_idle(energy: &mut Energymeter, time: &str) -> Result<(), SweepError> {
    let time = Duration::from_nanos(parse_duration_ns(time)?);
    if !energy.is_there() || time.is_zero() {
        return Ok(());
    }
    energy.begin();
    let until = Instant::now() + time;
    while Instant::now() < until && !interrupt::interrupted() {
        sleep(POLL.min(until.saturating_duration_since(Instant::now())));
    }
    if let Some(idle) = energy.end() {
        energy.set_idle(&idle);
    }
    Ok(())
}
