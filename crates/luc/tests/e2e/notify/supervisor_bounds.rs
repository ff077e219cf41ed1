//! Bounds of what a program can make its supervisor use: descriptors, threads, memory.

use std::process::Stdio;

use crate::notify::many_callers::NotifyDisk;

/// The most of each that a process had.
#[derive(Debug, Default)]
struct Most {
    files: usize,
    threads: usize,
    resident_kib: usize,
}

/// Runs a hostile program to its end, and looks at luc meanwhile.
fn most(place: &NotifyDisk, words: &[&str]) -> Most {
    let program = place.compile("hostile", "hostile.c", &["-O1"]);
    let words = [&[program.as_str()], words].concat();
    let mut command = place.run(&["--quiet", "--reach", "notify"], &words);
    let mut luc = command.stdout(Stdio::null()).spawn().expect("luc starts");
    let path = format!("/proc/{}", luc.id());
    let mut most = Most::default();
    let status = loop {
        if let Some(status) = luc.try_wait().expect("its own child") {
            break status;
        }
        let files = std::fs::read_dir(format!("{path}/fd")).map_or(0, Iterator::count);
        let status = std::fs::read_to_string(format!("{path}/status")).unwrap_or_default();
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        most.files = most.files.max(files);
        most.threads = most.threads.max(figure("Threads:"));
        most.resident_kib = most.resident_kib.max(figure("VmRSS:"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(status.success(), "{words:?}: {most:?}");
    most
}

/// Before, 300,000 calls took 60 MB more.
#[test]
fn numbers_that_are_no_descriptors_take_nothing() {
    let Some(place) = NotifyDisk::new("numbers") else {
        return;
    };
    let few = most(&place, &["numbers", "1000"]);
    let many = most(&place, &["numbers", "300000"]);
    assert!(many.files < 64 && many.threads < 40, "{many:?}");
    assert!(many.resident_kib < few.resident_kib + 8 * 1024, "{few:?} {many:?}");
}

/// Before, each sixteenth call left a descriptor, and the first ones a thread, until the server answered.
#[test]
fn a_server_that_never_lets_a_file_be_closed_takes_nothing() {
    let Some(place) = NotifyDisk::new("server") else {
        return;
    };
    let folder = place.disk.path("server");
    std::fs::create_dir(&folder).expect("a folder");
    let most = most(&place, &["server", &folder, "20000"]);
    assert!(most.files < 64 && most.threads < 40, "{most:?}");
}

/// The number of a file that is known becomes a server's; closing that is not the event loop's business. Before, the
/// loop waited for the server, and nobody was held any more.
#[test]
fn a_server_that_comes_under_a_known_number_keeps_nobody_waiting() {
    const CALLS: u64 = 40;
    let Some(place) = NotifyDisk::new("exchange") else {
        return;
    };
    let folder = place.disk.path("server");
    std::fs::create_dir(&folder).expect("a folder");
    let [file, report] = ["mnt/file", "report.json"].map(|name| place.disk.path(name));
    let program = place.compile("hostile", "hostile.c", &["-O1"]);
    let switches = ["--quiet", "--reach", "notify", "--policy", "delay:2ms", "--json", &report];
    let calls = CALLS.to_string();
    let words = [program.as_str(), "exchange", &folder, &file, &calls];
    let output = place.run(&switches, &words).output().expect("luc starts");
    assert!(output.status.success(), "{output:?}");
    let report = std::fs::read(report).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let systems = report["file_systems"].as_array().expect("a list");
    let gated: u64 = systems.iter().filter_map(|system| system["gate"]["gated"].as_u64()).sum();
    // All but a few, before and after.
    assert!(gated > CALLS * 3 / 2, "{gated}: {report:#}");
}
