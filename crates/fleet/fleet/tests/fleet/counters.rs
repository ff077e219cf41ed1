//! `luc-fleet counters` on files as perf stat writes them, and on traces.

use std::fs;
use std::path::PathBuf;

use luc_counters::cycle_stack::ProcessorFormulas;
use luc_counters::perf_stat_file::{PerfOutputFormat, write};
use luc_counters::{CountMode, CounterReading, CounterRecording, HardwareEvent};
use luc_events::event_kinds::CounterMode;
use luc_events::store::TraceWriter;
use luc_events::tables::{HardwareCount, ThreadInfo, TraceDescription};
use luc_events::{Pid, Tgid};
use serde_json::Value;
use tempfile::TempDir;

use crate::run_luc_fleet::{fleet, json_of, refusal, text, text_of};

fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("written");
    path
}

/// Zen 4's events in user space for 4 s, each counted half of the time. Each 100 ms has 1000 cycles of 6 slots. A
/// quarter of the slots retires; the rest waits in the back end.
fn zen_4() -> CounterRecording {
    let names =
        ProcessorFormulas::named("amd-zen4").expect("a processor").events().expect("events");
    let events = names.iter().map(|name| HardwareEvent::new(name, CountMode::User));
    let mut recording = CounterRecording::new(events.collect());
    let count = |name: &String| match name.as_str() {
        "ls_not_halted_cyc" => 1000.0,
        "ex_ret_instr" => 500.0,
        "ex_ret_ops" | "de_src_op_disp.all" => 1500.0,
        "de_no_dispatch_per_slot.backend_stalls" => 4500.0,
        _ => 0.0,
    };
    let readings = names.iter().map(|name| CounterReading {
        value: count(name) / 2.0,
        enabled_ns: 100_000_000,
        running_ns: 50_000_000,
    });
    let readings: Vec<CounterReading> = readings.collect();
    for at in 1..=40 {
        recording.add(at * 100_000_000, &readings);
    }
    recording
}

#[test]
fn a_stack_of_a_file_in_either_form() {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, style) in [("a.csv", PerfOutputFormat::Csv), ("a.json", PerfOutputFormat::Json)] {
        let path = file(&folder, name, &write(&zen_4(), style));
        let path = text(&path);
        let report = json_of(fleet(&["counters", path, "--json", "--every", "1s"]));
        assert_eq!(report["processor"], "amd-zen4");
        assert_eq!(report["readings"], 40);
        let stack = &report["stacks"][0];
        assert_eq!((&stack["mode"], &stack["closure"]), (&"user".into(), &"closes".into()));
        let value = |figure: &Value| figure["value"].as_f64().expect("a figure");
        assert!((value(&stack["cpi"]) - 2.0).abs() < 1e-6);
        assert!((value(&stack["completion"]) - 0.25).abs() < 1e-6);
        assert_eq!(report["series"].as_array().map(Vec::len), Some(4));
        assert_eq!(report["series"][0]["end_ns"], 1_000_000_000);

        let shown = text_of(fleet(&["counters", path, "--every", "1s"]));
        for words in [
            "completion",
            "25.0 +- 0.0",
            "closes",
            "50.0 %",
            "Over time, user",
            "within data cache",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }
}

