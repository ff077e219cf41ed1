//! `luc bench ranking` from end to end: its files on an emulated disk, and the probe on them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{EmulatedTestDisk, LUC, refusal, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;

fn ranking(words: &[&str]) -> Output {
    let mut command = Command::new(LUC);
    command.args(["bench", "ranking"]).args(words);
    command.output().expect("luc runs")
}

fn json(words: &[&str]) -> Value {
    let output = ranking(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("list").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "lost+found")
        .collect();
    names.sort();
    names
}

#[test]
fn files_are_made_read_and_written_over() {
    let directory = TempDir::new().expect("directory");
    let file = directory.path().join("a").display().to_string();
    let made = ranking(&["--create", "2M", &file]);
    assert!(stdout(&made).contains("/a: 2M, "), "{}", stdout(&made));
    for options in [
        &["--block", "32", "--nops", "10"][..],
        &["--think", "100us", "--block", "64K"],
        &["--write", "--block", "128K"],
        &["--random", "3", "--block", "4K"],
        &["--cold"],
    ] {
        let report = json(&[&[file.as_str(), "--interval", "1ms"][..], options].concat());
        assert_eq!(report["bytes"], 2 << 20, "{report}");
        let log = report["bytes_per_interval"].as_array().expect("a log");
        let sum: u64 = log.iter().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 2 << 20, "{report}");
        assert!(report["mb_per_second"].as_f64().expect("rate") > 0.0);
        assert_eq!(report["interrupted"], false);
    }
    let ended = json(&[&file, "--block", "4K", "--think", "5ms", "--for", "20ms"]);
    assert!(ended["bytes"].as_u64().expect("bytes") <= 5 * 4096, "{ended}");
    assert!(ended["latency"]["p99_us"].as_f64().expect("p99") > 0.0);
    let text = stdout(&ranking(&[&file, "--think", "1ms"]));
    let start = "ranking: 2M read in ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("blocks of 128K, 1ms of pause after each"), "{text}");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_left() {
    let directory = TempDir::new().expect("directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("mine"), "a text of my own, longer than a mark").expect("written");
    for (words, said) in [
        (&[path("mine").as_str(), "--write"][..], "not made by luc bench ranking"),
        (&[&path("none")], "No such file"),
        (&[&path("mine"), &path("none")], "2 files: the probe uses one"),
        (&[&path("mine"), "--block", "0"], "--block 0"),
        (&[&path("mine"), "--think", "soon"], "--think 'soon'"),
        (&["--create", "2M", &path("b"), &path("mine")], "it is there already"),
        (&["--create", "2M", &path("b"), &path("no/c")], "no/c"),
        (&["--create", "12", &path("b")], "--create 12"),
        (&["--create", "2P", &path("b")], "--create '2P'"),
    ] {
        let refused = refusal(&ranking(words));
        assert!(refused.contains(said), "{words:?}: {refused}");
    }
    assert_eq!(names(directory.path()), ["mine"]);
}

#[test]
fn spread_files_are_cold_and_far_apart_on_their_disk() {
    let Some(disk) = EmulatedTestDisk::new("ranking", "ext4", "") else {
        return;
    };
    let mount = disk.mount();
    let files: Vec<String> = (1..=4).map(|number| format!("{mount}/{number}")).collect();
    let mut words = vec!["--create", "8M", "--spread"];
    words.extend(files.iter().map(String::as_str));
    let places = json(&words);
    let offsets: Vec<u64> = places
        .as_array()
        .expect("places")
        .iter()
        .map(|place| {
            assert_eq!(place["extents"], 1, "{place}");
            place["device_offset_bytes"].as_u64().expect("an offset")
        })
        .collect();
    // A disk of 512 MiB: about 150 MiB from one file to the next.
    for pair in offsets.windows(2) {
        let distance_mib = (pair[1] - pair[0]) >> 20;
        assert!((100..200).contains(&distance_mib), "{offsets:?}");
    }
    assert_eq!(names(Path::new(&mount)), ["1", "2", "3", "4"]);
    for file in &files {
        let report = json(&[file]);
        assert_eq!(report["cached_bytes"], 0, "{report}");
        // Now it is in the page cache; that is said, and --cold helps.
        let warm = ranking(&[file]);
        assert!(stderr(&warm).contains("use --cold"), "{}", stderr(&warm));
        assert_eq!(json(&[file, "--cold"])["cached_bytes"], 0);
    }
    // Too large for the disk: nothing stays of it, and the free space is given back.
    let refused = refusal(&ranking(&[
        "--create",
        "200M",
        "--spread",
        &format!("{mount}/5"),
        &format!("{mount}/6"),
        &format!("{mount}/7"),
    ]));
    assert!(refused.contains("file system is full"), "{refused}");
    assert_eq!(names(Path::new(&mount)), ["1", "2", "3", "4"]);
}
