//! Stores what was learned about a disk: a file for each disk in `/var/lib/luc/throttle`.
//!
//! A file is JSON with a version. It is ignored if it is damaged, or has another version. It is also ignored if it
//! belongs to an earlier disk of the same name. So is a file that others than root could have written. [`read`]
//! reports why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_control::throttle::auto_throttle::DiskMeasurement;
use luc_control::throttle::forecast::DiskModel;
use luc_events::Dev;
use serde::{Deserialize, Serialize};

use crate::replace_file::write_whole;

/// Folder of the files.
pub const DIRECTORY: &str = "/var/lib/luc/throttle";
const VERSION: u32 = 2;
const SECTOR_BYTES: u64 = 512;

/// Results of a measurement of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskProfile {
    pub version: u32,
    pub disk: DiskIdentity,
    /// Highest rate of one stream, bytes per second.
    pub peak_bytes_per_s: f64,
    /// Rate of one stream by position, in sectors of 512 bytes and bytes per second; ascending.
    pub rates: Vec<(f64, f64)>,
    /// Cost of a switch between streams, ns.
    pub switch_ns: u64,
    /// Cost of a random read in one file, ns.
    pub random_ns: u64,
    /// Combined rates of numbers of streams, over the rate of one.
    pub speed_ups: Vec<(usize, f64)>,
    /// Degradation curves: tasks of equal demand that run together.
    pub curves: Vec<DegradationPoint>,
    /// Vector Points: the disk can serve this number of tasks of this mean demand, bytes per second.
    pub vector_points: Vec<(u32, f64)>,
}

/// A point of a degradation curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DegradationPoint {
    /// Number of tasks that ran together.
    pub tasks: u32,
    /// Block size of the probe, bytes.
    pub block_bytes: u64,
    /// Pause of the probe after each block, ns.
    pub think_ns: u64,
    /// Rate of each task alone, bytes per second.
    pub demand_bytes_per_s: f64,
    /// Part of that rate lost: 0 nothing, 1 everything.
    pub loss: f64,
}

/// Properties by which a disk is recognized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskIdentity {
    /// Its model and serial number, or its device number if it has none.
    pub name: String,
    pub size_bytes: u64,
}

impl DiskIdentity {
    /// Reads the identity of a present disk.
    ///
    /// # Errors
    ///
    /// Those of the system: the disk is not there.
    pub fn of(dev: Dev) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", dev.major(), dev.minor()));
        let sectors = fs::read_to_string(folder.join("size"))?;
        let sectors: u64 = sectors.trim().parse().map_err(io::Error::other)?;
        let text = |name: &str| {
            let text = fs::read_to_string(folder.join("device").join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        let words = [text("model"), text("serial"), text("wwid")];
        let known: Vec<&str> =
            words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        let mut name = known.join(" ");
        if words[1].is_empty() && words[2].is_empty() {
            // Two disks may have the same model.
            name = format!("{name} {}:{}", dev.major(), dev.minor());
        }
        Ok(Self { name: name.trim().to_owned(), size_bytes: sectors * SECTOR_BYTES })
    }

    /// Path of the disk's file. Other characters than letters and digits are replaced.
    fn file(&self) -> PathBuf {
        let name: String = self
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(128)
            .collect();
        Path::new(DIRECTORY).join(format!("{name}-{}.json", self.size_bytes))
    }
}

impl DiskProfile {
    /// Empty results in the present version.
    #[must_use]
    pub fn new(disk: DiskIdentity) -> Self {
        Self {
            version: VERSION,
            disk,
            peak_bytes_per_s: 0.0,
            rates: Vec::new(),
            switch_ns: 0,
            random_ns: 0,
            speed_ups: Vec::new(),
            curves: Vec::new(),
            vector_points: Vec::new(),
        }
    }

    /// Rate of one stream at this sector, bytes per second, interpolated between the measured positions.
    #[must_use]
    pub fn bytes_per_s_at(&self, sector: f64) -> f64 {
        let after = self.rates.partition_point(|(place, _)| *place <= sector);
        match (after.checked_sub(1).and_then(|i| self.rates.get(i)), self.rates.get(after)) {
            (Some((a, low)), Some((b, high))) if b > a => {
                low + (high - low) * (sector - a) / (b - a)
            }
            (Some((_, rate)), _) | (_, Some((_, rate))) => *rate,
            _ => self.peak_bytes_per_s,
        }
    }

