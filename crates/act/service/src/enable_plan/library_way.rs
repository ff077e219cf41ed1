//! The library's way: two variables, and a first process that makes the files that the service's processes share.

use std::fmt::Write as _;

use luc_gate::environment_names::{LIBRARY, UNIT};

use super::{
    EnablePlan, GateWay, InstalledTools, UnitFacts, heading, may_execute, word, written_commands,
};

/// Variable of the dynamic loader with libraries to load.
const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// System calls of the library that a filter may not let pass. docs/how/gate.md lists all; the others are made by every
/// dynamically linked program.
const LIBRARY_CALLS: [&str; 10] = [
    "clock_gettime",
    "clock_nanosleep",
    "futex",
    "getpid",
    "ioctl",
    "prctl",
    "readlinkat",
    "sched_yield",
    "sigaltstack",
    "statx",
];

/// Line that shows the shared memory to a unit's processes.
const MEMORY_LINE: &str = "ReadWritePaths=/dev/shm";

/// Makes the plan. The error says why the library does not get into the unit.
pub(super) fn plan(
    facts: &UnitFacts,
    tools: &InstalledTools,
    why: String,
) -> Result<EnablePlan, String> {
    // 1. Obstacles to the library.
    let settings = &facts.settings;
    if settings.words("UnsetEnvironment").any(|name| name == PRELOAD_VARIABLE) {
        return Err(
            "its unit takes LD_PRELOAD out of the environment (UnsetEnvironment)".to_owned()
        );
    }
    for (path, text) in &facts.environment_files {
        if sets_preload(text) {
            return Err(format!(
                "{} sets LD_PRELOAD, which counts more than a drop-in",
                path.display()
            ));
        }
    }
    for name in ["RootDirectory", "RootImage"] {
        if !settings.get(name).is_empty() {
            return Err(format!(
                "its files are in another root ({name}), where the library is not"
            ));
        }
    }
    // systemctl does not show this one.
    let mut first_as_root =
        facts.files.iter().flat_map(|file| file.values("Service", "PermissionsStartOnly"));
    if first_as_root.any(super::is_yes) && !settings.get("User").is_empty() {
        return Err(
            "its first processes run as another user than itself (PermissionsStartOnly)".to_owned()
        );
    }
    let is_own = |call: &str| facts.own_values("SystemCallFilter").any(|own| own == call);
    let is_denied = |call: &&&str| !settings.lets_pass(call) || is_own(call);
    let missing: Vec<&str> = LIBRARY_CALLS.iter().filter(is_denied).copied().collect();
    if settings.get("SystemCallFilter").starts_with('~')
        && missing.iter().any(|call| !settings.lets_pass(call))
    {
        return Err(format!(
            "its unit denies system calls that the library makes (SystemCallFilter: {})",
            missing.join(", ")
        ));
    }
    // 2. The drop-in, with notes on what it changes.
    let mut notes = Vec::new();
    let unit = settings.id().to_owned();
    let mut text = heading(&unit);
    text.push_str("[Service]\n");
    let prefix = privileges(facts);
    // A write to a String cannot fail.
    let _ = writeln!(text, "ExecStartPre=-{prefix}{} prepare %n", word(&tools.exec));
    let preload = preload(facts, tools, &mut notes);
    let _ = writeln!(text, "Environment=\"{PRELOAD_VARIABLE}={preload}\" {UNIT}=%n");
    if !missing.is_empty() {
        let missing = missing.join(" ");
        let _ = writeln!(text, "SystemCallFilter={missing}");
        notes.push(format!("its filter of system calls lets pass in addition: {missing}"));
    }
    text.push_str(&may_execute(facts, tools, &mut notes));
    if hides_memory(facts) {
        let _ = writeln!(text, "{MEMORY_LINE}");
        notes.push(
            "its processes may write to /dev/shm, which ReadOnlyPaths or InaccessiblePaths took from them".to_owned(),
        );
    }
    Ok(EnablePlan { unit, way: GateWay::Library, why, drop_in: text, notes })
}

/// The characters before the unit's program that choose its user: the shared files have to belong to the same user.
fn privileges(facts: &UnitFacts) -> String {
    let commands = written_commands(facts).unwrap_or_default();
    let first = commands.iter().flat_map(|(_, commands)| commands).next();
    let prefix = first.map_or("", |command| command.prefix.as_str());
    prefix.chars().filter(|c| matches!(c, '+' | '!')).collect()
}

/// The value of LD_PRELOAD within quotes: the library, and the unit's own value.
fn preload(facts: &UnitFacts, tools: &InstalledTools, notes: &mut Vec<String>) -> String {
    let environment = facts.settings.environment();
    let own = environment.iter().rev().find(|(name, _)| name == PRELOAD_VARIABLE);
    let own: Vec<&str> = own
        .map_or("", |(_, value)| value.as_str())
        .split([':', ' '])
        .filter(|path| !path.is_empty() && !path.ends_with(LIBRARY))
        .collect();
    if !own.is_empty() {
        notes.push(format!("its own LD_PRELOAD stays behind luc's: {}", own.join(" ")));
    }
    let library = word(&tools.library).to_string();
    let all: Vec<String> = std::iter::once(library.as_str()).chain(own).map(escape).collect();
    all.join(":")
}

/// Escapes text for double quotes in a unit file.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")
}

/// Whether a file with variables sets LD_PRELOAD.
fn sets_preload(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.trim_start().split('=').next();
        name.is_some_and(|name| name.trim_end() == PRELOAD_VARIABLE) && line.contains('=')
    })
}

/// Whether the unit's processes cannot write to /dev/shm.
fn hides_memory(facts: &UnitFacts) -> bool {
    let settings = &facts.settings;
    let covers = |path: &str| {
        let path = path.trim_start_matches(['-', '+']);
        ["/", "/dev", "/dev/shm"].contains(&path.trim_end_matches('/')) || path == "/"
    };
    let is_there =
        settings.words("ReadWritePaths").any(|path| covers(path) && path.contains("shm"));
    let is_hidden =
        ["ReadOnlyPaths", "InaccessiblePaths"].iter().any(|name| settings.words(name).any(covers));
    is_hidden && (facts.has_line(MEMORY_LINE) || !is_there)
}
