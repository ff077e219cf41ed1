//! The notifier's way: `luc-exec` before each of the unit's programs.

use std::fmt::Write as _;
use std::path::Path;

use super::{
    EnablePlan, GateWay, InstalledTools, UnitFacts, UnitRefusal, heading, may_execute, word,
    written_commands,
};
use crate::command_line_words::CommandLine;

/// Socket at which luc-exec hands its listener over.
pub const SOCKET: &str = "/run/luc/lucd.sock";

pub(super) fn plan(
    facts: &UnitFacts,
    tools: &InstalledTools,
    why: String,
) -> Result<EnablePlan, UnitRefusal> {
    let settings = &facts.settings;
    refuse(facts, tools).map_err(UnitRefusal::Notify)?;
    let lines = written_commands(facts)?;
    let mut notes = Vec::new();
    let unit = settings.id().to_owned();
    let mut text = heading(&unit);
    // A write to a String cannot fail.
    let _ = write!(text, "[Unit]\nWants=lucd.service\nAfter=lucd.service\n[Service]\n");
    for (line, _) in &lines {
        let _ = writeln!(text, "{ORIGINAL_MARK}{line}");
    }
    text.push_str("ExecStart=\n");
    for command in lines.iter().flat_map(|(_, commands)| commands) {
        let _ = writeln!(text, "ExecStart={}", wrap(command, facts, tools));
    }
    let is_weak = is_unprivileged(facts) && !settings.is_on("NoNewPrivileges");
    let is_nameless = settings.get("SyslogIdentifier").is_empty();
    for (is_needed, line, note) in [
        (
            !settings.lets_pass("seccomp"),
            "SystemCallFilter=seccomp".to_owned(),
            "its filter of system calls lets seccomp pass in addition",
        ),
        (
            !settings.allows_family("AF_UNIX"),
            "RestrictAddressFamilies=AF_UNIX".to_owned(),
            "its processes may make unix sockets in addition",
        ),
        (
            is_weak,
            "NoNewPrivileges=yes".to_owned(),
            "no program below it can gain privileges (NoNewPrivileges): sudo, ping, postdrop and the like fail there",
        ),
        // systemd would take luc-exec's name.
        (is_nameless, format!("SyslogIdentifier={}", journal_name(facts)), ""),
    ] {
        if is_needed || facts.has_line(&line) {
            let _ = writeln!(text, "{line}");
            notes.extend(Some(note).filter(|note| !note.is_empty()).map(ToOwned::to_owned));
        }
    }
    text.push_str(&may_execute(facts, tools, &mut notes));
    if has_own_root(facts) {
        let _ = writeln!(text, "BindReadOnlyPaths={} -{SOCKET}", word(&tools.exec));
        notes.push(format!("its root shows {} and {SOCKET}", word(&tools.exec)));
    }
    if settings.is_on("PrivateUsers") || settings.is_on("DynamicUser") {
        notes.push("its user's number is its own, so it is known by its cgroup".to_owned());
    }
    notes.push(luc_notify::INTERRUPTS.to_owned());
    Ok(EnablePlan { unit, way: GateWay::Notify, why, drop_in: text, notes })
}

/// Identifier of the unit's lines in the journal: the name of its program.
fn journal_name(facts: &UnitFacts) -> String {
    let programs = facts.programs.iter().map(|(path, _)| path.clone());
    let first = programs.chain(facts.settings.programs()).next();
    let name = first.as_deref().and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().replace('%', "%%")
}

/// Mark before a line of the unit's own in the drop-in.
pub(crate) const ORIGINAL_MARK: &str = "# The unit's own: ExecStart=";

fn refuse(facts: &UnitFacts, tools: &InstalledTools) -> Result<(), String> {
    let settings = &facts.settings;
    if let Some(reason) = &tools.no_notifier {
        return Err(reason.clone());
    }
    for name in ["AppArmorProfile", "SELinuxContext", "SmackProcessLabel"] {
        if !settings.get(name).is_empty() {
            return Err(format!("{name} is for its own program, and luc-exec comes before it"));
        }
    }
    let last = facts.files.iter().flat_map(|file| file.values("Service", "NoNewPrivileges")).last();
    if is_unprivileged(facts)
        && last.is_some_and(|value| !super::is_yes(value) && !value.is_empty())
    {
        return Err(
            "its unit wants programs below it to gain privileges (NoNewPrivileges=no), which a filter forbids".to_owned(),
        );
    }
    let is_script = |line: &&str| line.starts_with("/etc/init.d/");
    if settings.all("SourcePath").any(|path| is_script(&path)) {
        return Err("it is a script of SysV's, whose commands systemd makes up".to_owned());
    }
    Ok(())
}

/// Whether its processes lack the right to install a filter without `no_new_privs`.
fn is_unprivileged(facts: &UnitFacts) -> bool {
    let settings = &facts.settings;
    let user = settings.get("User");
    let is_other = !["", "root", "0"].contains(&user) || settings.is_on("DynamicUser");
    let mut bounds = settings.all("CapabilityBoundingSet");
    let is_bounded = bounds.any(|set| !set.split_whitespace().any(|one| one == "cap_sys_admin"));
    is_other || is_bounded || settings.is_on("PrivateUsers")
}

fn has_own_root(facts: &UnitFacts) -> bool {
    let is_set = |name: &str| !facts.settings.get(name).is_empty();
    ["RootDirectory", "RootImage"].into_iter().any(is_set)
}

/// Puts luc-exec before a command's program. Changes no other word.
fn wrap(command: &CommandLine, facts: &UnitFacts, tools: &InstalledTools) -> String {
    let has_name = command.prefix.contains('@');
    let prefix: String = command.prefix.chars().filter(|&c| c != '@').collect();
    // Of a program's own path systemd expands no variable, of an argument it does.
    let program = if prefix.contains(':') {
        command.program.clone()
    } else {
        command.program.replace('$', "$$")
    };
    let mark = if has_name { "@" } else { "--" };
    let mark =
        format!("{}{mark}", if facts.settings.get("IgnoreSIGPIPE") == "no" { "s" } else { "" });
    let space = if command.rest.is_empty() { "" } else { " " };
    format!("{prefix}{} notify %n {mark} {program}{space}{}", word(&tools.exec), command.rest)
}
