//! RAPL in powercap: `/sys/class/powercap/intel-rapl:*`, which AMD's processors have under the same name.
//!
//! A zone `package-N` (or `package-N-die-M`) holds the zones `core` and `uncore`, whose energy is in it already; `dram`
//! is below it in the tree, and its energy is not. `psys` is all of the platform, packages included. So: packages and
//! DRAM, or else `psys` alone. `intel-rapl-mmio` is the same package by another way, and left out.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use luc_host::sysfs;

use super::wrapping_counter::WrappingCounter;
use super::{EnergySource, scope_of};

/// Shorter periods would take energy of their own.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Thread that reads RAPL's counters in powercap before they wrap.
pub(super) struct PowercapReader {
    counters: Arc<Mutex<ZoneCounters>>,
    origin: Instant,
    scope: String,
    begun: Option<ZoneTotals>,
    /// Channel whose end stops the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Counters of all zones, and their faults.
#[derive(Debug)]
pub(super) struct ZoneCounters {
    zones: Vec<(PathBuf, WrappingCounter)>,
    pub(super) scope: String,
    /// Longest interval between readings.
    pub(super) period: Duration,
    faults: u64,
    last_fault: String,
}

/// Energy of all zones up to one moment, and the faults so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct ZoneTotals {
    uj: u64,
    faults: u64,
}

impl PowercapReader {
    /// Starts to read. Errors: why it cannot be read.
    pub(super) fn open(sysfs: &Path) -> Result<Self, String> {
        let origin = Instant::now();
        let counters = ZoneCounters::open(sysfs, origin.elapsed())?;
        let (scope, period) = (counters.scope.clone(), counters.period);
        let counters = Arc::new(Mutex::new(counters));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&counters);
        let sample = move || {
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                lock(&shared).sample(|| origin.elapsed());
            }
        };
        let thread = thread::Builder::new()
            .name("energy".to_owned())
            .spawn(sample)
            .map_err(|error| format!("no thread to read energy: {error}"))?;
        Ok(Self { counters, origin, scope, begun: None, end: Some(end), thread: Some(thread) })
    }
}

fn lock(counters: &Mutex<ZoneCounters>) -> MutexGuard<'_, ZoneCounters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EnergySource for PowercapReader {
    fn name(&self) -> &'static str {
        "powercap"
    }

    fn scope(&self) -> String {
        self.scope.clone()
    }

    fn begin(&mut self) -> Result<(), String> {
        self.begun = None;
        let origin = self.origin;
        let begun = lock(&self.counters).begin(|| origin.elapsed())?;
        self.begun = Some(begun);
        Ok(())
    }

    fn end(&mut self) -> Result<f64, String> {
        let begun = self.begun.take().ok_or("it was not begun")?;
        let mut counters = lock(&self.counters);
        let ended = counters.sample(|| self.origin.elapsed());
        counters.joules(begun, ended)
    }
}

impl Drop for PowercapReader {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A reader that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

impl ZoneCounters {
    /// Finds the zones. Errors: there are none, or one of them cannot be read; a part of them would be no figure.
    pub(super) fn open(sysfs: &Path, now: Duration) -> Result<Self, String> {
        let class = sysfs.join("class/powercap");
        let (zones, scope) = choose(&class)?;
        let mut counters = Vec::new();
        let mut period = Duration::MAX;
        for zone in zones {
            let path = zone.join("energy_uj");
            let fault = |path: &Path| {
                let path = path.display().to_string();
                move |error: io::Error| format!("cannot read {path}: {}", advice(&error))
            };
            let now_uj = sysfs::read_number(&path).map_err(fault(&path))?;
            let range = zone.join("max_energy_range_uj");
            let range_uj = sysfs::read_number(&range).map_err(fault(&range))?;
            period = period.min(WrappingCounter::period(range_uj));
            if period < MIN_INTERVAL {
                return Err(format!(
                    "{} is {range_uj}, too short a range to read in time",
                    range.display()
                ));
            }
            counters.push((path, WrappingCounter::new(range_uj, now_uj, now)));
        }
        Ok(Self { zones: counters, scope, period, faults: 0, last_fault: String::new() })
    }

    /// Reads all of them, each at the time that `now` gives.
    pub(super) fn sample(&mut self, now: impl Fn() -> Duration) -> ZoneTotals {
        for (path, counter) in &mut self.zones {
            let read = sysfs::read_number(path).map_err(|error| advice(&error));
            if let Err(fault) = read.and_then(|now_uj| counter.add(now_uj, now())) {
                self.faults += 1;
                self.last_fault = format!("{}: {fault}", path.display());
            }
        }
        ZoneTotals {
            uj: self.zones.iter().map(|(_, zone)| zone.total_uj()).sum(),
            faults: self.faults,
        }
    }

    /// Reads all counters at the begin of a run. Errors: a counter cannot be read, and its value at the run's end would
    /// include energy from before.
    pub(super) fn begin(&mut self, now: impl Fn() -> Duration) -> Result<ZoneTotals, String> {
        let before = self.faults;
        let totals = self.sample(now);
        if totals.faults == before { Ok(totals) } else { Err(self.last_fault.clone()) }
    }

    /// Returns the joules between two moments. Errors: something was wrong between them.
    pub(super) fn joules(&self, begun: ZoneTotals, ended: ZoneTotals) -> Result<f64, String> {
        if begun.faults != ended.faults {
            return Err(self.last_fault.clone());
        }
        Ok((ended.uj - begun.uj) as f64 / 1e6)
    }
}

/// Chooses zones that are not part of each other, and describes their scope.
fn choose(class: &Path) -> Result<(Vec<PathBuf>, String), String> {
    let entries = fs::read_dir(class).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("no {}/intel-rapl:*", class.display()),
        _ => format!("cannot list {}: {error}", class.display()),
    })?;
    let mut zones: Vec<(String, String)> = Vec::new();
    for entry in entries.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with("intel-rapl:") {
            let path = class.join(&file).join("name");
            let name = sysfs::read(&path)
                .map_err(|error| format!("cannot read {}: {}", path.display(), advice(&error)))?;
            zones.push((file, name));
        }
    }
    zones.sort();
    let packages: BTreeSet<&str> = zones
        .iter()
        .filter(|(_, name)| name.starts_with("package"))
        .map(|(file, _)| file.as_str())
        .collect();
    let is_dram = |file: &str, name: &str| {
        let parent = file.rsplit_once(':').map(|(parent, _)| parent);
        name == "dram" && parent.is_some_and(|parent| packages.contains(parent))
    };
    let chosen: Vec<PathBuf> = zones
        .iter()
        .filter(|(file, name)| packages.contains(file.as_str()) || is_dram(file, name))
        .map(|(file, _)| class.join(file))
        .collect();
    if !chosen.is_empty() {
        let drams = chosen.len() - packages.len();
        return Ok((chosen, scope_of(drams > 0)));
    }
    let psys = zones.iter().find(|(_, name)| name == "psys");
    match psys {
        Some((file, _)) => Ok((
            vec![class.join(file)],
            "the platform (psys) of the whole machine, which its maker defines".to_owned(),
        )),
        None => Err(format!("no {}/intel-rapl:*", class.display())),
    }
}

/// Explains an error: since Linux 5.10 only root may read energy.
fn advice(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        format!("{error}: reading energy needs root")
    } else {
        error.to_string()
    }
}
