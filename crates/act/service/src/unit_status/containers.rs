//! Containers that `lucd` serves, by `lucd`'s own process.

use std::fs;

use luc_launch::unit_figures::of_process;

use super::{MAX_PROCESSES, UnitStatus, look, missed_programs, processes_below};
use crate::containers::container_state::{ATTACHED, OciContainer, kept_by};
use crate::enable_plan::GateWay;

/// Minimum length of a name's beginning: as much as Podman and Docker print.
const MIN_PREFIX_LENGTH: usize = 12;

/// All containers that a `lucd` serves, by its process number.
pub(super) fn all(lucd: u32) -> Vec<UnitStatus> {
    let kept = kept_by(lucd);
    let of_one = kept.chunk_by(|a, b| a.id == b.id);
    of_one.filter_map(|one| of(lucd, one)).collect()
}

/// The container of a name, or of a name's beginning.
pub(super) fn named(name: &str, all: &[UnitStatus]) -> Option<UnitStatus> {
    let id = |status: &&UnitStatus| status.container.as_ref().map(|container| container.id.clone());
    let is = |status: &&UnitStatus| id(status).as_deref() == Some(name);
    if let Some(found) = all.iter().find(is) {
        return Some(found.clone());
    }
    let begins = |status: &&UnitStatus| {
        name.len() >= MIN_PREFIX_LENGTH && id(status).is_some_and(|id| id.starts_with(name))
    };
    let mut found = all.iter().filter(begins);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// The status of a container with these kept listeners.
fn of(lucd: u32, kept: &[OciContainer]) -> Option<UnitStatus> {
    let container = kept.first()?;
    let unit = container.unit();
    let figures = of_process(lucd, &unit)?;
    let mut numbers: Vec<u32> = kept
        .iter()
        .flat_map(|one| match one.cgroup.as_str() {
            // Others of its cgroup are none of its own.
            _ if one.metadata == ATTACHED => vec![one.process],
            "" => in_namespace_of(one.process),
            group => processes_below(group),
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let processes: Vec<_> =
        numbers.into_iter().filter_map(|process| look(process, &unit, figures.filters)).collect();
    let names = missed_programs(&processes);
    let note = (!names.is_empty()).then(|| format!("not reached: {}", names.join(", ")));
    Some(UnitStatus {
        unit,
        container: Some(container.clone()),
        way: Some(GateWay::Notify),
        state: "served".to_owned(),
        processes,
        file_systems: figures.file_systems,
        notes: note.into_iter().collect(),
    })
}

/// The processes of a container without a cgroup of its own: those in the namespace of processes of one of them.
fn in_namespace_of(process: u32) -> Vec<u32> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let own = namespace("self");
    let Some(wanted) = namespace(&process.to_string()).filter(|of| Some(of) != own.as_ref()) else {
        return Vec::new();
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_in = |name: &String| namespace(name).as_ref() == Some(&wanted);
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .filter(is_in)
        .filter_map(|name| name.parse().ok())
        .take(MAX_PROCESSES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_named_by_its_id_or_its_beginning() {
        let status = |id: &str| UnitStatus {
            unit: format!("{id}.container"),
            container: Some(OciContainer {
                id: id.to_owned(),
                process: 1,
                bundle: "/b".into(),
                metadata: "luc".to_owned(),
                cgroup: String::new(),
            }),
            way: Some(GateWay::Notify),
            state: "served".to_owned(),
            processes: Vec::new(),
            file_systems: Vec::new(),
            notes: Vec::new(),
        };
        let all = [status("web"), status("0123456789abcdef"), status("0123456789abfedc")];
        let found = |name| named(name, &all).map(|status| status.unit);
        assert_eq!(found("web").as_deref(), Some("web.container"));
        assert_eq!(found("0123456789abc").as_deref(), Some("0123456789abcdef.container"));
        // Of two, or too short.
        assert_eq!(found("0123456789ab"), None);
        assert_eq!(found("we"), None);
    }
}
