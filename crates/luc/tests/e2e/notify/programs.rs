//! Programs of all kinds: their calls go through rounds, and they notice nothing.

use std::path::Path;
use std::process::Command;

use crate::common::{CALLER_SOURCES, stderr};
use crate::notify::many_callers::{CrowdCounts, NotifyDisk, gated, source};

#[test]
fn a_static_program_is_reached_and_its_threads_share_commits() {
    let Some(place) = NotifyDisk::new("static") else {
        return;
    };
    let (counted, report, said) = place.report(&[], &place.crowd("8", "4000"));
    CrowdCounts::of(&counted).assert_unharmed();
    assert!(said.contains("linked statically"), "{said}");
    let fs = &report["file_systems"][0];
    assert!(gated(&report) > 0, "{fs:#}");
    let rounds = fs["gate"]["rounds"].as_f64().expect("number");
    assert!(gated(&report) as f64 / rounds > 2.0, "{fs:#}");
    // Every call is counted, held or not.
    let calls = fs["fsyncs"].as_u64().unwrap_or(0) + fs["fdatasyncs"].as_u64().unwrap_or(0);
    let made = CrowdCounts::of(&counted).calls;
    assert!(calls + 8 >= made && calls <= made, "{calls} of {made}");
    assert_eq!(fs["mean_us"], serde_json::Value::Null, "{fs:#}");
}

#[test]
fn a_go_program_is_reached() {
    let Some(place) = NotifyDisk::new("go") else {
        return;
    };
    let program = place.disk.path("go-crowd");
    let built = Command::new("go")
        .args(["build", "-o", &program])
        .arg(source("goroutines_syncing.go"))
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", place.disk.path("go-cache"))
        .output();
    let Ok(built) = built else {
        luc_testkit::skipped!("go is not installed");
        return;
    };
    assert!(built.status.success(), "{}", stderr(&built));
    let (counted, report, said) =
        place.report(&["--policy", "delay:2ms"], &[&program, "16", "2000"]);
    CrowdCounts::of(&counted).assert_unharmed();
    assert!(said.contains("Go program"), "{said}");
    assert!(gated(&report) > 16, "{report:#}");
}

#[test]
fn awkward_callers_notice_nothing() {
    let Some(place) = NotifyDisk::new("callers") else {
        return;
    };
    let program = place.compile_all("caller", &CALLER_SOURCES, &["-static", "-O1"]);
    for policy in ["off", "delay:3ms", "pid:4", "auto"] {
        for case in
            ["errors", "msync", "fork", "vfork", "exec", "cancel", "handler", "jump", "threads"]
        {
            let (_, report, _) = place.report(&["--policy", policy], &[&program, case]);
            if policy == "delay:3ms" && case != "msync" {
                assert!(gated(&report) > 0, "{case}: {report:#}");
            }
        }
    }
}

#[test]
fn signals_all_the_time_restart_no_call() {
    let Some(place) = NotifyDisk::new("storm") else {
        return;
    };
    let mut words = place.crowd("8", "1500");
    words.push("storm");
    let (counted, report, _) = place.report(&["--policy", "delay:2ms"], &words);
    let counted = CrowdCounts::of(&counted);
    counted.assert_unharmed();
    // A call that a signal restarts is notified again, so that more come than were made.
    let fs = &report["file_systems"][0];
    let calls = fs["fsyncs"].as_u64().unwrap_or(0) + fs["fdatasyncs"].as_u64().unwrap_or(0);
    assert!(gated(&report) > 0 && calls <= counted.calls + counted.calls / 4, "{fs:#}");
}

