//! Description of the machine on which figures were measured.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use serde_json::{Value, json};

use crate::error::EvaluateError;

/// Describes the machine, with everything that a reader of the figures may ask for. The commit is that of the current
/// folder.
pub fn describe(luc: &Path) -> Result<Value, EvaluateError> {
    let uname = rustix::system::uname();
    let version = Command::new(luc).arg("--version").output();
    let version = version.map_err(EvaluateError::file("run", luc))?.stdout;
    let mut describe = Command::new("git");
    describe.args(["describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]);
    let commit = describe.output().ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Ok(json!({
        "started": now()?, "luc": String::from_utf8_lossy(&version).trim(), "commit": commit,
        "kernel": uname.release().to_string_lossy(), "architecture": uname.machine().to_string_lossy(),
        "cpus": available_parallelism().map(usize::from).unwrap_or(1), "cpu": field(&cpuinfo, "model name"),
        "memory": field(&meminfo, "MemTotal"), "load": load(),
    }))
}

/// Makes one sentence of [`describe`]. In virtual time only the day may be known, and the machine does not matter.
pub fn sentence(machine: &Value) -> String {
    let text = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
    if machine["kernel"].is_null() {
        return format!("Made up to {}, of commit {}.", text("started"), text("commit"));
    }
    format!(
        "Measured {} on Linux {}, {} CPUs ({}), memory {}, load {} at the start, with {} of commit {}.",
        text("started"),
        text("kernel"),
        machine["cpus"],
        text("cpu"),
        text("memory"),
        text("load"),
        text("luc"),
        text("commit"),
    )
}

/// Returns the date and time, UTC.
pub fn now() -> Result<String, EvaluateError> {
    let output = Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .map_err(EvaluateError::file("run", "date"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the first `KEY: value` of a file in /proc.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc() {
        let text = "MemTotal:       24 kB\nmodel name\t: A CPU: 2\n";
        assert_eq!(field(text, "MemTotal"), Some("24 kB"));
        assert_eq!(field(text, "model name"), Some("A CPU: 2"));
        assert_eq!(field(text, "none"), None);
    }
}