    /// Model of the disk for forecasts.
    #[must_use]
    pub fn model(&self) -> DiskModel {
        let most = self.speed_ups.iter().map(|(_, worth)| *worth);
        DiskModel {
            bytes_per_s: self
                .bytes_per_s_at(self.disk.size_bytes as f64 / 2.0 / SECTOR_BYTES as f64),
            near_ns: self.random_ns,
            far_ns: self.switch_ns,
            request_ns: 0,
            slots: (most.fold(1.0, f64::max).round() as usize).clamp(1, 64),
        }
    }

    /// Results in the form that a policy needs.
    #[must_use]
    pub fn for_policy(&self) -> DiskMeasurement {
        DiskMeasurement { switch_ns: self.switch_ns, speed_ups: self.speed_ups.clone() }
    }

    /// Stores the results, and returns the path of the file. A reader sees the old file or the new one.
    pub fn write(&self) -> io::Result<PathBuf> {
        fs::create_dir_all(DIRECTORY)?;
        let path = self.disk.file();
        write_whole(&path, &serde_json::to_vec_pretty(self)?)?;
        Ok(path)
    }

    /// Whether its figures are possible.
    fn is_sane(&self) -> bool {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let are_rates =
            self.rates.iter().all(|(sector, rate)| sector.is_finite() && is_rate(*rate));
        let is_time = |ns: u64| ns < 60_000_000_000;
        let is_worth =
            |(tasks, worth): &(usize, f64)| *tasks > 1 && *tasks <= 1024 && is_rate(*worth);
        self.version == VERSION
            && is_rate(self.peak_bytes_per_s)
            && are_rates
            && self.rates.is_sorted_by(|a, b| a.0 <= b.0)
            && is_time(self.switch_ns)
            && is_time(self.random_ns)
            && self.speed_ups.iter().all(is_worth)
    }
}

/// Reads the results for a disk; `None` if there are none.
///
/// # Errors
///
/// The file is unusable: damaged, of another version, or not written by root.
pub fn read(dev: Dev) -> io::Result<Option<DiskProfile>> {
    let identity = DiskIdentity::of(dev)?;
    let Some(text) = luc_host::root_owned::read(&identity.file())? else {
        return Ok(None);
    };
    parse(&text, &identity).map(Some)
}

fn parse(text: &str, identity: &DiskIdentity) -> io::Result<DiskProfile> {
    let learned: DiskProfile = serde_json::from_str(text)?;
    if learned.disk != *identity {
        return Err(io::Error::other("it is of another disk"));
    }
    if !learned.is_sane() {
        return Err(io::Error::other("it has figures that cannot be"));
    }
    Ok(learned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned() -> DiskProfile {
        DiskProfile {
            peak_bytes_per_s: 1e8,
            speed_ups: vec![(2, 0.3)],
            ..DiskProfile::new(DiskIdentity { name: "Model/X 1".to_owned(), size_bytes: 5 })
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let learned = learned();
        let text = serde_json::to_string(&learned).expect("JSON");
        assert_eq!(parse(&text, &learned.disk).expect("good"), learned);
        let file = learned.disk.file();
        assert_eq!(file, Path::new(DIRECTORY).join("Model-X-1-5.json"));
        assert_eq!(learned.model().slots, 1);
        let zoned = DiskProfile { rates: vec![(100.0, 2e8), (200.0, 1e8)], ..learned };
        for (sector, rate) in [(0.0, 2e8), (150.0, 1.5e8), (900.0, 1e8)] {
            assert!((zoned.bytes_per_s_at(sector) - rate).abs() < 1.0);
        }
    }

    #[test]
    fn others_and_older_ones_are_refused() {
        let learned = learned();
        let other = DiskIdentity { size_bytes: 6, ..learned.disk.clone() };
        let text = serde_json::to_string(&learned).expect("JSON");
        assert!(parse(&text, &other).is_err());
        let newer = text.replace("\"version\":2", "\"version\":3");
        assert!(parse(&newer, &learned.disk).is_err());
        let no_rate = text.replace("100000000.0", "-1.0");
        assert!(parse(&no_rate, &learned.disk).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, cut in 0_usize..200) {
            let learned = learned();
            let whole = serde_json::to_string(&learned).expect("JSON");
            let _ = parse(&text, &learned.disk);
            let _ = parse(&whole[..cut.min(whole.len())], &learned.disk);
        }
    }
}
