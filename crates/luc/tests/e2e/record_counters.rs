//! `luc record --counters` end to end: counts of each thread, beside what the kernel counts for it. Needs root and
//! BTF; skipped, with the reason, where they are missing.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{LUC, refusal, rows, stderr, stdout};
use luc_events::event_kinds::CounterMode;
use luc_events::store::TraceReader;
use luc_events::tables::{HardwareCount, LostEvents};

/// Maximum number of faults of a thread after it has printed its own count: it ends.
const LATER_FAULTS: u64 = 32;

fn is_possible() -> bool {
    let possible =
        rustix::process::geteuid().is_root() && Path::new("/sys/kernel/btf/vmlinux").exists();
    if !possible {
        luc_testkit::skipped!("needs root and BTF");
    }
    possible
}

fn compiled(folder: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/page_faults.c");
    let program = folder.join("faults");
    let status = Command::new("cc")
        .args(["-Wall", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(status.expect("cc runs").success());
    program.to_str().expect("plain").to_owned()
}

/// Runs `luc record` with these counters; what it said, and the trace.
fn record(folder: &Path, counters: &str, command: &[&str]) -> (Output, TraceReader) {
    let out = folder.join(format!("trace{}", counters.len()));
    let output = Command::new(LUC)
        .args(["record", "--out"])
        .arg(&out)
        .arg(counters)
        .arg("--")
        .args(command)
        .output()
        .expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let reader = TraceReader::open(&out).expect("a trace");
    assert_eq!(rows::<LostEvents>(&reader), []);
    (output, reader)
}

/// Rows of an event by thread, in the order of time.
fn by_thread(
    reader: &TraceReader,
    event: &str,
    mode: CounterMode,
) -> BTreeMap<u32, Vec<HardwareCount>> {
    let mut all: BTreeMap<u32, Vec<HardwareCount>> = BTreeMap::new();
    for row in rows::<HardwareCount>(reader) {
        if (row.event.as_str(), row.mode) == (event, mode) {
            all.entry(row.thread.0).or_default().push(row);
        }
    }
    all
}

#[test]
fn each_thread_s_page_faults_are_those_that_the_kernel_counts() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled(folder.path());
    let counters = "--counters={page-faults,task-clock},page-faults:u";
    let (output, reader) = record(folder.path(), counters, &[&program]);
    let counted = by_thread(&reader, "page-faults", CounterMode::Total);
    let of_user = by_thread(&reader, "page-faults", CounterMode::User);
    let said = stdout(&output);
    let said: Vec<(u32, u64)> = said
        .lines()
        .filter_map(|line| {
            let (thread, faults) = line.split_once(' ')?;
            Some((thread.parse().ok()?, faults.parse().ok()?))
        })
        .collect();
    assert_eq!(said.len(), 4, "{said:?}");
    for (thread, faults) in said {
        let rows = &counted[&thread];
        let sum: u64 = rows.iter().map(|row| row.value).sum();
        assert!(
            (faults..=faults + LATER_FAULTS).contains(&sum),
            "thread {thread}: {sum}, and the kernel says {faults}"
        );
        // The pages are touched by the program itself.
        let of_user: u64 = of_user[&thread].iter().map(|row| row.value).sum();
        assert!(of_user > faults * 9 / 10 && of_user <= sum, "{of_user} of {sum}");
        for row in rows {
            assert!(row.since_ns < row.at_ns, "{row:?}");
            // The kernel's own events need no counter.
            assert_eq!(row.enabled_ns, row.running_ns, "{row:?}");
        }
        for pair in rows.windows(2) {
            assert_eq!(pair[0].at_ns, pair[1].since_ns, "no gap and no overlap");
        }
    }
    let most = counted.values().map(Vec::len).max();
    assert!(most >= Some(5), "one that stays on its processor has rows, too: {most:?}");
}

/// The time stamp counter runs at one rate, whoever is on the processor.
#[test]
fn a_counter_of_the_processor_counts_while_its_thread_runs() {
    if !is_possible() {
        return;
    }
    if !Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists() {
        luc_testkit::skipped!("no PMU msr here");
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled(folder.path());
    let (_, reader) = record(folder.path(), "--counters=msr/tsc/", &[&program]);
    let all = rows::<HardwareCount>(&reader);
    let rate = |rows: &mut dyn Iterator<Item = &HardwareCount>| {
        let (mut value, mut enabled_ns) = (0.0, 0.0);
        for row in rows {
            value += row.value as f64;
            enabled_ns += row.enabled_ns as f64;
        }
        value / enabled_ns
    };
    let of_all = rate(&mut all.iter());
    assert!((0.1..20.0).contains(&of_all), "{of_all} per ns");
    let by_thread = by_thread(&reader, "msr/tsc/", CounterMode::Total);
    assert!(by_thread.len() >= 5, "the threads and the first one");
    for (thread, rows) in by_thread {
        let on_ns: u64 = rows.iter().map(|row| row.enabled_ns).sum();
        let own = rate(&mut rows.iter());
        // Of a brief stay the time to read it is a part.
        if on_ns > 1_000_000 {
            assert!((own / of_all - 1.0).abs() < 0.02, "thread {thread}: {own}, all {of_all}");
        }
    }
}

#[test]
fn without_hardware_counters_the_recording_goes_on() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let (output, reader) = record(folder.path(), "--counters", &["true"]);
    let counted = rows::<HardwareCount>(&reader).len();
    if Path::new("/sys/bus/event_source/devices/cpu").exists() {
        assert!(counted > 0, "{}", stderr(&output));
        return;
    }
    assert_eq!(counted, 0);
    let said = stderr(&output);
    let line = "cycles:u, instructions:u, cycles:k, instructions:k cannot be counted: no hardware counters";
    assert!(said.contains(line), "{said}");
}

#[test]
fn an_event_that_nobody_knows_is_refused() {
    let refused = |counters: &str| {
        let words = ["record", "--out", "/nonexistent/trace", counters, "--", "true"];
        refusal(&Command::new(LUC).args(words).output().expect("luc runs"))
    };
    let line = refused("--counters=cycels");
    assert!(line.contains("no event `cycels`") && line.contains("perf list"), "{line}");
    let line = refused("--counters={cycles");
    assert!(line.contains("a { without }"), "{line}");
    let line = refused("--counters=page-faults,,cs");
    assert!(line.contains("without a name"), "{line}");
}
