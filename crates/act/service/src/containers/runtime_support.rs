//! Asks a container runtime whether it can do what a profile demands. A runtime that cannot do so may start no
//! container with the profile. Worse, it may leave the calls of its containers without an answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_units::{OnPath as _, plain};
use serde::Serialize;
use serde_json::Value;

use super::profile_refusal::ProfileRefusal;
use super::seccomp_profile::{FLAG, NOTIFY};

/// Runtimes that are looked for.
const RUNTIMES: [&str; 2] = ["crun", "runc"];

/// A container runtime, its version, and the feature that it lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeSupport {
    pub path: PathBuf,
    /// Its own words for its name and version.
    pub version: String,
    /// Missing capability; `None` if it has all.
    pub lacks: Option<String>,
}

/// Asks a runtime by its name or path; `podman` is asked for its runtime.
///
/// # Errors
/// [`ProfileRefusal`]: it cannot, or is not there.
pub fn ask(name: &str) -> Result<RuntimeSupport, ProfileRefusal> {
    let path = find(name).ok_or_else(|| ProfileRefusal::NoRuntime(plain(name)))?;
    if path.file_name().is_some_and(|name| name == "podman") {
        let own = run(&path, "info --format {{.Host.OCIRuntime.Path}}")?;
        return ask_at(Path::new(own.trim()));
    }
    ask_at(&path)
}

/// Asks all runtimes that are there. No runtime is no error: the profile may be for another machine.
///
/// # Errors
/// [`ProfileRefusal`]: none of those that are there can.
pub fn ask_all() -> Result<Vec<RuntimeSupport>, ProfileRefusal> {
    let paths = RUNTIMES.iter().filter_map(|name| find(name));
    let asked: Vec<Result<RuntimeSupport, ProfileRefusal>> =
        paths.map(|path| ask_at(&path)).collect();
    let can = asked.iter().any(Result::is_ok);
    let mut answers = Vec::new();
    for answer in asked {
        match answer {
            Ok(answer) => answers.push(answer),
            Err(ProfileRefusal::Incapable { runtime, what, .. }) if can => {
                answers.push(RuntimeSupport {
                    path: PathBuf::new(),
                    version: runtime,
                    lacks: Some(what.to_owned()),
                })
            }
            Err(error) if !can => return Err(error),
            Err(_) => {}
        }
    }
    Ok(answers)
}

fn ask_at(path: &Path) -> Result<RuntimeSupport, ProfileRefusal> {
    let version = run(path, "--version")?;
    let version = plain(version.lines().next().unwrap_or_default().trim());
    let named = format!("{version} ({})", path.display());
    // Runtimes of 2023 and later say what they can. An older crun compares flags with the names that it contains.
    match run(path, "features") {
        Ok(text) => check(&text, &named)?,
        Err(_) if path.file_name().is_some_and(|name| name == "crun") => {
            let program = fs::read(path).map_err(ProfileRefusal::io("read", path))?;
            let has = |name: &str| program.windows(name.len()).any(|part| part == name.as_bytes());
            if !has("listenerPath") {
                return Err(ProfileRefusal::without_listener(named));
            }
            if !has(FLAG) {
                return Err(ProfileRefusal::without_flag(named));
            }
        }
        Err(_) => return Err(ProfileRefusal::without_flag(named)),
    }
    Ok(RuntimeSupport { path: path.to_owned(), version, lacks: None })
}

/// Checks the answer to `features` (OCI runtime specification).
fn check(features: &str, runtime: &str) -> Result<(), ProfileRefusal> {
    let features: Value = serde_json::from_str(features).unwrap_or_default();
    let seccomp = &features["linux"]["seccomp"];
    let has = |list: &Value, name: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    if !has(&seccomp["actions"], NOTIFY) {
        return Err(ProfileRefusal::without_listener(runtime.to_owned()));
    }
    // Known, but not by this kernel or this libseccomp, is not enough.
    let flags = ["supportedFlags", "knownFlags"].map(|name| &seccomp[name]);
    if !flags.iter().find(|flags| flags.is_array()).is_some_and(|flags| has(flags, FLAG)) {
        return Err(ProfileRefusal::without_flag(runtime.to_owned()));
    }
    Ok(())
}

/// Finds a program by its name in the PATH, or by its path.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&places).map(|place| place.join(name));
    paths.find(|path| path.is_file())
}

/// Runs a program and returns its output.
fn run(program: &Path, words: &'static str) -> Result<String, ProfileRefusal> {
    let silent =
        |reason: String| ProfileRefusal::Silent { program: program.to_owned(), words, reason };
    let output = Command::new(program)
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| silent(error.to_string()))?;
    if !output.status.success() {
        return Err(silent(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    /// Checks an answer to `features`, and returns the error's text.
    fn said(seccomp: &Value) -> Result<(), String> {
        let features = json!({ "linux": { "seccomp": seccomp } }).to_string();
        check(&features, "x 1").map_err(|error| error.to_string())
    }

    #[test]
    fn features_tell_whether_a_runtime_can() {
        let all = json!({ "actions": [NOTIFY], "knownFlags": [FLAG], "supportedFlags": [FLAG] });
        assert_eq!(said(&all), Ok(()));
        assert_eq!(said(&json!({ "actions": [NOTIFY], "knownFlags": [FLAG] })), Ok(()));
        for (seccomp, expected) in [
            (json!({ "actions": [NOTIFY], "knownFlags": [FLAG], "supportedFlags": [] }), FLAG),
            (json!({ "actions": [NOTIFY] }), FLAG),
            (json!({ "knownFlags": [FLAG] }), NOTIFY),
            (json!({ "enabled": false }), NOTIFY),
        ] {
            let text = said(&seccomp).unwrap_err();
            assert!(text.starts_with(&format!("x 1 does not know {expected}")), "{text}");
        }
        assert!(check("no JSON", "x 1").is_err());
    }

    #[test]
    fn an_old_crun_is_judged_by_the_flags_that_it_contains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crun");
        let program = |more: &str| {
            let text =
                format!("#!/bin/sh\n[ $1 = --version ] && echo crun version 1.0\n# {more}\n");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            ask(path.to_str().unwrap())
        };
        let text = program("listenerPath").unwrap_err().to_string();
        assert!(text.starts_with("crun version 1.0 (") && text.contains(FLAG), "{text}");
        assert!(program(FLAG).unwrap_err().to_string().contains(NOTIFY));
        let answer = program(&format!("listenerPath {FLAG}")).unwrap();
        assert_eq!((answer.version.as_str(), answer.lacks), ("crun version 1.0", None));
        let text = ask("no-such-runtime").unwrap_err().to_string();
        assert!(text.starts_with("no-such-runtime is not in the PATH"), "{text}");
    }
}
