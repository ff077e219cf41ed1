//! Windows of rings, pulled from directories, other hosts and object stores.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{BEGIN, Planted, SSH};
use crate::run_luc_fleet::{json_of, names};

#[test]
fn windows_come_from_directories_and_by_ssh() {
    let planted = Planted::new();
    fs::create_dir(planted.folder.path().join("db")).expect("made");
    fs::rename(&planted.rings[1], planted.folder.path().join("db/ring")).expect("moved");
    let words = ["pull", "ring-0", "db:ring", "--around", BEGIN, "--span", "20s", "-o", "out"];
    let ssh = format!("echo a note >&2; {SSH}");
    let output = planted.fleet(&words, &ssh).output().expect("luc-fleet runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("luc-fleet: db says: a note\n"), "{said}");
    let out = planted.folder.path().join("out");
    assert_eq!(names(&out), ["db", "one"]);
    // Half the span and a second on either side.
    let said = fs::read_to_string(planted.folder.path().join("ssh-words")).expect("read");
    let words =
        "db -- luc-fleet window --from 1699999989.000000000 --to 1700000011.000000000 ring\n";
    assert_eq!(said, words);
    for (host, linked) in [("one", 2), ("db", 1)] {
        let file = out.join(host).join("segment-0001-000005").join("message-000001-000001.parquet");
        assert_eq!(file.metadata().expect("there").nlink(), linked);
    }
    let whole = json_of(planted.run(&["explain", "trace-0", "trace-1", "--json"]));
    let pulled = json_of(planted.run(&["explain", "out/one", "out/db", "--json"]));
    assert_eq!(pulled["request"]["request"], whole["request"]["request"]);
    let line = planted.refusal(&["pull", "ring-0", "--around", BEGIN, "-o", "out"], "");
    assert!(line.contains("exists already"), "{line}");
}

#[test]
fn what_cannot_be_pulled_leaves_nothing() {
    let planted = Planted::new();
    let pull = |source: &str, ssh: &str| {
        planted.refusal(&["pull", "ring-0", source, "--around", BEGIN, "-o", "out"], ssh)
    };
    for (source, ssh, reason) in [
        ("db:ring", "echo so; echo 'no such host' >&2; exit 255", "what it sends cannot be read"),
        ("db:ring", "echo first >&2; echo 'no such host' >&2; exit 255", "db: no such host"),
        ("db:ring", "exit 3", "exit status: 3"),
        ("db:ring", "exit 0", "it sends no segment"),
        ("db:ring", "head -c 100000 /dev/zero | tr '\\0' x", "what it sends cannot be read"),
        ("one=ring-1", "", "two sources are named one"),
        ("a@-v:ring", "", "a host has letters"),
        ("db:$(id)", "", "a directory on another host has"),
        ("nothing", "", "cannot list it"),
        ("trace-1", "", "nothing of this window is here"),
    ] {
        let line = pull(source, ssh);
        assert!(line.contains(reason), "{source} {ssh}: {line}");
    }
}

#[test]
fn windows_come_from_object_stores() {
    let planted = Planted::new();
    // A program beside luc-fleet comes first, so that luc-fleet must be where only this one is.
    let programs = planted.folder.path().join("programs");
    fs::create_dir(&programs).expect("made");
    let fleet = programs.join("luc-fleet");
    fs::copy(env!("CARGO_BIN_EXE_luc-fleet"), &fleet).expect("copied");
    let words = [
        "pull",
        "ring-0",
        "s3://traces/rings/db/",
        "--around",
        BEGIN,
        "--span",
        "20s",
        "-o",
        "out",
    ];
    let run = || {
        let mut command = Command::new(&fleet);
        command.args(words).current_dir(planted.folder.path());
        command.env("PATH", "/usr/bin:/bin");
        command.output().expect("luc-fleet runs")
    };
    let line = String::from_utf8(run().stderr).expect("text");
    assert!(line.contains("luc-fleet-store cannot be run"), "{line}");
    assert!(line.contains("`make product-store install`"), "{line}");
    let store = programs.join("luc-fleet-store");
    let script = "#!/bin/sh\necho $* >store-words\nexec programs/luc-fleet window ring-1\n";
    fs::write(&store, script).expect("written");
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).expect("set");
    let output = run();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names(&planted.folder.path().join("out")), ["db", "one"]);
    let said = fs::read_to_string(planted.folder.path().join("store-words")).expect("read");
    let words =
        "window --from 1699999989.000000000 --to 1700000011.000000000 s3://traces/rings/db\n";
    assert_eq!(said, words);
}

#[test]
fn after_an_interrupt_nothing_is_left() {
    let planted = Planted::new();
    let words = ["pull", "ring-0", "db:ring", "--around", BEGIN, "-o", "out"];
    let mut command = planted.fleet(&words, "touch asked; exec sleep 600");
    let child = command.stderr(Stdio::piped()).spawn().expect("runs");
    let began = Instant::now();
    while !planted.folder.path().join("asked").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "ssh does not run");
        thread::sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let left = names(planted.folder.path());
    assert_eq!(left, ["asked", "programs", "ring-0", "ring-1", "trace-0", "trace-1"]);
}
