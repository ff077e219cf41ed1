//! Selection of a model and its parameters, by name or from a TOML file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cloud::CloudModel;
use super::hdd::HddModel;
use super::ssd::SsdModel;
use super::{CloudParameters, FixedModel, HddParameters, LatencyModel, SsdParameters};
use crate::Error;

/// A model and its parameters. As TOML, `model` names it and the rest are its parameters, each
/// with a default:
///
/// ```toml
/// model = "fixed"
/// read_ns = 100_000
/// write_ns = 100_000
/// flush_ns = 6_000_000
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "lowercase")]
pub enum ModelSpec {
    /// Constant time per request, one request at a time.
    Fixed {
        #[serde(default = "fixed_read_ns")]
        read_ns: u64,
        /// Cost of a write or discard, nanoseconds.
        #[serde(default = "fixed_write_ns")]
        write_ns: u64,
        #[serde(default = "fixed_flush_ns")]
        flush_ns: u64,
    },
    /// A 7200 rpm hard disk.
    Hdd(HddParameters),
    /// A SATA solid-state disk.
    Ssd(SsdParameters),
    /// A network volume with capped rates.
    Cloud(CloudParameters),
}

/// Names that [`ModelSpec::from_name`] knows.
const NAMES: [&str; 4] = ["fixed", "hdd", "ssd", "cloud"];

impl ModelSpec {
    /// Returns the model of that name with its default parameters.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] with the nearest name.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "fixed" => Ok(Self::Fixed {
                read_ns: fixed_read_ns(),
                write_ns: fixed_write_ns(),
                flush_ns: fixed_flush_ns(),
            }),
            "hdd" => Ok(Self::Hdd(HddParameters::default())),
            "ssd" => Ok(Self::Ssd(SsdParameters::default())),
            "cloud" => Ok(Self::Cloud(CloudParameters::default())),
            _ => Err(Error::UnknownModel {
                name: name.to_owned(),
                known: NAMES.join(", "),
                nearest: nearest(name).to_owned(),
            }),
        }
    }

    /// Reads a model from a TOML file.
    ///
    /// # Errors
    /// [`Error::ModelFile`] when the file cannot be read or does not describe a model.
    pub fn from_toml_file(path: &Path) -> Result<Self, Error> {
        let wrong = |reason: String| Error::ModelFile { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let spec: Self = toml::from_str(&text).map_err(|e| wrong(e.message().to_owned()))?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// [`Error::ModelParameter`] with the parameter and what is right.
    pub fn check(&self) -> Result<(), Error> {
        let checked = match self {
            Self::Fixed { .. } => Ok(()),
            Self::Hdd(parameters) => parameters.check(),
            Self::Ssd(parameters) => parameters.check(),
            Self::Cloud(parameters) => parameters.check(),
        };
        checked.map_err(|reason| Error::ModelParameter { model: self.name(), reason })
    }

    /// Returns the same disk with all times multiplied by `permille` / 1000. It is for a guest whose processor stands
    /// for a faster one.
    #[must_use]
    pub fn slowed(&self, permille: u64) -> Self {
        let time = |ns: u64| ns.saturating_mul(permille) / 1000;
        let rate = |per_second: u64| match per_second {
            0 => 0,
            _ => (per_second.saturating_mul(1000) / permille.max(1)).max(1),
        };
        match self.clone() {
            Self::Fixed { read_ns, write_ns, flush_ns } => Self::Fixed {
                read_ns: time(read_ns),
                write_ns: time(write_ns),
                flush_ns: time(flush_ns),
            },
            Self::Hdd(of) => Self::Hdd(HddParameters {
                rpm: rate(of.rpm),
                track_to_track_ns: time(of.track_to_track_ns),
                average_seek_ns: time(of.average_seek_ns),
                full_stroke_ns: time(of.full_stroke_ns),
                write_settle_ns: time(of.write_settle_ns),
                outer_bytes_per_second: rate(of.outer_bytes_per_second),
                inner_bytes_per_second: rate(of.inner_bytes_per_second),
                link_bytes_per_second: rate(of.link_bytes_per_second),
                overhead_ns: time(of.overhead_ns),
                destage_after_ns: time(of.destage_after_ns),
                ..of
            }),
            Self::Ssd(of) => Self::Ssd(SsdParameters {
                read_ns: time(of.read_ns),
                write_ns: time(of.write_ns),
                read_iops: rate(of.read_iops),
                write_iops: rate(of.write_iops),
                read_bytes_per_second: rate(of.read_bytes_per_second),
                write_bytes_per_second: rate(of.write_bytes_per_second),
                flush_ns: time(of.flush_ns),
                ..of
            }),
            Self::Cloud(of) => Self::Cloud(CloudParameters {
                latency_ns: time(of.latency_ns),
                iops: rate(of.iops),
                bytes_per_second: rate(of.bytes_per_second),
                burst_ns: time(of.burst_ns),
                ..of
            }),
        }
    }

    /// Writes it as text for a TOML file.
    ///
    /// # Errors
    /// [`Error::ModelParameter`] for a number that TOML has not (beyond 2^63).
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::ModelParameter {
            model: self.name(),
            reason: error.to_string(),
        })
    }

    /// Returns a disk whose requests cost nothing.
    pub fn free() -> Self {
        Self::Fixed { read_ns: 0, write_ns: 0, flush_ns: 0 }
    }

    /// Returns the name of the model, as [`ModelSpec::from_name`] takes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed { .. } => "fixed",
            Self::Hdd(_) => "hdd",
            Self::Ssd(_) => "ssd",
            Self::Cloud(_) => "cloud",
        }
    }

    /// Builds a model in its initial state, for a disk of `size_bytes`.
    pub fn build(&self, size_bytes: u64) -> Box<dyn LatencyModel> {
        match self {
            Self::Fixed { read_ns, write_ns, flush_ns } => Box::new(FixedModel {
                read_ns: *read_ns,
                write_ns: *write_ns,
                flush_ns: *flush_ns,
                ..FixedModel::default()
            }),
            Self::Hdd(parameters) => Box::new(HddModel::new(parameters.clone(), size_bytes)),
            Self::Ssd(parameters) => Box::new(SsdModel::new(parameters.clone())),
            Self::Cloud(parameters) => Box::new(CloudModel::new(parameters.clone())),
        }
    }

    /// Returns bytes of volatile write cache; 0 when a completed write is durable.
    pub fn cache_bytes(&self) -> u64 {
        match self {
            Self::Fixed { .. } => 32 << 20,
            Self::Hdd(parameters) => parameters.cache_bytes,
            Self::Ssd(parameters) => parameters.cache_bytes,
            Self::Cloud(_) => 0,
        }
    }

    /// Returns whether the kernel should take it for a rotating disk.
    pub fn is_rotational(&self) -> bool {
        matches!(self, Self::Hdd(_))
    }
}

