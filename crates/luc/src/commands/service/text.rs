//! The output of `luc enable` and `luc status` for people.

use std::fmt::Write as _;

use luc_service::containers::container_state::ATTACHED;
use luc_service::enable_plan::GateWay;
use luc_service::enable_units::EnabledUnit;
use luc_service::unit_status::{ProcessReach, UnitStatus};
use luc_units::plain;

/// Maximum number of processes that are listed of a service.
const MAX_PROCESSES: usize = 20;

/// The text about a service that was enabled, or would be.
pub(super) fn enabled(enabled: &EnabledUnit, is_dry: bool) -> String {
    let EnabledUnit { plan, path, .. } = enabled;
    let mut text = String::new();
    let way = match plan.way {
        GateWay::Library => "the library",
        GateWay::Notify => "notifications of its system calls",
    };
    let verb = if is_dry { "would write" } else { "wrote" };
    // Writes to a String cannot fail.
    let _ = writeln!(text, "{}: by {way}: {}", plan.unit, plan.why);
    let _ = writeln!(text, "  {verb} {}:", path.display());
    for line in plan.drop_in.lines() {
        let _ = writeln!(text, "    {line}");
    }
    for note in &plan.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    let (with, without): (Vec<_>, Vec<_>) =
        enabled.file_systems.iter().partition(|(_, is_shared)| *is_shared);
    let names = |all: &[&(std::path::PathBuf, bool)]| {
        let names: Vec<String> = all.iter().map(|(path, _)| path.display().to_string()).collect();
        names.join(", ")
    };
    if !with.is_empty() {
        let _ =
            writeln!(text, "  its open files are on journals that can be shared: {}", names(&with));
    } else if !without.is_empty() {
        let _ = writeln!(
            text,
            "  note: its open files are on {}, where there is no ext4 journal to share",
            names(&without)
        );
    }
    text
}

/// Describes a service or a container in its present state.
pub(super) fn status(status: &UnitStatus) -> String {
    let mut text = String::new();
    let way = match status.way {
        None => "not enabled",
        Some(GateWay::Library) => "enabled, by the library",
        Some(GateWay::Notify) => "enabled, by notifications",
    };
    let _ = match &status.container {
        None => writeln!(text, "{}: {way}; {}", status.unit, status.state),
        Some(container) if container.metadata == ATTACHED => {
            writeln!(text, "process {}: attached for ever", container.process)
        }
        Some(container) => writeln!(
            text,
            "container {}: by notifications; process {}, bundle {}, metadata {}",
            container.id,
            container.process,
            plain(&container.bundle.display().to_string()),
            plain(&container.metadata)
        ),
    };
    for process in status.processes.iter().take(MAX_PROCESSES) {
        let reached = match process.reached {
            ProcessReach::Library => "the library is in it",
            ProcessReach::Notifier => "a filter notifies of its calls",
            ProcessReach::LibraryAside => "the library is in it, and stands aside",
            ProcessReach::Nothing => "not reached",
            ProcessReach::Unknown => "not known: only root sees it",
        };
        let _ = writeln!(text, "  {:>8} {:<16} {reached}", process.process, process.program);
    }
    let more = status.processes.len().saturating_sub(MAX_PROCESSES);
    if more > 0 {
        let _ = writeln!(text, "  and {more} processes more");
    }
    for file_system in &status.file_systems {
        for line in file_system.to_string().lines() {
            let line = line.strip_prefix("luc: ").unwrap_or(line);
            let _ = writeln!(text, "  {line}");
        }
    }
    for note in &status.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}
