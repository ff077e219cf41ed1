//! Energy of a run in joules, gross and net of idle, from the sources of this machine; without a source, the reason.
//!
//! Sources are tried in this order: a meter's command, if one is given (`meter_command`); RAPL counters in powercap
//! (`powercap`); the same counters as perf events (`perf`). Figures that cannot be trusted are not reported: after a
//! wrap that may have been missed, or a silent meter, the run has a reason and no energy.

mod meter_command;
mod perf;
mod powercap;
#[cfg(test)]
mod tests;
mod wrapping_counter;

use std::path::Path;
use std::time::Instant;

use luc_host::sysfs::is_virtual_machine;
use serde::{Deserialize, Serialize};

/// Options of a plan for measuring energy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnergyOptions {
    pub source: EnergySourceChoice,
    /// Time for which the power of the idle machine is measured before a sweep; `0` to skip that.
    pub idle: String,
    /// A command for `sh` that prints watts, until it is ended.
    pub command: Option<String>,
    /// Regular expression of a line; its first group is the watts.
    pub regex: Option<String>,
    /// Scope of the command's figures, for the report.
    pub scope: Option<String>,
}

/// Source of energy figures that a plan chooses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnergySourceChoice {
    #[default]
    Auto,
    Powercap,
    Perf,
    Off,
}

impl Default for EnergyOptions {
    fn default() -> Self {
        Self {
            source: EnergySourceChoice::Auto,
            idle: "10s".to_owned(),
            command: None,
            regex: None,
            scope: None,
        }
    }
}

/// Source and scope of a sweep's energy figures, or the reason why there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyProvenance {
    /// Name of the source, as `powercap`; `None` if energy was not measured.
    pub source: Option<String>,
    /// Scope of the figures: parts of the machine that they include, and parts that they do not.
    pub scope: Option<String>,
    pub idle_watts: Option<f64>,
    /// Why there is no energy, or no power of the idle machine.
    pub unavailable: Option<String>,
}

/// Energy of one run in joules, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnergy {
    pub seconds: f64,
    /// Total energy; `None` with a reason.
    pub gross_joules: Option<f64>,
    /// Energy above the idle machine's in the same time; `None` if idle power was not measured.
    pub net_joules: Option<f64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Something that measures: energy between two moments.
pub(crate) trait EnergySource: Send {
    fn name(&self) -> &'static str;
    fn scope(&self) -> String;
    /// Begins a run. Errors: the reason.
    fn begin(&mut self) -> Result<(), String>;
    /// Returns the joules since then. Errors: the reason.
    fn end(&mut self) -> Result<f64, String>;
    /// Returns the process group of the meter, to be ended if this process is killed.
    fn group(&self) -> Option<i32> {
        None
    }
}

/// Measures the runs of a sweep.
pub struct EnergyMeter {
    source: Option<Box<dyn EnergySource>>,
    about: EnergyProvenance,
    begun: Option<(Instant, Result<(), String>)>,
}

impl std::fmt::Debug for EnergyMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnergyMeter").field("about", &self.about).finish_non_exhaustive()
    }
}

impl EnergyMeter {
    /// Opens the source that `options` select. Missing counters are no error: then nothing is measured. A meter that is
    /// asked for and does not work is an error.
    ///
    /// # Errors
    /// The reason why the meter's command does not work.
    pub fn open(sysfs: &Path, options: &EnergyOptions) -> Result<Self, String> {
        let found = match &options.command {
            Some(command) => {
                let scope = options.scope.as_deref();
                let meter =
                    meter_command::MeterCommand::start(command, options.regex.as_deref(), scope)?;
                Ok(Box::new(meter) as Box<dyn EnergySource>)
            }
            None => counters(sysfs, options.source),
        };
        let about = match &found {
            Ok(source) => EnergyProvenance {
                source: Some(source.name().to_owned()),
                scope: Some(source.scope()),
                ..EnergyProvenance::default()
            },
            Err(reason) => EnergyProvenance {
                unavailable: Some(reason.clone()),
                ..EnergyProvenance::default()
            },
        };
        Ok(Self { source: found.ok(), about, begun: None })
    }

    #[must_use]
    pub fn is_there(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the process group of the meter, to be ended if this process is killed.
    #[must_use]
    pub fn group(&self) -> Option<i32> {
        self.source.as_ref()?.group()
    }

    /// Returns source and scope of the figures.
    #[must_use]
    pub fn about(&self) -> &EnergyProvenance {
        &self.about
    }

    /// Takes the power of the idle machine, from a run in which nothing ran.
    pub fn set_idle(&mut self, idle: &RunEnergy) {
        match idle.gross_joules {
            Some(joules) if idle.seconds > 0.0 => {
                self.about.idle_watts = Some(joules / idle.seconds);
            }
            _ => self.about.unavailable.clone_from(&idle.missing),
        }
    }

    /// Sets the power of the idle machine, as measured before.
    pub fn set_idle_watts(&mut self, watts: f64) {
        self.about.idle_watts = Some(watts);
    }

    pub fn begin(&mut self) {
        let outcome = self.source.as_mut().map(|source| source.begin());
        self.begun = outcome.map(|outcome| (Instant::now(), outcome));
    }

    /// Ends the measurement of a run; `None` without a source.
    pub fn end(&mut self) -> Option<RunEnergy> {
        let (begun, outcome) = self.begun.take()?;
        let seconds = begun.elapsed().as_secs_f64();
        let source = self.source.as_mut()?;
        let (gross_joules, missing) = match outcome.and_then(|()| source.end()) {
            Ok(joules) => (Some(joules), None),
            Err(reason) => (None, Some(reason)),
        };
        let idle = self.about.idle_watts;
        Some(RunEnergy {
            seconds,
            gross_joules,
            net_joules: gross_joules.zip(idle).map(|(joules, watts)| joules - watts * seconds),
            missing,
        })
    }
}

/// Opens the first counters that can be read. Errors: why none can.
fn counters(sysfs: &Path, choice: EnergySourceChoice) -> Result<Box<dyn EnergySource>, String> {
    let powercap = || {
        powercap::PowercapReader::open(sysfs)
            .map(|source| Box::new(source) as Box<dyn EnergySource>)
    };
    let perf = || {
        perf::PerfRaplEvents::open(sysfs).map(|source| Box::new(source) as Box<dyn EnergySource>)
    };
    let found = match choice {
        EnergySourceChoice::Off => return Err("energy.source is \"off\"".to_owned()),
        EnergySourceChoice::Powercap => powercap(),
        EnergySourceChoice::Perf => perf(),
        EnergySourceChoice::Auto => {
            powercap().or_else(|first| perf().map_err(|second| format!("{first}; {second}")))
        }
    };
    found.map_err(|reason| {
        if is_virtual_machine() { format!("{reason} (this is a virtual machine)") } else { reason }
    })
}

/// Describes the scope: `packages and DRAM of the whole machine, not disks`.
fn scope_of(has_dram: bool) -> String {
    if has_dram {
        "packages and DRAM of the whole machine, not disks".to_owned()
    } else {
        "packages of the whole machine, not DRAM, not disks".to_owned()
    }
}
