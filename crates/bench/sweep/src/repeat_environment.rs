//! State of the machine during a repeat, recorded beside its figure.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use luc_host::installed_programs::tool;
use luc_host::processor_time::ProcessorTicks;
use luc_power::frequency::now_khz;
use serde::{Deserialize, Serialize};

/// State of the machine during one repeat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RepeatEnvironment {
    /// Start of the repeat, seconds since 1970.
    pub started_unix_s: u64,
    pub kernel: String,
    /// The QEMU of a guest and how it runs the processors; `None` on this machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu: Option<String>,
    /// Version of mkfs; `None` for an existing directory.
    pub mkfs: Option<String>,
    /// The mount as the kernel describes it: type, source, options. `None` if unknown.
    pub mount: Option<String>,
    /// Whether the page cache was dropped before (needs root).
    pub caches_dropped: bool,
    /// Time in which some task waited for I/O, microseconds (PSI); `None` without PSI.
    pub io_pressure_us: Option<u64>,
    /// The same for a processor.
    pub cpu_pressure_us: Option<u64>,
    /// Share of the processors' time that the hypervisor took.
    pub stolen_share: f64,
    /// The load average of the last minute, at the end.
    pub load: f64,
    /// The frequency governor of CPU 0; `None` without cpufreq.
    pub governor: Option<String>,
    /// Lowest and highest frequency that the processors reported at the end, kHz; `None` without cpufreq.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_khz: Option<[u64; 2]>,
}

#[derive(Debug)]
pub(super) struct EnvironmentBefore {
    started_unix_s: u64,
    io_us: Option<u64>,
    cpu_us: Option<u64>,
    processors: ProcessorTicks,
}

impl EnvironmentBefore {
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started_unix_s: since.map(|time| time.as_secs()).unwrap_or_default(),
            io_us: pressure_us("io"),
            cpu_us: pressure_us("cpu"),
            processors: ProcessorTicks::now(),
        }
    }

    /// Describes the environment of a repeat that worked in `dir`.
    pub(super) fn end(
        self,
        dir: &Path,
        fs: Option<&str>,
        caches_dropped: bool,
        sysfs: &Path,
    ) -> RepeatEnvironment {
        // First, before they slow down.
        let frequency_khz = now_khz(sysfs);
        let governor = sysfs.join("devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let since =
            |name: &str, before: Option<u64>| Some(pressure_us(name)?.saturating_sub(before?));
        let trimmed = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let load = trimmed("/proc/loadavg").unwrap_or_default();
        RepeatEnvironment {
            started_unix_s: self.started_unix_s,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            qemu: None,
            mkfs: fs.and_then(mkfs_version),
            mount: luc_disk::mount_of(dir),
            caches_dropped,
            io_pressure_us: since("io", self.io_us),
            cpu_pressure_us: since("cpu", self.cpu_us),
            stolen_share: ProcessorTicks::now().stolen_share_since(self.processors),
            load: load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            governor: luc_host::sysfs::read(&governor).ok(),
            frequency_khz,
        }
    }
}

fn pressure_us(name: &str) -> Option<u64> {
    some_us(&fs::read_to_string(format!("/proc/pressure/{name}")).ok()?)
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
fn some_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Returns the version line of a file system's mkfs.
pub(super) fn mkfs_version(fs: &str) -> Option<String> {
    let output = tool(format!("mkfs.{fs}")).arg("-V").output().ok()?;
    // mkfs.ext4 says it on standard error, mkfs.xfs on standard output.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure() {
        let text = "some avg10=0.00 avg60=0.10 avg300=0.00 total=1234\nfull avg10=0.00 total=9\n";
        assert_eq!(some_us(text), Some(1234));
        assert_eq!(some_us(""), None);
    }
}
