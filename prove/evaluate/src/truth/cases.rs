//! Planted troubles, and the findings that they must cause, by the section `[run]` of `prove/parts/truth.toml`.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::super::error::EvaluateError;
use super::super::runner;

/// A disk with ext4 on it; costs in milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Drive {
    #[serde(default = "quick")]
    read: f64,
    #[serde(default = "quick")]
    write: f64,
    flush: f64,
    /// Whether others are served while a read takes long. Then only reads are slowed down.
    #[serde(default)]
    serves_others: bool,
    #[serde(default)]
    mkfs: String,
    /// MiB that may be dirty on it before writers are slowed down; absent: the system's default.
    dirty_mib: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Role {
    /// Name of its threads, `comm`.
    pub(super) name: String,
    #[serde(default)]
    pub(super) disk: usize,
    /// Words of `luc-evaluate plant`.
    pub(super) words: String,
}

/// Party that a finding must name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "String")]
pub(super) enum Named {
    #[default]
    Any,
    Role(String),
    /// The party that is not the victim.
    Other,
}

/// A figure of the split that the disk determines, for the quickest tenth of fsyncs or commits.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    /// An fsync's wait for its own commit, full or fast.
    OwnCommit,
    Commit,
    FastCommit,
}

/// A finding that must be first.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Disk of the finding; `None`: first of all findings.
    pub(super) disk: Option<usize>,
    pub(super) finding: String,
    #[serde(default)]
    pub(super) victim: Named,
    #[serde(default)]
    pub(super) culprit: Named,
    /// Figure that takes two flushes of the disk.
    pub(super) figure: Option<Figure>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) disks: Vec<Drive>,
    pub(super) roles: Vec<Role>,
    pub(super) expected: Vec<Expected>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

const fn quick() -> f64 {
    0.02
}

impl From<String> for Named {
    fn from(name: String) -> Self {
        match name.as_str() {
            "other" => Self::Other,
            _ => Self::Role(name),
        }
    }
}

impl Drive {
    fn slower(&mut self, slowdown: f64) {
        if self.serves_others {
            self.read *= slowdown;
        } else {
            self.write *= slowdown;
            self.flush *= slowdown;
        }
    }

    /// Returns the words of `luc disk create`. `model` is the file that [`Drive::toml`] was written to.
    pub(super) fn words(&self, model: &Path) -> Vec<String> {
        let us = |ms: f64| format!("{}us", (ms * 1e3).round());
        let mut words = vec!["--model".to_owned()];
        if self.serves_others {
            words.push(model.display().to_string());
        } else {
            words.push("fixed".to_owned());
            for (option, ms) in
                [("--read", self.read), ("--write", self.write), ("--flush", self.flush)]
            {
                words.extend([option.to_owned(), us(ms)]);
            }
        }
        words.extend(["--size", "4G", "--mkfs", "ext4"].map(str::to_owned));
        if !self.mkfs.is_empty() {
            words.extend(["--mkfs-options".to_owned(), self.mkfs.clone()]);
        }
        words
    }

    /// Returns the file that describes the model, if it needs one.
    pub(super) fn toml(&self) -> Option<String> {
        let [read, write, flush] = [self.read, self.write, self.flush].map(|ms| (ms * 1e6).round());
        let model =
            format!("model = \"ssd\"\nread_ns = {read}\nwrite_ns = {write}\nflush_ns = {flush}\n");
        self.serves_others.then_some(model)
    }

    /// Duration of a full commit, and of the last block of a fast one, in milliseconds: a flush before the record that
    /// makes it valid, and one after it.
    pub(super) fn commit_ms(&self) -> f64 {
        2.0 * self.flush
    }

    pub(super) fn dirty_limit_bytes(&self) -> Option<u64> {
        self.dirty_mib.map(|mib| mib << 20)
    }
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, write, flush, mkfs, .. } = self;
        write!(f, "flush {flush} ms, write {write} ms, read {read} ms")?;
        if !mkfs.is_empty() {
            write!(f, ", mkfs `{mkfs}`")?;
        }
        match self.dirty_mib {
            Some(mib) => write!(f, ", {mib} MiB may be dirty"),
            None => Ok(()),
        }
    }
}

/// Returns all cases, on disks that are slower by this factor.
pub(super) fn all(slowdown: f64) -> Result<Vec<Case>, EvaluateError> {
    let Cases { case: mut cases } = runner::section("truth")?;
    let disks = cases.iter_mut().flat_map(|case| &mut case.disks);
    disks.for_each(|disk| disk.slower(slowdown));
    Ok(cases)
}