#[test]
fn a_32_bit_program_is_reached_when_asked_for() {
    let Some(place) = NotifyDisk::new("i386") else {
        return;
    };
    let program = place.disk.path("i386");
    let compiled = Command::new("cc")
        .args(["-m32", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-O1", "-o", &program])
        .arg(source("i386.c"))
        .output()
        .expect("cc starts");
    if !compiled.status.success() {
        luc_testkit::skipped!("cc makes no 32-bit programs: {}", stderr(&compiled));
        return;
    }
    if Command::new(&program).current_dir(place.disk.mount()).status().is_err() {
        luc_testkit::skipped!("this kernel runs no 32-bit programs");
        return;
    }
    let (_, report, _) = place.report(&["--reach", "notify", "--policy", "delay:2ms"], &[&program]);
    assert!(gated(&report) > 0, "{report:#}");
}

#[test]
fn a_program_that_cleans_its_environment_is_reached_by_notifications_only() {
    let Some(place) = NotifyDisk::new("cleaned") else {
        return;
    };
    let script = "dd if=/dev/zero of=f bs=1k count=1 conv=fsync status=none; \
                  dd if=/dev/zero of=g bs=1k count=1 conv=fsync status=none; sleep 1";
    let cleaned = ["env", "-i", "sh", "-c", script];
    let (_, report, said) = place.report(&["--reach", "notify"], &cleaned);
    assert_eq!(report["file_systems"][0]["fsyncs"], 2, "{report:#}");
    assert!(!said.contains("not reached"), "{said}");
    let (_, report, said) = place.report(&["--reach", "library"], &cleaned);
    assert_eq!(report["file_systems"], serde_json::json!([]), "{report:#}");
    // Its calls came before the recorder, so they are a suspicion.
    assert!(said.contains("not reached by the library"), "{said}");
    assert!(said.contains("cleaned environment"), "{said}");
    assert!(said.contains("sleep") || said.contains("sh"), "{said}");
}

#[test]
fn debuggers_and_tracers_work_as_ever() {
    let Some(place) = NotifyDisk::new("tracers") else {
        return;
    };
    let options = ["--reach", "notify", "--policy", "delay:2ms"];
    let is_there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if is_there("strace") {
        let trace = place.disk.path("trace");
        let words = ["strace", "-f", "-o", &trace, &place.notified, "once", "traced"];
        let (said, report, _) = place.report(&options, &words);
        assert_eq!(said, "fsync 0 fdatasync 0\n");
        assert_eq!(report["file_systems"][0]["fsyncs"], 1, "{report:#}");
        let trace = std::fs::read_to_string(trace).expect("a trace");
        for call in ["fsync(", "fdatasync("] {
            let line = trace.lines().find(|line| line.contains(call));
            assert!(line.is_some_and(|line| line.ends_with("= 0")), "{trace}");
        }
    } else {
        luc_testkit::skipped!("strace is not installed");
    }
    if is_there("gdb") {
        let words = [
            "gdb",
            "-batch",
            "-nx",
            "-ex",
            "break fdatasync",
            "-ex",
            "run",
            "-ex",
            "continue",
            "--args",
            &place.notified,
            "once",
            "debugged",
        ];
        let (said, report, _) = place.report(&options, &words);
        assert!(said.contains("fsync 0 fdatasync 0"), "{said}");
        assert!(said.contains("Breakpoint 1, "), "{said}");
        assert_eq!(report["file_systems"][0]["fsyncs"], 1, "{report:#}");
    } else {
        luc_testkit::skipped!("gdb is not installed");
    }
}

#[test]
fn a_run_below_a_notified_one_leaves_its_calls_to_that() {
    let Some(place) = NotifyDisk::new("nested") else {
        return;
    };
    let inner =
        [crate::common::LUC, "run", "--reach", "notify", "--", &place.notified, "once", "f"];
    let (said, report, stderr) = place.report(&["--reach", "notify"], &inner);
    assert_eq!(said, "fsync 0 fdatasync 0\n");
    assert!(stderr.contains("notified of its calls already"), "{stderr}");
    assert_eq!(report["file_systems"][0]["fsyncs"], 1, "{report:#}");
}

#[test]
fn somebody_else_s_listener_is_named() {
    let Some(place) = NotifyDisk::new("taken") else {
        return;
    };
    let inner = [
        "env",
        "-u",
        "LUC_GATE_NOTIFIED",
        crate::common::LUC,
        "run",
        "--reach",
        "notify",
        "--",
        &place.notified,
        "once",
        "f",
    ];
    let output = place.run(&["--reach", "notify", "--quiet"], &inner).output().expect("luc starts");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("another supervisor of system calls"), "{said}");
}

#[test]
fn without_root_it_says_what_is_lost_and_works() {
    let Some(place) = NotifyDisk::new("unprivileged") else {
        return;
    };
    let folder = Path::new(&place.disk.mount()).join("nobody");
    std::fs::create_dir(&folder).expect("made");
    let mut command = crate::common::as_nobody(&folder);
    let output = command
        .args(["run", "--policy", "delay:2ms", "--"])
        .arg(&place.notified)
        .args(["crowd", "4", "500", "1000"])
        .current_dir(&folder)
        .output()
        .expect("luc starts");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    CrowdCounts::of(&String::from_utf8_lossy(&output.stdout)).assert_unharmed();
    assert!(said.contains("can gain privileges"), "{said}");
    assert!(said.contains("calls in"), "{said}");
}

#[test]
fn the_library_and_notifications_meet_in_one_round() {
    let Some(place) = NotifyDisk::new("mixed") else {
        return;
    };
    let dynamic = place.compile("dynamic", "notified.c", &[]);
    // Each under a luc run of its own, with rounds that only become full together.
    let (luc, notified) = (crate::common::LUC, &place.notified);
    let run = format!("{luc} run --quiet --policy delay:2ms --");
    let script = format!(
        "{run} {dynamic} crowd 4 1500 1000 >dynamic.out & {run} {notified} crowd 4 1500 1000 >static.out; wait"
    );
    let done = Command::new("sh").args(["-c", &script]).current_dir(place.disk.mount()).status();
    assert!(done.expect("sh runs").success());
    for name in ["dynamic.out", "static.out"] {
        let text = std::fs::read_to_string(format!("{}/{name}", place.disk.mount()));
        CrowdCounts::of(&text.expect("counted")).assert_unharmed();
    }
}
