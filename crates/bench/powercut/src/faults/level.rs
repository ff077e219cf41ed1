//! Levels that bring calls together in the trials: the gate or the kernel module.

use std::ffi::OsString;
use std::process::Command;

use luc_module::JournalStats;

use super::error::FaultsError;
use super::fault_disk::FaultDisk;
use super::gate::{GateCommand, GateHeldCalls, TrialPolicy};
use super::loaded_module::LoadedModule;

/// Level that brings calls together.
#[derive(Debug, Clone)]
pub enum BatchingLevel {
    /// The gate, in the programs.
    Gate(GateCommand),
    Kernel(LoadedModule),
}

impl BatchingLevel {
    /// Builds the command that runs `words` in `place` under `policy`, or alone.
    pub(super) fn command(
        &self,
        policy: Option<&TrialPolicy>,
        place: &FaultDisk,
        words: &[OsString],
    ) -> Result<Command, FaultsError> {
        if let Self::Kernel(module) = self {
            module.set(policy, place)?;
        }
        Ok(match (self, policy) {
            (Self::Gate(gate), Some(policy)) => gate.command(policy, place.work(), words),
            _ => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        })
    }

    /// Returns the module's figures before a program starts.
    pub(super) fn stats(&self, place: &FaultDisk) -> Result<JournalStats, FaultsError> {
        match self {
            Self::Gate(_) => Ok(JournalStats::default()),
            Self::Kernel(module) => module.stats(place),
        }
    }

    /// Returns what was held in the run that has ended; `None` if unknown.
    pub(super) fn held(
        &self,
        place: &FaultDisk,
        before: &JournalStats,
    ) -> Result<Option<GateHeldCalls>, FaultsError> {
        match self {
            Self::Gate(_) => Ok(GateCommand::held(place.work(), place.dir())),
            Self::Kernel(module) => module.held(place, before).map(Some),
        }
    }
}
