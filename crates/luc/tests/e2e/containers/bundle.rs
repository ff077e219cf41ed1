//! Containers for crun, which puts them under a profile of `luc oci-profile`.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::compiled_statically;
use crate::containers::systemd_machine::SystemdMachine;

/// Folder of bundles, profiles and volumes, on the emulated disk.
pub(crate) const PLACE: &str = "/var/lib/root";

/// crun without cgroups of its own: those take rights that not every machine gives, and are of no matter here.
pub(crate) const CRUN: &str = "crun --cgroup-manager=disabled";

/// Programs that are needed; else says that a test is skipped.
pub(crate) fn are_installed() -> bool {
    for program in ["/usr/bin/crun", "/bin/busybox"] {
        if !Path::new(program).exists() {
            luc_testkit::skipped!("{program} is not installed: `make setup` does that");
            return false;
        }
    }
    true
}

/// A machine with a root for containers and a profile.
pub(crate) fn machine(test: &str) -> Option<SystemdMachine> {
    if !are_installed() {
        return None;
    }
    let machine = SystemdMachine::boot(test, &["root"])?;
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("notified");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/notified.c");
    compiled_statically(&source, &program).then_some(())?;
    machine.get(&format!(
        "cd {PLACE} && mkdir -p data lower/bin lower/data lower/tmp lower/proc lower/dev lower/sys && cp /bin/busybox lower/bin && \
         ln -s busybox lower/bin/sh"
    ));
    machine.copy(&program, &format!("{PLACE}/lower/bin/notified"));
    // All but one call, so that it is seen whether the runtime still keeps to the rest.
    let base = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": ["chroot"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95 }],
    });
    machine.write(&format!("{PLACE}/base.json"), &base.to_string());
    machine.get(&format!(
        "cd {PLACE} && luc oci-profile base.json --runtime crun -o luc.json && systemctl start lucd.socket"
    ));
    Some(machine)
}

/// Writes a container's bundle: a shell's `words` below `root`, with a volume at /data.
pub(crate) fn bundle(machine: &SystemdMachine, name: &str, root: &str, words: &str) {
    let folder = format!("{PLACE}/{name}");
    machine.get(&format!("mkdir -p {folder} && cd {folder} && crun spec"));
    let read = |path: String| -> Value {
        serde_json::from_str(&machine.get(&format!("cat {path}"))).expect("JSON")
    };
    let mut config = read(format!("{folder}/config.json"));
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = json!(["/bin/sh", "-c", words]);
    config["root"] = json!({ "path": format!("{PLACE}/{root}"), "readonly": false });
    config["linux"]["seccomp"] = read(format!("{PLACE}/luc.json"));
    let mounts = config["mounts"].as_array_mut().expect("a list");
    mounts.retain(|mount| mount["type"] != "cgroup");
    mounts.push(json!({
        "destination": "/data", "type": "none", "source": format!("{PLACE}/data"), "options": ["bind", "rw"],
    }));
    machine.write(&format!("{folder}/config.json"), &config.to_string());
}

/// Starts a container whose bundle was written, in a cgroup of its own; what it says is in `NAME.log`.
pub(crate) fn start(machine: &SystemdMachine, name: &str) {
    machine.get(&format!(
        "systemd-run --quiet --collect --unit={name} -p Type=forking -p GuessMainPID=no -p WorkingDirectory={PLACE}/{name} \
         -p StandardOutput=append:{PLACE}/{name}.log -p StandardError=append:{PLACE}/{name}.log \
         {CRUN} run --detach {name}"
    ));
}
