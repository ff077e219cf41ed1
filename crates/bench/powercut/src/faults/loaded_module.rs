//! Programs whose commits the kernel module holds.

use std::collections::BTreeMap;

use luc_module::{Journal, Machine, Settings, Stats};

use super::error::FaultsError;
use super::gate::{HeldCalls, Policy};
use super::place::FaultDisk;

/// The module that is loaded, on the journal of the file system under trial.
#[derive(Debug, Clone)]
pub struct Module {
    pub machine: Machine,
    /// Settings of the module for each policy, by the policy's name for `luc run`.
    pub settings: BTreeMap<String, Settings>,
    /// Settings of the module without a policy: it only counts.
    pub off: Settings,
}

impl Module {
    /// Sets the journal to `policy`.
    pub(super) fn set(
        &self,
        policy: Option<&Policy>,
        place: &FaultDisk,
    ) -> Result<(), FaultsError> {
        let settings =
            policy.and_then(|policy| self.settings.get(policy.word())).unwrap_or(&self.off);
        luc_module::set(&self.machine, &[self.journal(place)?], settings)?;
        Ok(())
    }

    pub(super) fn stats(&self, place: &FaultDisk) -> Result<Stats, FaultsError> {
        Ok(self.journal(place)?.stats()?.unwrap_or_default())
    }

    /// Returns what the module held since `before`.
    pub(super) fn held(&self, place: &FaultDisk, before: &Stats) -> Result<HeldCalls, FaultsError> {
        let now = self.stats(place)?;
        Ok(HeldCalls {
            calls: now.holds.saturating_sub(before.holds),
            is_engaged: now.state == "engaged",
        })
    }

    fn journal(&self, place: &FaultDisk) -> Result<Journal, FaultsError> {
        let module = luc_module::Module::open(&self.machine)?;
        Ok(module.find(&place.dir().to_string_lossy())?)
    }
}
