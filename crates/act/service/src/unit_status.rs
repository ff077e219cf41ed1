//! `luc status`: whether the gate reaches the processes of a unit or a container. It looks at the processes
//! themselves and not at the configuration.

mod containers;

use std::path::{Path, PathBuf};
use std::{fs, io};

use luc_gate::environment_names::LIBRARY;
use luc_gate::seccomp_filter;
use luc_launch::gated_run_outcome::FileSystemOutcome;
use luc_launch::unit_figures::{UnitFigures, is_figures, of_process};
use serde::Serialize;

use crate::containers::container_state::OciContainer;
use crate::drop_in::{self, UnitDropIn};
use crate::enable_plan::{EnablePlan, GateWay, RequestedWay};
use crate::unit_settings::UnitSettings;
use crate::{ServiceError, systemctl, unit_facts};

/// Maximum number of a unit's processes that are looked at.
const MAX_PROCESSES: usize = 4096;

/// State of a unit or a container at the moment of the look.
#[derive(Clone, Debug, Serialize)]
pub struct UnitStatus {
    /// Own name of the unit; for a container with `.container` behind it.
    pub unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<OciContainer>,
    /// Way in which it is reached, if it is enabled.
    pub way: Option<GateWay>,
    /// systemd's state: `active`, `inactive`, `failed` and others.
    pub state: String,
    pub processes: Vec<ProcessStatus>,
    /// Figures of its calls, by file system.
    pub file_systems: Vec<FileSystemOutcome>,
    pub notes: Vec<String>,
}

/// A process of a unit, and whether the gate reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessStatus {
    pub process: u32,
    /// Program's name, as the kernel has it.
    pub program: String,
    /// Whether anything reaches it.
    pub reached: ProcessReach,
}

/// Whether anything reaches a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessReach {
    /// The library is in it, and takes part.
    Library,
    /// A filter notifies of its calls.
    Notifier,
    /// The library is in it, and found nothing to take part in, or stopped taking part.
    LibraryAside,
    Nothing,
    /// Only root can see it.
    Unknown,
}

impl ProcessReach {
    /// Whether its calls certainly do not take part.
    #[must_use]
    pub fn is_missed(self) -> bool {
        matches!(self, Self::LibraryAside | Self::Nothing)
    }
}

/// The status of units and containers. If none is named: of all enabled units and all served containers.
///
/// # Errors
/// [`ServiceError`]: systemd does not answer, or does not know a named unit.
pub fn status(names: &[String]) -> Result<Vec<UnitStatus>, ServiceError> {
    systemctl::check()?;
    let containers = containers::all(systemctl::lucd()?);
    if names.is_empty() {
        let units = drop_in::enabled()?;
        let mut all: Vec<UnitStatus> =
            units.iter().map(|name| of_unit(name)).collect::<Result<_, _>>()?;
        all.extend(containers);
        return Ok(all);
    }
    let of_name = |name: &String| match containers::named(name, &containers) {
        Some(status) => Ok(status),
        None => of_unit(&systemctl::name(name)?),
    };
    names.iter().map(of_name).collect()
}

fn of_unit(name: &str) -> Result<UnitStatus, ServiceError> {
    let settings = systemctl::show(name)?;
    let mut notes = Vec::new();
    if settings.get("LoadState") == "not-found" {
        let error = crate::enable_plan::UnitRefusal::Unknown;
        if UnitDropIn::of(name).read()?.is_none() {
            return Err(ServiceError::Refused { unit: name.to_owned(), refusal: error });
        }
        notes.push(format!("the unit is not installed any more: `luc disable {name}`"));
    }
    let unit = settings.id().to_owned();
    let drop_in = UnitDropIn::of(&unit).read()?;
    let way = drop_in.as_deref().map(way_of);
    let numbers = processes_of(&settings);
    let served = match way {
        Some(GateWay::Notify) => served_figures(&unit)?,
        _ => None,
    };
    let filters = served.as_ref().map_or(0, |served| served.filters);
    let processes: Vec<ProcessStatus> =
        numbers.iter().filter_map(|&process| look(process, &unit, filters)).collect();
    let figures = served.or_else(|| {
        let mut figures = numbers.iter().filter_map(|&process| of_process(process, &unit));
        figures.next()
    });
    let file_systems = figures.map_or_else(Vec::new, |figures| figures.file_systems);
    if let (Some(way), Some(text)) = (way, &drop_in) {
        notes.extend(note_change(&unit, way, text)?);
    }
    notes.extend(note_missed(way, &processes, &unit));
    Ok(UnitStatus {
        unit,
        container: None,
        way,
        state: settings.get("ActiveState").to_owned(),
        processes,
        file_systems,
        notes,
    })
}

/// The way of a drop-in of luc's.
fn way_of(text: &str) -> GateWay {
    if text.lines().any(|line| line.starts_with("ExecStart=")) {
        GateWay::Notify
    } else {
        GateWay::Library
    }
}

/// A note if the drop-in would be another one now.
fn note_change(unit: &str, way: GateWay, text: &str) -> Result<Option<String>, ServiceError> {
    let reach = match way {
        GateWay::Library => RequestedWay::Library,
        GateWay::Notify => RequestedWay::Notify,
    };
    let now = EnablePlan::of(&unit_facts::of_unit(unit)?, reach, &unit_facts::tools()?);
    Ok(match now {
        Ok(plan) if plan.drop_in == text => None,
        Ok(_) => Some(format!(
            "the unit or luc has changed since it was enabled: `luc enable {unit}` follows"
        )),
        Err(refusal) => Some(format!("it could not be enabled any more: {refusal}")),
    })
}

