//! Processor settings and energy of a sweep, repeat by repeat.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;
use luc_power::energy::{EnergyMeter, EnergyProvenance};
use luc_power::frequency::cpu_quota::{CpuQuotaCgroup, find};
use luc_power::frequency::{BorrowedFrequency, FrequencySetting};
use luc_units::OnPath as _;
use luc_units::parse_duration_ns;

use super::borrow_request::BorrowRequest;
use super::cleanup::CleanupProcess;
use super::error::BorrowError;

/// File that limits the wake-up time of processors to the µs written to it, while a process holds it open. See the
/// kernel's Documentation/power/pm_qos_interface.rst.
pub(crate) const WAKE_UP_LATENCY: &str = "/dev/cpu_dma_latency";

/// Interval between checks for an interruption while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Borrowed processor settings and the meter of energy. The cleanup process restores the processors.
#[derive(Debug)]
pub struct BorrowedProcessors {
    lent: Option<BorrowedFrequency>,
    throttle: Option<CpuQuotaCgroup>,
    pub energy: EnergyMeter,
    pub sysfs: PathBuf,
    /// Open while idle processors are to poll.
    _awake: Option<File>,
}

impl BorrowedProcessors {
    /// Applies the settings of the whole sweep, and measures the idle machine unless that was done for this folder.
    ///
    /// # Errors
    /// [`BorrowError`]: processors or meter cannot be used, or the sweep was interrupted.
    pub fn start(
        request: &BorrowRequest<'_>,
        cleanup: &mut CleanupProcess,
    ) -> Result<Self, BorrowError> {
        let &BorrowRequest { out, sysfs, frequency, energy: options, .. } = request;
        let state = &cleanup.state;
        let lent = frequency
            .map(|options| BorrowedFrequency::take(sysfs, &state.processors, options))
            .transpose()?;
        let awake = request.poll_idle.then(keep_awake).transpose()?;
        let throttle = match &state.cgroup {
            Some(dir) => {
                let name = dir.file_name().unwrap_or_default();
                Some(CpuQuotaCgroup::create(&find(sysfs)?, &name.to_string_lossy())?)
            }
            None => None,
        };
        let mut energy = match EnergyMeter::open(sysfs, options) {
            Err(_) if interrupt_flag::interrupted() => return Err(BorrowError::Interrupted),
            energy => energy.map_err(BorrowError::Meter)?,
        };
        if let Some(group) = energy.group() {
            cleanup.also_end(group)?;
        }
        let before = energy_about(out);
        match before.idle_watts {
            Some(watts) if before.source == energy.about().source => energy.set_idle_watts(watts),
            _ => measure_idle(&mut energy, &options.idle)?,
        }
        if interrupt_flag::interrupted() {
            return Err(BorrowError::Interrupted);
        }
        let path = file(out);
        let text = format!("{:#}\n", serde_json::json!(energy.about()));
        fs::write(&path, text).map_err(BorrowError::io("write", &path))?;
        Ok(Self { lent, throttle, energy, sysfs: sysfs.to_owned(), _awake: awake })
    }

    /// Sets processors and throttle for one point, and makes `command` start under the throttle.
    ///
    /// # Errors
    /// [`BorrowError::Frequency`]: the kernel refuses the setting.
    pub fn set(
        &self,
        setting: Option<FrequencySetting>,
        command: &mut Command,
    ) -> Result<(), BorrowError> {
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
/// host. Its next wake-up then depends on the host's other guests.
fn keep_awake() -> Result<File, BorrowError> {
    let mut file = open_latency()?;
    let written = file.write_all(&0_i32.to_ne_bytes());
    written.map_err(BorrowError::io("write", Path::new(WAKE_UP_LATENCY)))?;
    Ok(file)
}

/// Opens the file in which a process asks for short wake-ups. Opening alone asks for nothing.
///
/// # Errors
/// [`BorrowError::WakeUpLatency`]: only root may.
pub fn open_latency() -> Result<File, BorrowError> {
    let opened = File::options().write(true).open(WAKE_UP_LATENCY);
    opened.map_err(|reason| BorrowError::WakeUpLatency { reason })
}

/// Returns how energy was measured for the results in `out`; the default if it never was.
#[must_use]
pub fn energy_about(out: &Path) -> EnergyProvenance {
    let text = fs::read_to_string(file(out)).unwrap_or_default();
    // A half-written file is made again.
    serde_json::from_str(&text).unwrap_or_default()
}

fn file(out: &Path) -> PathBuf {
    out.join("energy.json")
}

fn measure_idle(energy: &mut EnergyMeter, time: &str) -> Result<(), BorrowError> {
    let time = Duration::from_nanos(parse_duration_ns(time)?);
    if !energy.is_there() || time.is_zero() {
        return Ok(());
    }
    energy.begin();
    let until = Instant::now() + time;
    while Instant::now() < until && !interrupt_flag::interrupted() {
        sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
    }
    if let Some(idle) = energy.end() {
        energy.set_idle(&idle);
    }
    Ok(())
}
