//! Settings of a journal: names, valid values, and their form on the command line.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A setting; the name of its file in the journal's directory.
///
/// The variants are in the order of writing: the settings of a policy come before the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKey {
    /// Policy `delay`: time that a commit is held after the last fsync, in microseconds.
    DelayUs,
    /// Policy `delay`: number of times that a further fsync restarts that time.
    MaxRestarts,
    /// Policy `pid`: the longest wait for the next fsync, in microseconds.
    TimeoutUs,
    /// The longest that any policy holds a commit, in microseconds.
    MaxHoldUs,
    /// Policy `pid`: fsyncs per commit to steer for; 0 for half of the tasks that call fsync.
    SetPoint,
    /// Policy `pid`: proportional gain, in thousandths.
    KpMilli,
    /// Policy `pid`: integral gain, in thousandths.
    KiMilli,
    /// Policy `pid`: derivative gain, in thousandths.
    KdMilli,
    /// Copy-out `heuristic`: delayed writes, in thousandths of all, above which copying begins.
    CopyOutThresholdPermille,
    /// Copy-out `heuristic`: commits without a delayed write after which copying ends.
    CopyOutCleanRuns,
    /// The most that one commit may copy, in KiB.
    CopyOutLimitKib,
    /// Mode of copying journal blocks, so that writes do not wait for the commit.
    CopyOut,
    /// Whether and how commits are held.
    Policy,
}

enum ValidValues {
    Word(&'static [&'static str]),
    Number { from: u64, to: u64 },
}

impl SettingKey {
    /// All settings, in the order in which they are written.
    pub const ALL: [Self; 13] = [
        Self::DelayUs,
        Self::MaxRestarts,
        Self::TimeoutUs,
        Self::MaxHoldUs,
        Self::SetPoint,
        Self::KpMilli,
        Self::KiMilli,
        Self::KdMilli,
        Self::CopyOutThresholdPermille,
        Self::CopyOutCleanRuns,
        Self::CopyOutLimitKib,
        Self::CopyOut,
        Self::Policy,
    ];

    /// The setting's name, which is its file's.
    pub fn name(self) -> &'static str {
        match self {
            Self::DelayUs => "delay_us",
            Self::MaxRestarts => "max_restarts",
            Self::TimeoutUs => "timeout_us",
            Self::MaxHoldUs => "max_hold_us",
            Self::SetPoint => "set_point",
            Self::KpMilli => "kp_milli",
            Self::KiMilli => "ki_milli",
            Self::KdMilli => "kd_milli",
            Self::CopyOutThresholdPermille => "copy_out_threshold_permille",
            Self::CopyOutCleanRuns => "copy_out_clean_runs",
            Self::CopyOutLimitKib => "copy_out_limit_kib",
            Self::CopyOut => "copy_out",
            Self::Policy => "policy",
        }
    }

    fn valid_values(self) -> ValidValues {
        let (from, to) = match self {
            Self::Policy => return ValidValues::Word(&["off", "delay", "pid", "auto"]),
            Self::CopyOut => return ValidValues::Word(&["off", "on", "heuristic", "auto"]),
            // No configuration may hold a commit for longer: the module's own bound.
            Self::DelayUs | Self::TimeoutUs | Self::MaxHoldUs => (0, 50_000),
            Self::MaxRestarts | Self::SetPoint => (0, 1_000_000),
            Self::CopyOutCleanRuns => (1, 1_000_000),
            Self::KpMilli | Self::KiMilli | Self::KdMilli => (0, 100_000),
            Self::CopyOutThresholdPermille => (0, 1_000),
            Self::CopyOutLimitKib => (0, 1_048_576),
        };
        ValidValues::Number { from, to }
    }

    /// The setting of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchSetting`] with the name that looks most like it.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|key| key.name() == name);
        found.ok_or_else(|| Error::NoSuchSetting {
            given: name.to_owned(),
            nearest: find_nearest(name),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`Error::BadValue`] with what the setting takes.
    pub fn check(self, value: &str) -> Result<(), Error> {
        let (fits, expected) = match self.valid_values() {
            ValidValues::Word(words) => (words.contains(&value), words.join(", ")),
            ValidValues::Number { from, to } => {
                let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
                let number = value.parse::<u64>().ok().filter(|_| digits);
                (
                    number.is_some_and(|n| (from..=to).contains(&n)),
                    format!("a whole number from {from} to {to}"),
                )
            }
        };
        if fits {
            return Ok(());
        }
        Err(Error::BadValue { key: self.name(), value: value.to_owned(), expected })
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name that looks most like `given`, if any does.
fn find_nearest(given: &str) -> Option<&'static str> {
    let given = given.to_lowercase().replace('-', "_");
    let alike = |name: &'static str| (strsim::jaro_winkler(&given, name), name);
    let best =
        SettingKey::ALL.into_iter().map(|key| alike(key.name())).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.75).map(|(_, name)| name)
}