// A disk on which flushes dominate.
fn fixed_read_ns() -> u64 {
    100_000
}

fn fixed_write_ns() -> u64 {
    100_000
}

fn fixed_flush_ns() -> u64 {
    6_000_000
}

/// Returns the known name with the fewest edits to `name`.
fn nearest(name: &str) -> &'static str {
    NAMES.into_iter().min_by_key(|known| edits(name, known)).unwrap_or("fixed")
}

/// Computes the Levenshtein distance in characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let error = ModelSpec::from_name("fxed").expect_err("no such model");
        assert!(error.to_string().contains("did you mean 'fixed'"), "{error}");
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn a_slowed_disk_takes_as_much_longer_for_all() {
        use super::super::{DiskRequest, DiskRequestKind};
        for name in NAMES {
            let spec = ModelSpec::from_name(name).expect("known");
            assert_eq!(spec.slowed(1000), spec);
            let slowed = spec.slowed(2060);
            slowed.check().expect("makes sense, too");
            let ends = |spec: &ModelSpec, permille: u64| -> Vec<u64> {
                let mut model = spec.build(2 << 30);
                let requests = [
                    (DiskRequestKind::Read, 0, 4096),
                    (DiskRequestKind::Read, 1 << 30, 65_536),
                    (DiskRequestKind::Write, 3 << 28, 4096),
                    (DiskRequestKind::Write, 1 << 20, 1 << 20),
                    (DiskRequestKind::Flush, 0, 0),
                ];
                let mut now_ns = 0;
                let mut all = Vec::new();
                for (kind, offset_bytes, len_bytes) in requests {
                    let request = DiskRequest { kind, offset_bytes, len_bytes };
                    now_ns = model.complete_at_ns(now_ns, request);
                    all.push(now_ns);
                    now_ns += 3_000_000 * permille / 1000;
                }
                all
            };
            for (own, other) in ends(&spec, 1000).into_iter().zip(ends(&slowed, 2060)) {
                let expected = own as f64 * 2.06;
                assert!(
                    (other as f64 - expected).abs() < expected * 0.002,
                    "{name}: {other} for {expected}"
                );
            }
            let text = slowed.to_toml().expect("serializes");
            assert_eq!(toml::from_str::<ModelSpec>(&text).expect("reads back"), slowed);
        }
    }

    #[test]
    fn names_are_their_own_models_and_survive_toml() {
        for name in NAMES {
            let spec = ModelSpec::from_name(name).expect("known");
            assert_eq!(spec.name(), name);
            let text = toml::to_string(&spec).expect("serializes");
            assert_eq!(toml::from_str::<ModelSpec>(&text).expect("reads back"), spec);
        }
    }
}
