//! Programs whose commits the kernel module holds.

use std::collections::BTreeMap;

use luc_module::{Journal, Machine, Settings, Stats};

use super::error::FaultsError;
use super::gate::{Held, Policy};
use super::place::Place;

/// The module that is loaded, on the journal of the file system under trial.
#[derive(Debug, Clone)]
pub struct Module {
    pub machine: Machine,
    /// What it is set to for each policy, by the policy's word for `luc run`.
    pub settings: BTreeMap<String, Settings>,
    /// What it is set to without one: it only counts.
    pub off: Settings,
}

impl Module {
    /// Sets the journal to `policy`.
    pub(super) fn set(&self, policy: Option<&Policy>, place: &Place) -> Result<(), FaultsError> {
        let settings = policy.and_then(|policy| self.settings.get(policy.word()));
        let settings = settings.unwrap_or(&self.off);
        luc_module::set(&self.machine, &[self.journal(place)?], settings)?;
        Ok(())
    }

    /// The journal's figures now.
    pub(super) fn stats(&self, place: &Place) -> Result<Stats, FaultsError> {
        Ok(self.journal(place)?.stats()?.unwrap_or_default())
    }

    /// What it did since `before`.
    pub(super) fn held(&self, place: &Place, before: &Stats) -> Result<Held, FaultsError> {
        let now = self.stats(place)?;
        Ok(Held {
            calls: now.holds.saturating_sub(before.holds),
            is_engaged: now.state == "engaged",
        })
    }

    /// The file system's journal.
    fn journal(&self, place: &Place) -> Result<Journal, FaultsError> {
        let module = luc_module::Module::open(&self.machine)?;
        Ok(module.find(&place.dir().to_string_lossy())?)
    }
}
