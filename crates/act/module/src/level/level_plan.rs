//! Decides whether the gate or the module batches on a journal.

use std::fmt;

use serde::Serialize;

use crate::journal_setting::{JournalSettings, SettingKey};
use crate::module_sysfs::ModuleJournal;
use crate::setting_leases::SettingLeases;
use crate::{BlockDeviceNumber, Error, LucModule, MachinePaths};

/// The level that a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedLevel {
    /// The highest that is there.
    Auto,
    Gate,
    Kernel,
    /// The module on its journals, the gate on the others.
    Both,
}

/// The level that a run works at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectiveLevel {
    /// The gate, in the programs.
    Gate,
    /// The module; the gate only counts.
    Kernel,
    /// The module on its journals, the gate on the others.
    Both,
}

impl fmt::Display for EffectiveLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::Kernel => "kernel",
            Self::Both => "both",
        })
    }
}

/// The batchers of a run.
#[derive(Clone, Debug)]
pub struct LevelPlan {
    pub level: EffectiveLevel,
    /// Devices on which the gate only counts because the module batches there. At [`EffectiveLevel::Kernel`] it only
    /// counts everywhere.
    pub count_only: Vec<BlockDeviceNumber>,
    /// A shortcoming, with the remedy.
    pub note: Option<String>,
    /// Settings lent to journals of devices that the command uses.
    pub(super) lend: Option<PlannedLease>,
    pub(super) module: Option<LucModule>,
}

/// Settings and the journals that get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedLease {
    pub(super) settings: JournalSettings,
    pub(super) devices: Option<Vec<BlockDeviceNumber>>,
}

impl LevelPlan {
    /// The plan without a module: the gate alone.
    pub fn gate() -> Self {
        Self {
            level: EffectiveLevel::Gate,
            count_only: Vec::new(),
            note: None,
            lend: None,
            module: None,
        }
    }

    /// The plan of a run to compare with, in which nobody batches. `None` if the module batches and may not be stopped.
    pub fn without(&self) -> Option<Self> {
        let lend = match &self.lend {
            None if !self.count_only.is_empty() => return None,
            None => None,
            Some(lend) => {
                let mut off = vec![(SettingKey::Policy, "off".to_owned())];
                if lend.settings.get(SettingKey::CopyOut).is_some() {
                    off.push((SettingKey::CopyOut, "off".to_owned()));
                }
                Some(PlannedLease {
                    settings: JournalSettings::from_module(off),
                    devices: lend.devices.clone(),
                })
            }
        };
        Some(Self { lend, ..self.clone() })
    }

    /// Whether the file systems that the run uses have to be watched.
    pub fn is_watching(&self) -> bool {
        self.module.is_some()
    }
}

/// Decides who batches where. `wishes` gives the module's settings, if it is to do anything.
///
/// # Errors
/// Obstacles to [`RequestedLevel::Kernel`] and [`RequestedLevel::Both`]: [`Error::NotLoaded`], [`Error::Interface`],
/// [`Error::NotRoot`]. Those of `wishes`.
pub fn plan(
    machine: &MachinePaths,
    asked: RequestedLevel,
    wishes: impl FnOnce() -> Result<JournalSettings, Error>,
) -> Result<LevelPlan, Error> {
    let module = match (LucModule::open(machine), asked) {
        (Ok(module), _) => module,
        (Err(Error::NotLoaded), RequestedLevel::Auto | RequestedLevel::Gate) => {
            return Ok(LevelPlan::gate());
        }
        (Err(error), RequestedLevel::Auto | RequestedLevel::Gate) => {
            let note = Some(error.to_string());
            return Ok(LevelPlan { note, ..LevelPlan::gate() });
        }
        (Err(error), _) => return Err(error),
    };
    let leases = SettingLeases::of(machine);
    let journals = module.journals()?;
    let readonly = journals.iter().find(|journal| !journal.is_writable());
    let plan = match (asked, readonly) {
        (RequestedLevel::Kernel | RequestedLevel::Both, Some(journal)) => {
            return Err(Error::NotRoot {
                what: format!("lend settings of {} to a run", journal.name),
            });
        }
        (RequestedLevel::Gate, readonly) => plan_gate(&journals, readonly.is_none()),
        (RequestedLevel::Auto, Some(_)) => plan_as_set(&journals),
        (RequestedLevel::Auto, None) => {
            let is_free =
                |journal: &&ModuleJournal| !is_left_to_a_gate(&leases.of_journal(journal));
            plan_lent(EffectiveLevel::Both, journals.iter().filter(is_free), wishes()?)
        }
        (RequestedLevel::Both, None) => plan_lent(EffectiveLevel::Both, journals.iter(), wishes()?),
        (RequestedLevel::Kernel, None) => {
            plan_lent(EffectiveLevel::Kernel, journals.iter(), wishes()?)
        }
    };
    Ok(LevelPlan { module: Some(module), ..plan })
}

/// The plan by which the module batches on `journals`.
fn plan_lent<'j>(
    level: EffectiveLevel,
    journals: impl Iterator<Item = &'j ModuleJournal>,
    settings: JournalSettings,
) -> LevelPlan {
    let devices: Vec<BlockDeviceNumber> = journals.map(|journal| journal.device).collect();
    LevelPlan {
        level,
        count_only: devices.clone(),
        lend: Some(PlannedLease {
            settings,
            devices: (level == EffectiveLevel::Both).then_some(devices),
        }),
        ..LevelPlan::gate()
    }
}

/// The plan by which the gate batches and the module does not. Its copying does no harm, and stays.
fn plan_gate(journals: &[ModuleJournal], is_writable: bool) -> LevelPlan {
    if is_writable {
        let off = JournalSettings::from_module([(SettingKey::Policy, "off".to_owned())]);
        return LevelPlan {
            lend: Some(PlannedLease { settings: off, devices: None }),
            ..LevelPlan::gate()
        };
    }
    let batched: Vec<_> = journals.iter().filter(|journal| is_batched(journal)).collect();
    let names: Vec<_> = batched.iter().map(|journal| journal.name.as_str()).collect();
    LevelPlan {
        note: (!names.is_empty()).then(|| {
            format!(
                "luc.ko batches on {} as well, and only root can stop it: `luc kernel set {} policy=off`",
                names.join(", "),
                names.join(" ")
            )
        }),
        ..LevelPlan::gate()
    }
}

/// Plans that the module keeps its settings. The gate works where the module is off.
fn plan_as_set(journals: &[ModuleJournal]) -> LevelPlan {
    let batched = journals.iter().filter(|journal| is_batched(journal));
    let count_only: Vec<BlockDeviceNumber> = batched.map(|journal| journal.device).collect();
    LevelPlan {
        level: if count_only.is_empty() {
            EffectiveLevel::Gate
        } else {
            EffectiveLevel::Both
        },
        note: Some(
            "luc.ko is loaded, but only root can lend its settings to a run: it works as it is set, and the \
             gate where it is off"
                .to_owned(),
        ),
        count_only,
        ..LevelPlan::gate()
    }
}

fn is_batched(journal: &ModuleJournal) -> bool {
    journal.read(SettingKey::Policy).is_ok_and(|policy| policy != "off")
}

fn is_left_to_a_gate(wishes: &[JournalSettings]) -> bool {
    let last = wishes.iter().rev().find_map(|wish| wish.get(SettingKey::Policy));
    last == Some("off")
}
