//! Two readers that ruin each other's disk, as lines and in a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{EmulatedTestDisk, RecordedDisk, stderr};
use crate::top::Killed;
use crate::top::top_terminal::TopTerminal;

/// Two files far from each other.
fn make(disk: &EmulatedTestDisk) {
    let script = format!(
        "cd {} && head -c 200M /dev/zero >a && fallocate -l 100M gap && head -c 64M /dev/zero >b && sync",
        disk.mount()
    );
    let made = Command::new("sh").args(["-c", &script]).output();
    let made = made.expect("sh runs");
    assert!(made.status.success(), "{}", stderr(&made));
}

/// One that reads a file past the page cache: beside another for half a minute.
fn reader(disk: &EmulatedTestDisk, name: &str) -> Killed {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}/{name}", disk.mount()));
    dd.args(["of=/dev/null", "bs=64k", "iflag=direct"]);
    Killed(dd.stderr(Stdio::null()).spawn().expect("dd runs"))
}

/// The disk that both read, once it is known what that costs.
fn shared(line: &Value, readers: &[u32; 2]) -> Option<Value> {
    let disks = line["shared_disks"].as_array().expect("a list");
    let used_by = |disk: &&Value, reader: u32| {
        let users = disk["users"].as_array().expect("a list");
        users.iter().any(|used| used["task"]["process"] == reader)
    };
    let mut of_both =
        disks.iter().filter(|disk| readers.iter().all(|&reader| used_by(disk, reader)));
    of_both.find(|disk| disk["predicted_gain"].as_f64() > Some(0.2)).cloned()
}

#[test]
fn a_disk_that_two_readers_share_is_shown_with_what_that_costs() {
    let Some(bench) = RecordedDisk::with_model("shared", "hdd") else {
        return;
    };
    make(&bench);
    let mut top = bench.command(&["top", "--batch", "--json", "--count", "30", "--delay", "1s"]);
    let mut top = Killed(top.stdout(Stdio::piped()).spawn().expect("luc runs"));
    let mut lines = BufReader::new(top.0.stdout.take().expect("piped")).lines();
    let mut next = || {
        let line = lines.next().expect("thirty lines").expect("read");
        serde_json::from_str::<Value>(&line).expect("JSON")
    };
    next();
    // What a request takes without a switch is seen while one reads alone: together each request is a switch.
    let first = reader(&bench, "a");
    next();
    let second = reader(&bench, "b");
    let readers = [first.0.id(), second.0.id()];
    let found = (0..29).find_map(|_| shared(&next(), &readers));
    let found = found.expect("a disk of both");
    let figure = |name: &str| found[name].as_f64().expect("a number");
    // A full stroke and a turn take 25 ms at most; 64 KiB read on take less than 1 ms.
    assert!((1e6..25e6).contains(&figure("switch_ns")), "{found:#}");
    assert!(figure("efficiency") < 0.7, "{found:#}");
    assert!(figure("await_ns") > figure("service_ns"), "{found:#}");
    assert_ne!(found["slowed"][0][0], found["slowed"][0][1], "{found:#}");
    drop(top);

    let name = found["name"].as_str().expect("a name");
    let mut terminal = TopTerminal::open(&bench, &["--delay", "500ms"], 80, 24);
    terminal.wait("the disk", |lines| {
        let mut lines = lines.iter();
        lines.find(|line| line.trim_start().starts_with(name) && line.contains("dd ("))?;
        lines.find(|line| line.starts_with("luc throttle top: ")).map(drop)
    });
    terminal.press("q");
    assert_eq!(terminal.end(), (Some(0), true));
}