#[test]
fn a_machine_without_counters_is_said_to_be_one() {
    let folder = tempfile::tempdir().expect("a directory");
    // As perf 6.1 writes it in a virtual machine.
    let lines = "# started on Wed Nov 25 21:31:08 2026\n\n     \
                 0.100137159,0.77,msec,task-clock,770770,100.00,0.008,CPUs utilized\n     \
                 0.100137159,<not supported>,,cycles,0,100.00,,\n     \
                 0.200410754,<not counted>,msec,task-clock,0,100.00,,\n     \
                 0.200410754,<not supported>,,cycles,0,100.00,,\n";
    let path = file(&folder, "vm.csv", lines);
    let shown = text_of(fleet(&["counters", text(&path)]));
    for words in
        ["no hardware counters (virtual machine)", "not supported there: cycles", "0.7700 msec"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn what_perf_shall_count_is_listed() {
    let events = text_of(fleet(&["counters", "--events", "intel-icelake"]));
    assert!(events.starts_with("{slots:u,topdown-retiring:u,"), "{events}");
    assert!(events.contains(",instructions:k,"), "{events}");
    assert_eq!(events.lines().count(), 1);
}

#[test]
fn what_cannot_be_read_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let nowhere = folder.path().join("nothing");
    let line = refusal(&["counters", text(&nowhere)]);
    assert!(line.contains("nothing") && line.contains("perf stat -I 100"), "{line}");
    for (content, words) in [
        ("1.0,5,,cycles,1000,100.00,,\nnonsense\n", "line 2: it has no value"),
        ("# started\n", "it has no counters"),
        (
            "2.0,5,,cycles,1000,100.00,,\n1.0,5,,cycles,1000,100.00,,\n",
            "line 2: its time is before",
        ),
        ("{\"event\" : 5}\n", "line 1:"),
    ] {
        let path = file(&folder, "bad.csv", content);
        let line = refusal(&["counters", text(&path)]);
        assert!(line.contains("bad.csv") && line.contains(words), "{line}");
    }
    let good = file(&folder, "good.csv", "1.0,5,,cycles,1000,100.00,,\n");
    let good = text(&good);
    let shown = text_of(fleet(&["counters", good, "--processor", "amd-zen4"]));
    assert!(shown.contains("the cycles of amd-zen4 were not counted"), "{shown}");
    let line = refusal(&["counters", good, "--processor", "abacus"]);
    assert!(line.contains("abacus") && line.contains("arm-neoverse-v1"), "{line}");
    assert!(refusal(&["counters"]).contains("FILE"));
}

/// A trace of 4 s of two processes that run alternately, 50 ms each: `app` with two threads needs 2 cycles for an
/// instruction, `other` 4. Cycles have a counter for half of the time.
fn trace(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("counted");
    let start_ns = 1_000_000_000;
    let begin =
        TraceDescription { start_ns, host: "web".to_owned(), ..TraceDescription::default() };
    let mut writer = TraceWriter::create(&path, begin.clone()).expect("created");
    for (process, name) in [(11, "app"), (21, "other\u{1b}[2J")] {
        let task = ThreadInfo {
            at_ns: start_ns,
            thread: Pid(process),
            process: Tgid(process),
            comm: name.to_owned(),
            ..ThreadInfo::default()
        };
        writer.add(task).expect("added");
    }
    for turn in 0..80 {
        let (process, thread, cycles) = match turn % 4 {
            0 => (11, 11, 2_000),
            2 => (11, 12, 2_000),
            _ => (21, 21, 4_000),
        };
        let since_ns = start_ns + turn * 50_000_000;
        for (event, value, running_ns) in
            [("cycles", cycles / 2, 25_000_000), ("instructions", 1_000, 50_000_000)]
        {
            let row = HardwareCount {
                at_ns: since_ns + 50_000_000,
                since_ns,
                thread: Pid(thread),
                process: Tgid(process),
                event: event.to_owned(),
                mode: CounterMode::User,
                value,
                enabled_ns: 50_000_000,
                running_ns,
                ..HardwareCount::default()
            };
            writer.add(row).expect("added");
        }
    }
    let end = TraceDescription { end_ns: start_ns + 4_000_000_000, ..begin };
    writer.finish(end).expect("finished");
    path
}

#[test]
fn a_trace_has_counters_of_each_process() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = trace(&folder);
    let path = text(&path);
    let report = json_of(fleet(&["counters", path, "--json"]));
    let total = |report: &Value, place: usize| report["totals"][place]["value"].as_f64();
    assert_eq!(report["totals"][0]["event"], "cycles:u");
    assert_eq!(total(&report, 0), Some(80.0 * 3_000.0));
    assert_eq!(total(&report, 1), Some(80.0 * 1_000.0));
    assert_eq!(report["totals"][0]["running_share"], 0.5);
    let processes = report["processes"].as_array().expect("processes");
    let of = |place: usize| {
        let one = &processes[place];
        let cpi = one["cpi"][0]["value"].as_f64().expect("both were counted");
        (one["process"].clone(), one["threads"].clone(), cpi)
    };
    assert_eq!(processes.len(), 2);
    assert_eq!(of(0), (11.into(), 2.into(), 2.0));
    assert_eq!(of(1), (21.into(), 1.into(), 4.0));
    assert_eq!(processes[0]["on_processor_ns"], 2_000_000_000_u64);

    let shown = text_of(fleet(&["counters", path]));
    for words in ["By process", "CPI user", "app 11", "2 s", "50.0 %"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");

    let one = json_of(fleet(&["counters", path, "--process", "app", "--json"]));
    assert_eq!(total(&one, 0), Some(40.0 * 2_000.0));
    let by_id = json_of(fleet(&["counters", path, "--process", "21", "--json"]));
    assert_eq!(total(&by_id, 0), Some(40.0 * 4_000.0));
}

#[test]
fn a_trace_without_what_is_asked_for_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = trace(&folder);
    let path = text(&path);
    let line = refusal(&["counters", path, "--process", "nobody"]);
    assert!(line.contains("no process nobody"), "{line}");
    let none = folder.path().join("none");
    let writer = TraceWriter::create(&none, TraceDescription::default()).expect("created");
    writer.finish(TraceDescription::default()).expect("finished");
    let line = refusal(&["counters", text(&none)]);
    assert!(line.contains("luc record --counters"), "{line}");
    let file = file(&folder, "good.csv", "1.0,5,,cycles,1000,100.00,,\n");
    let file = text(&file);
    let line = refusal(&["counters", file, "--process", "app"]);
    assert!(line.contains("does not tell processes apart"), "{line}");
}