/// The names of the programs that nothing reaches.
fn missed_programs(processes: &[ProcessStatus]) -> Vec<&str> {
    let mut names: Vec<&str> = processes
        .iter()
        .filter(|process| process.reached.is_missed())
        .map(|process| process.program.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A note with the programs that nothing reaches.
fn note_missed(way: Option<GateWay>, processes: &[ProcessStatus], unit: &str) -> Option<String> {
    let way = way?;
    let names = missed_programs(processes);
    if names.is_empty() {
        return None;
    }
    if processes.iter().all(|process| process.reached.is_missed()) {
        let lucd = match way {
            GateWay::Library => "",
            GateWay::Notify => ", and if lucd was stopped since,",
        };
        return Some(format!(
            "nothing reaches its processes: if it was enabled after its start{lucd} `systemctl restart {unit}`"
        ));
    }
    let hint = match way {
        GateWay::Library => format!("; `luc enable --reach notify {unit}` reaches them"),
        GateWay::Notify => String::new(),
    };
    Some(format!("not reached: {}{hint}", names.join(", ")))
}

/// The processes of a unit's cgroup and those below, lowest number first.
#[must_use]
pub fn processes_of(settings: &UnitSettings) -> Vec<u32> {
    processes_below(settings.get("ControlGroup"))
}

/// The processes of a cgroup and those below, lowest number first.
fn processes_below(group: &str) -> Vec<u32> {
    let group = group.trim_start_matches('/');
    if group.is_empty() {
        return Vec::new();
    }
    // Of version 2 alone; beside controllers of version 1; of version 1.
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"];
    let mut found = Vec::new();
    for root in roots {
        collect(&Path::new(root).join(group), &mut found);
        if !found.is_empty() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn collect(group: &Path, found: &mut Vec<u32>) {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if found.len() >= MAX_PROCESSES {
            return;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), found);
        }
    }
}

/// The figures of a unit that `lucd` serves.
fn served_figures(unit: &str) -> Result<Option<UnitFigures>, ServiceError> {
    Ok(of_process(systemctl::lucd()?, unit))
}

/// Looks at a process; `None` if it has ended. With the notifier, the service's first process and all that it has
/// started are under `filters` filters.
fn look(process: u32, unit: &str, filters: u32) -> Option<ProcessStatus> {
    let of_process = PathBuf::from("/proc").join(process.to_string());
    let program = fs::read_to_string(of_process.join("comm")).ok()?;
    let reached = match fs::read(of_process.join("maps")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ProcessReach::Unknown,
        Err(_) => return None,
        // One that has ended and not been waited for has no memory.
        Ok(maps) if maps.is_empty() => return None,
        Ok(_) if filters > 0 && seccomp_filter::filters_of(process)? >= filters => {
            ProcessReach::Notifier
        }
        Ok(maps) => reach_by_maps(&maps, unit),
    };
    Some(ProcessStatus { process, program: luc_units::plain(program.trim_end()), reached })
}

/// Whether the library reaches a process, by its mappings.
fn reach_by_maps(maps: &[u8], unit: &str) -> ProcessReach {
    let mut lines = maps.split(|&byte| byte == b'\n');
    let has_library = maps.windows(LIBRARY.len()).any(|part| part == LIBRARY.as_bytes());
    if !has_library {
        ProcessReach::Nothing
    } else if lines.any(|line| is_figures(line, unit)) {
        ProcessReach::Library
    } else {
        ProcessReach::LibraryAside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_tell_what_reaches_a_process() {
        let library = "7f00-7f01 r-xp 0 08:01 7 /usr/lib/luc/libluc_gate_preload.so\n";
        let figures = "7f02-7f03 rw-s 0 00:1a 9 /dev/shm/luc-gate-105/unit-a.service\n";
        let both = format!("{library}{figures}");
        assert_eq!(
            reach_by_maps(b"7f00-7f01 r-xp 0 08:01 7 /bin/a\n", "a.service"),
            ProcessReach::Nothing
        );
        assert_eq!(reach_by_maps(library.as_bytes(), "a.service"), ProcessReach::LibraryAside);
        assert_eq!(reach_by_maps(both.as_bytes(), "a.service"), ProcessReach::Library);
        assert_eq!(reach_by_maps(both.as_bytes(), "b.service"), ProcessReach::LibraryAside);
    }

    #[test]
    fn what_escapes_is_named() {
        let process = |program: &str, reached| ProcessStatus {
            process: 1,
            program: program.to_owned(),
            reached,
        };
        let all = [process("a", ProcessReach::Library), process("b", ProcessReach::Nothing)];
        let note = note_missed(Some(GateWay::Library), &all, "x.service").unwrap();
        assert!(note.starts_with("not reached: b; `luc enable --reach notify"), "{note}");
        assert_eq!(note_missed(Some(GateWay::Library), &all[..1], "x.service"), None);
        assert_eq!(note_missed(None, &all, "x.service"), None);
        let note = note_missed(Some(GateWay::Library), &all[1..], "x.service").unwrap();
        assert!(note.contains("systemctl restart x.service"), "{note}");
    }

    #[test]
    fn a_drop_in_tells_its_way() {
        assert_eq!(way_of("[Service]\nExecStart=\nExecStart=/x\n"), GateWay::Notify);
        assert_eq!(way_of("[Service]\nExecStartPre=-/x\n"), GateWay::Library);
    }
}
