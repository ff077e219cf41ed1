//! Profiles, without a container.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{LUC, refusal, stdout};

/// A folder with programs that say that they are container runtimes, and nothing else in the PATH.
struct Runtimes(tempfile::TempDir);

const FLAG: &str = "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV";

impl Runtimes {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A runtime that answers `features` with these flags.
    fn add(&self, name: &str, flags: &str) {
        let features = format!(
            r#"{{"linux":{{"seccomp":{{"actions":["SCMP_ACT_NOTIFY"],"knownFlags":["{FLAG}"],"supportedFlags":[{flags}]}}}}}}"#
        );
        let text = format!(
            "#!/bin/sh\ncase $1 in --version) echo '{name} version 1.2';; features) echo '{features}';; *) exit 1;; esac\n"
        );
        let path = self.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("set");
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("written");
    }

    fn luc(&self, words: &[&str]) -> Output {
        let mut command = Command::new(LUC);
        command.arg("oci-profile").args(words).current_dir(self.path()).env("PATH", self.path());
        command.output().expect("luc runs")
    }
}

const ALLOWS: &str = r#"{"defaultAction":"SCMP_ACT_ERRNO","x":1,"syscalls":[{"names":["fsync","fdatasync","read"],"action":"SCMP_ACT_ALLOW"}]}"#;

#[test]
fn a_profile_is_made_of_a_file_and_says_for_whom() {
    let runtimes = Runtimes::new();
    runtimes.write("base.json", ALLOWS);
    runtimes.add("crun", &format!("\"{FLAG}\""));
    runtimes.add("runc", "");
    let output = runtimes.luc(&["base.json"]);
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(printed["listenerPath"], "/run/luc/oci.sock");
    assert_eq!(printed["x"], 1);

    let output = runtimes.luc(&["base.json", "-o", "luc.json"]);
    let said = stdout(&output);
    assert!(
        said.starts_with("luc.json: as base.json, but fsync and fdatasync are notified"),
        "{said}"
    );
    assert!(said.contains("crun version 1.2 can\n"), "{said}");
    assert!(said.contains("note: runc version 1.2") && said.contains("cannot"), "{said}");
    let written = fs::read_to_string(runtimes.path().join("luc.json")).expect("read");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), printed);
    let output = runtimes.luc(&["base.json", "-o", "luc.json", "--json", "--runtime", "crun"]);
    let said: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(said["runtimes"][0]["lacks"], Value::Null);
}

#[test]
fn what_would_not_work_is_refused_and_nothing_is_written() {
    let runtimes = Runtimes::new();
    runtimes.add("runc", "");
    runtimes.write("base.json", ALLOWS);
    runtimes.write("denies.json", r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#);
    runtimes.write("broken.json", "{\"defaultAction\": ");
    runtimes.write("notifies.json", r#"{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}"#);
    let refused = |words: &[&str], expected: &str| {
        let text = refusal(&runtimes.luc(&[words, &["-o", "luc.json"]].concat()));
        assert!(text.contains(expected), "{text}");
        assert!(!runtimes.path().join("luc.json").exists());
    };
    refused(&["base.json"], "runc version 1.2 (");
    refused(
        &["base.json", "--runtime", "runc"],
        "does not know SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
    );
    refused(&["base.json", "--runtime", "crun"], "crun is not in the PATH");
    fs::remove_file(runtimes.path().join("runc")).expect("removed");
    refused(&["denies.json"], "SCMP_ACT_ERRNO is its action for fsync");
    refused(&["broken.json"], "broken.json: it is not JSON");
    refused(&["notifies.json"], "notifies a supervisor already (listenerPath /x)");
    refused(&["none.json"], "none.json cannot be read");
    // Without a runtime here a profile is made, for another machine.
    let output = runtimes.luc(&["base.json", "-o", "luc.json"]);
    assert!(stdout(&output).contains("no runtime was asked"), "{output:?}");
}
