//! Programs whose commits the kernel module holds.

use std::collections::BTreeMap;

use luc_module::{JournalSettings, JournalStats, MachinePaths, ModuleJournal};

use super::error::FaultsError;
use super::fault_disk::FaultDisk;
use super::gate::{GateHeldCalls, TrialPolicy};

/// The module that is loaded, on the journal of the file system under trial.
#[derive(Debug, Clone)]
pub struct LoadedModule {
    pub machine: MachinePaths,
    /// Settings of the module for each policy, by the policy's name for `luc run`.
    pub settings: BTreeMap<String, JournalSettings>,
    /// Settings of the module without a policy: it only counts.
    pub off: JournalSettings,
}

impl LoadedModule {
    /// Sets the journal to `policy`.
    pub(super) fn set(
        &self,
        policy: Option<&TrialPolicy>,
        place: &FaultDisk,
    ) -> Result<(), FaultsError> {
        let settings =
            policy.and_then(|policy| self.settings.get(policy.word())).unwrap_or(&self.off);
        luc_module::set(&self.machine, &[self.journal(place)?], settings)?;
        Ok(())
    }

    pub(super) fn stats(&self, place: &FaultDisk) -> Result<JournalStats, FaultsError> {
        Ok(self.journal(place)?.stats()?.unwrap_or_default())
    }

    /// Returns what the module held since `before`.
    pub(super) fn held(
        &self,
        place: &FaultDisk,
        before: &JournalStats,
    ) -> Result<GateHeldCalls, FaultsError> {
        let now = self.stats(place)?;
        Ok(GateHeldCalls {
            calls: now.holds.saturating_sub(before.holds),
            is_engaged: now.state == "engaged",
        })
    }

    fn journal(&self, place: &FaultDisk) -> Result<ModuleJournal, FaultsError> {
        let module = luc_module::LucModule::open(&self.machine)?;
        Ok(module.find(&place.dir().to_string_lossy())?)
    }
}
