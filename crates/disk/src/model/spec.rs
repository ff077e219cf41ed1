//! Which model, with which parameters: by name or from a TOML file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cloud::Cloud;
use super::hdd::Hdd;
use super::ssd::Ssd;
use super::{CloudParameters, Fixed, HddParameters, Model, SsdParameters};
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
    /// Each request costs its constant, one at a time.
    Fixed {
        /// Cost of a read, nanoseconds.
        #[serde(default = "fixed_read_ns")]
        read_ns: u64,
        /// Cost of a write or discard, nanoseconds.
        #[serde(default = "fixed_write_ns")]
        write_ns: u64,
        /// Cost of a flush, nanoseconds.
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
    /// The model of that name with its default parameters.
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

    /// The model described by a TOML file.
    ///
    /// # Errors
    /// [`Error::ModelFile`] when the file cannot be read or does not describe a model.
    pub fn from_toml_file(path: &Path) -> Result<Self, Error> {
        let wrong = |reason: String| Error::ModelFile {
            path: path.to_owned(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let spec: Self = toml::from_str(&text).map_err(|e| wrong(e.message().to_owned()))?;
        spec.check()?;
        Ok(spec)
    }

    /// Whether the parameters make sense together.
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
        checked.map_err(|reason| Error::ModelParameter {
            model: self.name(),
            reason,
        })
    }

    /// A disk whose requests cost nothing.
    pub fn free() -> Self {
        Self::Fixed {
            read_ns: 0,
            write_ns: 0,
            flush_ns: 0,
        }
    }

    /// The name of the model, as [`ModelSpec::from_name`] takes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed { .. } => "fixed",
            Self::Hdd(_) => "hdd",
            Self::Ssd(_) => "ssd",
            Self::Cloud(_) => "cloud",
        }
    }

    /// A model in its initial state, for a disk of `size_bytes`.
    pub fn build(&self, size_bytes: u64) -> Box<dyn Model> {
        match self {
            Self::Fixed {
                read_ns,
                write_ns,
                flush_ns,
            } => Box::new(Fixed {
                read_ns: *read_ns,
                write_ns: *write_ns,
                flush_ns: *flush_ns,
                ..Fixed::default()
            }),
            Self::Hdd(parameters) => Box::new(Hdd::new(parameters.clone(), size_bytes)),
            Self::Ssd(parameters) => Box::new(Ssd::new(parameters.clone())),
            Self::Cloud(parameters) => Box::new(Cloud::new(parameters.clone())),
        }
    }

    /// Bytes of volatile write cache; 0 when a completed write is durable.
    pub fn cache_bytes(&self) -> u64 {
        match self {
            Self::Fixed { .. } => 32 << 20,
            Self::Hdd(parameters) => parameters.cache_bytes,
            Self::Ssd(parameters) => parameters.cache_bytes,
            Self::Cloud(_) => 0,
        }
    }

    /// Whether the kernel should take it for a rotating disk.
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

/// The known name with the fewest edits to `name`.
fn nearest(name: &str) -> &'static str {
    NAMES
        .into_iter()
        .min_by_key(|known| edits(name, known))
        .unwrap_or("fixed")
}

/// Levenshtein distance in characters.
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
        assert!(
            error.to_string().contains("did you mean 'fixed'"),
            "{error}"
        );
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn names_are_their_own_models_and_survive_toml() {
        for name in NAMES {
            let spec = ModelSpec::from_name(name).expect("known");
            assert_eq!(spec.name(), name);
            let text = toml::to_string(&spec).expect("serializes");
            assert_eq!(
                toml::from_str::<ModelSpec>(&text).expect("reads back"),
                spec
            );
        }
    }
}
