//! `luc throttle` where it cannot work: one line says what is missing. Needs root and cgroup v2.

use crate::common::throttle;

use std::fs;
use std::process::Command;

use crate::common::{LUC, is_root, refusal, stdout};
use throttle::cgroups;

/// Capabilities that Docker gives a container, as far as files and processes are concerned.
const OF_A_CONTAINER: &str =
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+sys_chroot,+mknod";

/// Each command that needs cgroups or BPF.
fn commands(config: &str) -> [String; 4] {
    [
        "throttle run --task true".to_owned(),
        format!("throttle daemon --config {config}"),
        "throttle advise --task true".to_owned(),
        "throttle learn --for 10s /tmp".to_owned(),
    ]
}

/// Refusal of each command in namespaces of its own; `%` in `script` is the command.
fn said(unshare: &[&str], script: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("throttle.toml");
    fs::write(&config, "[[task]]\nmatch = 'luc-test-*'\nclass = 'batch'\n").expect("written");
    let run = |command: String| {
        let script = script.replace('%', &format!("exec {LUC} {command}"));
        let output =
            Command::new("unshare").args(unshare).args(["--", "sh", "-ec", &script]).output();
        refusal(&output.expect("unshare runs"))
    };
    commands(&config.display().to_string()).map(run).into()
}

#[test]
fn without_cgroup_v2_it_is_named() {
    if !is_root() {
        return;
    }
    for said in said(&["--mount"], "umount --all --types cgroup2; %") {
        assert!(said.contains("no cgroup v2 hierarchy is mounted"), "{said}");
    }
}

#[test]
fn without_any_cgroups_it_is_named() {
    if !is_root() {
        return;
    }
    for said in said(&["--mount"], "umount --recursive /sys/fs/cgroup; %") {
        assert!(said.contains("no cgroup v2 hierarchy is mounted"), "{said}");
    }
}

#[test]
fn a_container_whose_cgroups_are_read_only_is_told_so() {
    if !is_root() {
        return;
    }
    let script = format!(
        "mount -o remount,ro,bind {}; exec setpriv --bounding-set={OF_A_CONTAINER} --inh-caps=-all -- sh -c '%'",
        cgroups().display()
    );
    for said in said(&["--mount", "--cgroup"], &script) {
        assert!(said.contains("is read-only, as in a container"), "{said}");
    }
}

#[test]
fn a_container_without_the_right_to_watch_is_told_so() {
    if !is_root() {
        return;
    }
    let script =
        format!("exec setpriv --bounding-set={OF_A_CONTAINER} --inh-caps=-all -- sh -c '%'");
    for said in said(&["--mount", "--cgroup"], &script) {
        assert!(said.contains("CAP_BPF and CAP_PERFMON"), "{said}");
    }
}

#[test]
fn the_root_of_a_user_namespace_is_told_so() {
    if !is_root() {
        return;
    }
    for said in said(&["--user", "--map-root-user"], "%") {
        assert!(said.contains("this is a user namespace"), "{said}");
    }
}

#[test]
fn a_check_says_what_each_rule_matches_and_refuses_disks_that_are_not_there() {
    if !is_root() {
        return;
    }
    let name = format!("luc-test-check-{}", std::process::id());
    let cgroup = cgroups().join(&name);
    fs::create_dir(&cgroup).expect("made");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("throttle.toml");
    let check = |text: String| {
        fs::write(&config, text).expect("written");
        let mut command = Command::new(LUC);
        command.args(["throttle", "daemon", "--check", "--config"]);
        command.arg(&config).output().expect("luc runs")
    };
    let rules = format!(
        "[[task]]\nmatch = '{{{name},no-such}}'\nclass = 'batch'\n[[task]]\nmatch = 'no-such-*'\nclass = 'protect'\n"
    );
    let right = check(rules.clone());
    let unknown = check(format!("disks = ['sdzz']\n{rules}"));
    fs::remove_dir(&cgroup).expect("removed");
    let said = stdout(&right);
    assert!(said.contains(&format!("no-such}}: 1 cgroup: {name}\n")), "{said}");
    assert!(said.contains("protect  no-such-*: no cgroup that is there now"), "{said}");
    let said = refusal(&unknown);
    assert!(said.contains("sdzz"), "{said}");
}
