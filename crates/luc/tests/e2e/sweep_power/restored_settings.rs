//! An interrupted or killed sweep, its cleanup process killed or not: what puts the settings back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output};

use crate::common::{LUC, is_root, refusal, stderr, stdout, until};
use crate::sweep_power::sweep_folder::SweepFolder;

/// A repeat that does not end, a meter, and a mark when both are there.
const ENDLESS: &str = r#"
frequency = ["1.2GHz"]
frequency-options = { turbo = false, smt = false }
settle = "0"
stop = { min = 6, max = 6 }
energy = { command = "echo $$ >$HERE/meter; while sleep 0.05; do echo 5; done", idle = "0" }
[[workload]]
name = "wait"
command = ["sh", "-c", "test -e $HERE/quick || { touch $HERE/begun; sleep 100; }; echo 1 >$HERE/done; sleep 0.1"]
[[target]]
name = "here"
directory = "$HERE/work"
"#;

fn begun() -> (SweepFolder, Child) {
    let place = SweepFolder::with_processors(ENDLESS);
    let mut sweep = place.start();
    until("a repeat", || {
        assert!(sweep.try_wait().expect("known").is_none(), "it has ended");
        place.path("begun").exists()
    });
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    (place, sweep)
}

fn is_running(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

#[test]
fn interrupted_it_puts_everything_back() {
    let (place, mut sweep) = begun();
    let pid = sweep.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    let status = sweep.wait().expect("waited for");
    assert_eq!(status.code(), Some(130));
    place.assert_as_before();
    assert!(!is_running(&place.get("meter")));
}

#[test]
fn killed_its_cleanup_process_puts_everything_back() {
    let (place, mut sweep) = begun();
    sweep.kill().expect("killed");
    sweep.wait().expect("waited for");
    assert_put_back(&place);
}

#[test]
fn ended_with_its_cleanup_process_by_signals_to_all_it_puts_everything_back() {
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let (place, mut sweep) = begun();
        let cleanup = cleanup_of(sweep.id());
        signal_to(signal, &[&sweep.id().to_string(), &cleanup]);
        sweep.wait().expect("waited for");
        assert_put_back(&place);
        // Whoever cleans up removes its note last.
        until(&format!("no note after {signal}"), || notes(&place) == 0);
    }
}

#[test]
fn without_its_cleanup_process_the_sweep_puts_everything_back_itself() {
    let (place, mut sweep) = begun();
    signal_to("KILL", &[&cleanup_of(sweep.id())]);
    signal_to("TERM", &[&sweep.id().to_string()]);
    let status = sweep.wait().expect("waited for");
    assert_eq!(status.code(), Some(130));
    place.assert_as_before();
    assert!(!place.path("out/work").exists());
    assert_eq!(notes(&place), 0);
}

fn assert_put_back(place: &SweepFolder) {
    until("the processors", || !place.path("out/processors.json").exists());
    until("a clear house", || !place.path("out/work").exists());
    place.assert_as_before();
    let meter = place.get("meter");
    until("the meter's end", || !is_running(&meter));
}

/// Another command than a sweep.
fn next_luc(place: &SweepFolder, words: &[&str]) -> Output {
    let mut command = Command::new(LUC);
    command.args(words).env("LUC_RUN_DIR", place.path("run"));
    command.output().expect("luc runs")
}

fn notes(place: &SweepFolder) -> usize {
    fs::read_dir(place.path("run/sweep")).map_or(0, Iterator::count)
}

#[test]
fn killed_with_its_cleanup_process_the_next_command_of_any_kind_puts_everything_back() {
    if !is_root() {
        return;
    }
    let (place, mut sweep) = begun();
    let text = stderr(&next_luc(&place, &["disk", "list"]));
    assert_eq!(text, "", "a sweep that lives is left alone");
    let nothing = next_luc(&place, &["sweep", "restore"]);
    assert_eq!(stdout(&nothing), "nothing to restore\n");
    signal_to("KILL", &[&cleanup_of(sweep.id()), &sweep.id().to_string()]);
    sweep.wait().expect("waited for");
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    let next = next_luc(&place, &["disk", "list"]);
    assert_eq!(stdout(&next), "no disks\n");
    let message = stderr(&next);
    assert_eq!(message.lines().count(), 1, "{message}");
    for words in ["killed sweep", "the processors' settings", "out/work", "restored"] {
        assert!(message.contains(words), "{message}");
    }
    place.assert_as_before();
    assert!(!place.path("out/work").exists());
    let meter = place.get("meter");
    until("the meter's end", || !is_running(&meter));
    assert_eq!(notes(&place), 0);
    let again = next_luc(&place, &["disk", "list"]);
    assert_eq!(stderr(&again), "");
    // The same command goes on.
    fs::write(place.path("quick"), "").expect("written");
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    place.assert_as_before();
}

#[test]
fn what_others_may_have_written_is_not_restored() {
    if !is_root() {
        return;
    }
    let (place, mut sweep) = begun();
    signal_to("KILL", &[&cleanup_of(sweep.id()), &sweep.id().to_string()]);
    sweep.wait().expect("waited for");
    let file = place.path("out/processors.json");
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    open(&file, 0o666);
    let output = next_luc(&place, &["sweep", "restore", "--json"]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("processors.json") && message.contains("mode 666"), "{message}");
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    let message = refusal(&place.sweep_without_restoring());
    assert!(message.contains("processors.json"), "{message}");
    open(&file, 0o600);
    open(&place.path("out"), 0o777);
    let output = next_luc(&place, &["sweep", "restore"]);
    let message = stdout(&output);
    assert!(output.status.success() && message.contains("restored"), "{}", stderr(&output));
    place.assert_as_before();
    let message = refusal(&place.run());
    assert!(message.contains("out") && message.contains("mode 777"), "{message}");
}

fn signal_to(signal: &str, pids: &[&str]) {
    let sent = Command::new("kill").arg(format!("-{signal}")).args(pids).status();
    assert!(sent.expect("kill runs").success());
}

/// The child of a sweep that clears up after it.
fn cleanup_of(sweep: u32) -> String {
    let parent = format!("PPid:\t{sweep}\n");
    let entries = fs::read_dir("/proc").expect("listed");
    let mut pids = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let found = pids.find(|pid| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        read("status").contains(&parent) && read("cmdline").contains("--clean-up")
    });
    found.expect("a cleanup process")
}