/// Some settings with their values, each checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JournalSettings(BTreeMap<SettingKey, String>);

impl JournalSettings {
    /// Reads `policy=auto` and its like; the last of two for one setting counts.
    ///
    /// # Errors
    /// [`Error::NotASetting`], [`Error::NoSuchSetting`], [`Error::BadValue`].
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, Error> {
        let mut settings = Self::default();
        for word in words {
            let (name, value) =
                word.split_once('=').ok_or_else(|| Error::NotASetting(word.to_owned()))?;
            settings.add(SettingKey::parse(name)?, value)?;
        }
        Ok(settings)
    }

    /// Adds a setting.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn add(&mut self, key: SettingKey, value: impl ToString) -> Result<(), Error> {
        let value = value.to_string();
        key.check(&value)?;
        self.0.insert(key, value);
        Ok(())
    }

    /// The value of a setting, if it is among them.
    pub fn get(&self, key: SettingKey) -> Option<&str> {
        self.0.get(&key).map(String::as_str)
    }

    /// The settings in the order of writing.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (SettingKey, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn remove(&mut self, key: SettingKey) {
        self.0.remove(&key);
    }

    /// Adds a setting that the module has, unchecked.
    pub(crate) fn put(&mut self, key: SettingKey, value: String) {
        self.0.insert(key, value);
    }

    /// Settings that the module has, unchecked.
    pub(crate) fn from_module(values: impl IntoIterator<Item = (SettingKey, String)>) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        for (given, near) in [
            ("polcy", "policy"),
            ("copyout", "copy_out"),
            ("delay", "delay_us"),
            ("max-hold-us", "max_hold_us"),
            ("setpoint", "set_point"),
        ] {
            let error = SettingKey::parse(given).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean '{near}'?")), "{error}");
        }
        let error = SettingKey::parse("qqq").unwrap_err().to_string();
        assert!(!error.contains("did you mean") && error.contains("set_point"), "{error}");
    }

    #[test]
    fn values_are_checked_before_anything_is_written() {
        for (word, expected) in [
            ("policy=on", "off, delay, pid, auto"),
            ("copy_out=yes", "off, on, heuristic, auto"),
            ("max_hold_us=50001", "from 0 to 50000"),
            ("delay_us=-1", "whole number"),
            ("delay_us=+1", "whole number"),
            ("delay_us=1ms", "whole number"),
            ("set_point=", "whole number"),
            ("copy_out_threshold_permille=1001", "from 0 to 1000"),
            ("policy", "KEY=VALUE"),
        ] {
            let error = JournalSettings::parse([word]).unwrap_err().to_string();
            assert!(error.contains(expected), "{word}: {error}");
        }
    }

    #[test]
    fn the_policy_is_written_last() {
        let settings =
            JournalSettings::parse(["policy=delay", "delay_us=500", "policy=pid"]).unwrap();
        let order: Vec<_> = settings.iter().collect();
        assert_eq!(order, [(SettingKey::DelayUs, "500"), (SettingKey::Policy, "pid")]);
        assert!(SettingKey::ALL.is_sorted());
    }

    proptest! {
        #[test]
        fn no_word_panics(word in ".{0,40}") {
            let _ = JournalSettings::parse([word.as_str()]);
        }
    }
}
