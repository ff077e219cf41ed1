//! Asks systemd and has it act, by `systemctl`.

use std::io;
use std::path::Path;
use std::process::Stdio;

use luc_host::installed_programs::tool;

use crate::ServiceError;
use crate::unit_settings::UnitSettings;

/// Folder that is there only while systemd is process 1.
const RUNNING_FOLDER: &str = "/run/systemd/system";

/// Checks that systemd runs here.
///
/// # Errors
/// [`ServiceError::NoSystemd`]
pub fn check() -> Result<(), ServiceError> {
    if Path::new(RUNNING_FOLDER).is_dir() { Ok(()) } else { Err(ServiceError::NoSystemd) }
}

/// The process number of `lucd`; 0 if it does not run.
///
/// # Errors
/// [`ServiceError`]: systemd does not answer.
pub fn lucd() -> Result<u32, ServiceError> {
    let settings = show("lucd.service")?;
    Ok(settings.get("MainPID").parse().unwrap_or(0))
}

/// The name of a unit as systemd wants it: a name without a kind is a service's.
///
/// # Errors
/// [`ServiceError::Name`]: no unit can have it.
pub fn name(text: &str) -> Result<String, ServiceError> {
    let is_possible = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let has_kind = text.rsplit_once('.').is_some_and(|(_, kind)| UNIT_KINDS.contains(&kind));
    let name = if has_kind { text.to_owned() } else { format!("{text}.service") };
    let is_template = name.contains("@.");
    if text.is_empty()
        || !name.chars().all(is_possible)
        || name.starts_with(['-', '.'])
        || name.len() > 255
        || is_template
    {
        return Err(ServiceError::Name(luc_units::plain(text)));
    }
    Ok(name)
}

const UNIT_KINDS: [&str; 11] = [
    "automount",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "socket",
    "swap",
    "target",
    "timer",
];

/// The properties of a unit. A unit that does not exist has some, too.
///
/// # Errors
/// [`ServiceError::Systemctl`]
pub fn show(unit: &str) -> Result<UnitSettings, ServiceError> {
    Ok(UnitSettings::parse(&run(&["show", "--no-pager", "--", unit])?))
}

/// Makes systemd read all units again.
///
/// # Errors
/// [`ServiceError::Systemctl`]
pub fn reload() -> Result<(), ServiceError> {
    run(&["daemon-reload"]).map(drop)
}

/// Restarts a unit if it runs.
///
/// # Errors
/// [`ServiceError::Systemctl`]
pub fn restart(unit: &str) -> Result<(), ServiceError> {
    run(&["try-restart", "--", unit]).map(drop)
}

/// Starts a unit, also one that has just failed.
///
/// # Errors
/// [`ServiceError::Systemctl`]
pub fn start_anew(unit: &str) -> Result<(), ServiceError> {
    run(&["restart", "--", unit]).map(drop)
}

fn run(words: &[&str]) -> Result<String, ServiceError> {
    let failed = |reason: String| ServiceError::Systemctl { words: words.join(" "), reason };
    let output = tool("systemctl")
        .args(words)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("SYSTEMD_PAGER")
        .stdin(Stdio::null())
        .output()
        .map_err(|error: io::Error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(failed(luc_units::plain(&lines.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_units() {
        for (text, expected) in [
            ("redis-server", "redis-server.service"),
            ("postgresql@15-main", "postgresql@15-main.service"),
            ("redis.socket", "redis.socket"),
            ("a.b", "a.b.service"),
            (r"dev-a\x2db.service", r"dev-a\x2db.service"),
        ] {
            assert_eq!(name(text).unwrap(), expected);
        }
        for text in ["", "../x", "a b", "--now", "x@", "x@.service", "%n", &"x".repeat(256)] {
            assert!(name(text).is_err(), "{text}");
        }
    }
}
