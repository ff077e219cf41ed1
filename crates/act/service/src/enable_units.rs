//! `luc enable` and `luc disable` of several units: all of them or none.

use luc_units::OnPath as _;
use serde::Serialize;

use crate::drop_in::UnitDropIn;
use crate::enable_plan::{EnablePlan, RequestedWay};
use crate::{ServiceError, systemctl, unit_facts};

/// A unit that was enabled, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct EnabledUnit {
    #[serde(flatten)]
    pub plan: EnablePlan,
    pub path: std::path::PathBuf,
    /// Mount points of file systems on which its processes have files open, and whether their journals can be shared.
    pub file_systems: Vec<(std::path::PathBuf, bool)>,
    /// Whether it runs, so that the change takes effect at its next start only.
    pub runs: bool,
}

/// Plans for units, without changing anything.
///
/// # Errors
/// [`ServiceError`]: the first unit that cannot be enabled.
pub fn plan(units: &[String], reach: RequestedWay) -> Result<Vec<EnabledUnit>, ServiceError> {
    systemctl::check()?;
    let tools = unit_facts::tools()?;
    let mut plans: Vec<EnabledUnit> = Vec::new();
    for unit in units {
        let name = systemctl::name(unit)?;
        let facts = unit_facts::of_unit(&name)?;
        let refused = |refusal| ServiceError::Refused { unit: name.clone(), refusal };
        let plan = EnablePlan::of(&facts, reach, &tools).map_err(refused)?;
        if plans.iter().any(|other| other.plan.unit == plan.unit) {
            continue;
        }
        let processes = crate::unit_status::processes_of(&facts.settings);
        plans.push(EnabledUnit {
            path: UnitDropIn::of(&plan.unit).path(),
            file_systems: unit_facts::open_file_systems(&processes).into_iter().collect(),
            runs: ["active", "reloading", "activating"]
                .contains(&facts.settings.get("ActiveState")),
            plan,
        });
    }
    Ok(plans)
}

/// Carries the plans out. With `now`, restarts the units that run.
///
/// # Errors
/// [`ServiceError`]; all is then as it was, and units that were restarted are restarted once more.
pub fn enable(plans: &[EnabledUnit], now: bool) -> Result<(), ServiceError> {
    let mut changes = Changes::default();
    if let Err(error) = changes.make(plans) {
        changes.take_back();
        return Err(error);
    }
    if !now {
        return Ok(());
    }
    let running: Vec<&str> =
        plans.iter().filter(|plan| plan.runs).map(|plan| plan.plan.unit.as_str()).collect();
    for (index, unit) in running.iter().enumerate() {
        if systemctl::restart(unit).is_err() {
            let new = changes.take_back();
            for unit in &running[..=index] {
                let _ = systemctl::start_anew(unit);
            }
            for unit in new {
                let _ = luc_gate::unit_shared_files::remove(&unit);
            }
            return Err(ServiceError::NotStarted((*unit).to_owned()));
        }
    }
    Ok(())
}

/// Changes, for the case that they have to be taken back.
#[derive(Debug, Default)]
struct Changes(Vec<Change>);

/// A drop-in that was changed, and the text that it had.
#[derive(Debug)]
struct Change {
    unit: String,
    before: Option<String>,
}

impl Changes {
    fn set(&mut self, unit: &str, text: Option<&str>) -> Result<(), ServiceError> {
        let drop_in = UnitDropIn::of(unit);
        let before = drop_in.read()?;
        drop_in.set(text)?;
        self.0.push(Change { unit: unit.to_owned(), before });
        Ok(())
    }

    fn make(&mut self, plans: &[EnabledUnit]) -> Result<(), ServiceError> {
        check_root()?;
        for EnabledUnit { plan, .. } in plans {
            self.set(&plan.unit, Some(&plan.drop_in))?;
        }
        systemctl::reload()?;
        for EnabledUnit { plan, path, .. } in plans {
            let settings = systemctl::show(&plan.unit)?;
            let is_read = settings.words("DropInPaths").any(|read| *path == *read);
            if !is_read || settings.get("LoadState") != "loaded" {
                return Err(ServiceError::NotTaken { unit: plan.unit.clone(), path: path.clone() });
            }
        }
        Ok(())
    }

    /// Restores the drop-ins as far as possible: the first failure is reported, and this can only fail for the same
    /// reason. Returns the units that were not enabled before.
    fn take_back(self) -> Vec<String> {
        let has_changed = !self.0.is_empty();
        let mut new = Vec::new();
        for Change { unit, before } in self.0 {
            let _ = UnitDropIn::of(&unit).set(before.as_deref());
            new.extend(before.is_none().then_some(unit));
        }
        if has_changed {
            let _ = systemctl::reload();
        }
        new
    }
}

/// Result of [`disable`], by the units' own names.
#[derive(Debug, Default)]
pub struct DisabledUnits {
    pub names: Vec<String>,
    pub were_not: Vec<String>,
}

/// Removes the drop-ins of units, and the files that their processes have shared.
///
/// # Errors
/// [`ServiceError`]: one of them is no unit; all of them then stay enabled.
pub fn disable(units: &[String]) -> Result<DisabledUnits, ServiceError> {
    check_root()?;
    let runs = systemctl::check().is_ok();
    let (mut names, mut were_not) = (Vec::new(), Vec::new());
    for unit in units {
        let mut name = systemctl::name(unit)?;
        if UnitDropIn::of(&name).read()?.is_none() && runs {
            // Perhaps an alias.
            let settings = systemctl::show(&name)?;
            if settings.get("LoadState") == "not-found" {
                return Err(ServiceError::NotEnabled(name));
            }
            if !settings.id().is_empty() {
                settings.id().clone_into(&mut name);
            }
        }
        let is_enabled = UnitDropIn::of(&name).read()?.is_some();
        let list = if is_enabled { &mut names } else { &mut were_not };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    let mut changes = Changes::default();
    let mut remove = || -> Result<(), ServiceError> {
        for name in &names {
            changes.set(name, None)?;
        }
        // Where systemd does not run, as in a root that is only unpacked, nobody has read them.
        if runs { systemctl::reload() } else { Ok(()) }
    };
    if let Err(error) = remove() {
        changes.take_back();
        return Err(error);
    }
    for name in &names {
        luc_gate::unit_shared_files::remove(name)
            .map_err(ServiceError::io("removed", "what its processes share"))?;
    }
    Ok(DisabledUnits { names, were_not })
}

fn check_root() -> Result<(), ServiceError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(ServiceError::NotRoot) }
}
