//! A run that uses the module.

use std::process::Command;

use serde::Serialize;

use super::level_plan::LevelPlan;
use crate::journal_setting::SettingKey;
use crate::journal_stats::JournalStats;
use crate::module_sysfs::ModuleJournal;
use crate::setting_leases::{LeaseHolder, SettingLeases};
use crate::{BlockDeviceNumber, Error, MachinePaths};

/// A run that lends the module's settings to the journals that it uses.
pub struct ModuleRun<'w> {
    leases: SettingLeases,
    plan: LevelPlan,
    watcher: &'w dyn Fn(&str) -> Command,
    holder: Option<LeaseHolder>,
    /// Devices looked at, also those without a journal.
    seen: Vec<BlockDeviceNumber>,
    uses: Vec<StartedUse>,
    failures: Vec<Error>,
}

/// A journal, since the command was first seen to use it.
struct StartedUse {
    journal: ModuleJournal,
    /// `None` for a user who may not read them.
    before: Option<JournalStats>,
    is_lent: bool,
}

/// The module's work on a journal, for all programs, since the command was first seen to use it.
#[derive(Clone, Debug, Serialize)]
pub struct JournalUse {
    /// jbd2's name of the journal.
    pub journal: String,
    pub device: BlockDeviceNumber,
    /// Whether this run lent the journal's settings.
    pub is_lent: bool,
    /// The policy at the end.
    pub policy: String,
    /// Copy-out at the end.
    pub copy_out: String,
    /// fsyncs per commit that an fsync asked for.
    pub fsyncs_per_commit: Option<f64>,
    /// All figures; `None` for a user who may not read them.
    pub stats: Option<JournalStats>,
}

impl std::fmt::Debug for ModuleRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("plan", &self.plan)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl<'w> ModuleRun<'w> {
    /// Begins a run. `watcher` makes the command that watches over a holder of that name (see
    /// [`setting_leases::watch`](crate::setting_leases::watch)).
    pub fn new(
        machine: &MachinePaths,
        plan: LevelPlan,
        watcher: &'w dyn Fn(&str) -> Command,
    ) -> Self {
        Self {
            leases: SettingLeases::of(machine),
            plan,
            watcher,
            holder: None,
            seen: Vec::new(),
            uses: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Notes that the command uses a file system; only the first time counts.
    pub fn uses(&mut self, device: BlockDeviceNumber) {
        if self.seen.contains(&device) {
            return;
        }
        self.seen.push(device);
        let module = self.plan.module.as_ref();
        let Some(journal) = module.and_then(|module| module.journal_of(device)) else {
            return;
        };
        let begun = journal
            .stats()
            .and_then(|before| Ok(StartedUse { is_lent: self.lend(&journal)?, before, journal }));
        match begun {
            Ok(begun) => self.uses.push(begun),
            Err(error) => self.failures.push(error),
        }
    }

    fn lend(&mut self, journal: &ModuleJournal) -> Result<bool, Error> {
        let Some(lend) = &self.plan.lend else {
            return Ok(false);
        };
        let is_meant = |devices: &Vec<BlockDeviceNumber>| devices.contains(&journal.device);
        if !lend.devices.as_ref().is_none_or(is_meant) {
            return Ok(false);
        }
        let holder = match self.holder.take() {
            Some(holder) => holder,
            None => LeaseHolder::new(&self.leases, self.watcher)?,
        };
        self.holder.insert(holder).lend(journal, &lend.settings)?;
        Ok(true)
    }

    /// Ends the run and restores the settings. Returns the module's work and the failures on the way.
    pub fn end(mut self) -> (Vec<JournalUse>, Vec<Error>) {
        let mut uses = Vec::new();
        for begun in &self.uses {
            match begun.end() {
                Ok(used) => uses.push(used),
                Err(error) => self.failures.push(error),
            }
        }
        if let Some(Err(error)) = self.holder.take().map(LeaseHolder::end) {
            self.failures.push(error);
        }
        (uses, self.failures)
    }
}

impl StartedUse {
    fn end(&self) -> Result<JournalUse, Error> {
        let now = self.journal.stats()?;
        let stats = now.zip(self.before.as_ref()).map(|(now, before)| now.since(before));
        Ok(JournalUse {
            journal: self.journal.name.clone(),
            device: self.journal.device,
            is_lent: self.is_lent,
            policy: self.journal.read(SettingKey::Policy)?,
            copy_out: self.journal.read(SettingKey::CopyOut)?,
            fsyncs_per_commit: stats.as_ref().and_then(JournalStats::fsyncs_per_commit),
            stats,
        })
    }
}
