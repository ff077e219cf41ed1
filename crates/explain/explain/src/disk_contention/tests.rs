//! Tasks on disks whose times are known.

use luc_events::event_kinds::{RequestKind, WaitState};
use luc_events::tables::{
    BlockRequest, MountedFileSystem, OffCpuWait, ThreadInfo, TraceDescription,
};
use luc_events::{Cgroup, Dev, Pid, Tgid, TraceEvent, WaitCause};

use super::UndisturbedBasis;
use super::bounded_sample::BoundedSample;
use crate::analysis::Analysis;
use crate::findings::{FindingKind, RemedyKind};
use crate::report::TraceReport;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const DISK: Dev = Dev(8 << 20);
const PARTITION: Dev = Dev(8 << 20 | 1);
const KIB: u64 = 1 << 10;

fn task(process: u32, parent: u32, comm: &str) -> TraceEvent {
    TraceEvent::from(ThreadInfo {
        at_ns: 1,
        thread: Pid(process),
        process: Tgid(process),
        parent: Tgid(parent),
        comm: comm.to_owned(),
        cgroup: Cgroup(u64::from(process) * 100),
        ..ThreadInfo::default()
    })
}

/// A disk that serves one request after the other, and an analysis of what it does.
struct Model {
    analysis: Analysis<'static>,
    now_ns: u64,
    last: u32,
    /// Next sector of each process.
    sectors: Vec<u64>,
}

impl Model {
    fn new() -> Self {
        let mut analysis = Analysis::new(TraceDescription {
            end_ns: 1_000_000 * MS,
            ..TraceDescription::default()
        });
        analysis.add(TraceEvent::from(MountedFileSystem {
            dev: PARTITION,
            disk: DISK,
            mount_point: "/srv".to_owned(),
            ..MountedFileSystem::default()
        }));
        for (process, comm) in [(10, "backup"), (11, "scan"), (12, "index")] {
            analysis.add(task(process, 1, comm));
        }
        analysis.add(task(20, 2, "jbd2/sda1-8"));
        Self {
            analysis,
            now_ns: 1_000 * MS,
            last: 0,
            sectors: (0..100).map(|process| process << 30).collect(),
        }
    }

    /// A request of `process` that has been queued for `queued_ns` and takes `service_ns`.
    fn request(&mut self, process: u32, (bytes, queued_ns, service_ns): (u64, u64, u64)) {
        let issue_ns = self.now_ns;
        self.now_ns += service_ns;
        self.last = process;
        let sector = &mut self.sectors[process as usize];
        let row = BlockRequest {
            dev: DISK,
            sector: *sector,
            bytes,
            kind: RequestKind::Read,
            insert_ns: issue_ns - queued_ns,
            issue_ns,
            complete_ns: self.now_ns,
            issuer: Pid(process),
            issuer_process: Tgid(process),
            ..BlockRequest::default()
        };
        *sector += bytes / 512;
        self.analysis.add(TraceEvent::from(row));
    }

    /// A piece of a stream, read on a disk with an arm: 1.2 ms, and 12 ms more after somebody else's.
    fn read_on(&mut self, process: u32) {
        let (queued_ns, seek_ns) =
            if self.last == process { (0, 0) } else { (13_200 * US, 12 * MS) };
        self.request(process, (128 * KIB, queued_ns, seek_ns + 1_200 * US));
    }

    /// Reads a block at random: 8 ms after any request.
    fn read_at_random(&mut self, process: u32) {
        self.sectors[process as usize] += 1_000;
        let jitter_ns = self.now_ns % (500 * US);
        self.request(process, (4 * KIB, 8 * MS, 8 * MS + jitter_ns));
    }

    fn report(self) -> TraceReport {
        self.analysis.finish()
    }
}

fn finds(report: &TraceReport) -> bool {
    let mut kinds = report.findings.iter().map(|finding| finding.kind);
    kinds.any(|kind| kind == FindingKind::DiskContention)
}

/// Two streams that are served in turn, but for `alone` requests of each before.
fn two_streams(alone: usize) -> Model {
    let mut model = Model::new();
    for process in [10, 11] {
        (0..alone).for_each(|_| model.read_on(process));
    }
    model.now_ns += 500 * MS;
    for _ in 0..200 {
        model.read_on(10);
        model.read_on(11);
    }
    model
}

#[test]
fn streams_in_turn_ruin_each_others_disk() {
    let report = two_streams(20).report();
    assert!(finds(&report), "{:?}", report.findings);
    let found = report.disks[0].contention.as_ref().expect("shared");
    // 13.2 ms each against 1.2.
    assert!((found.gain - 10.0).abs() < 0.5, "{}", found.gain);
    assert!((found.efficiency - 1.2 / 13.2).abs() < 0.01, "{found:?}");
    assert_eq!(found.switch_cost_ns / (100 * US), 120);
    let pair = &found.slowed[0];
    assert!(pair.switches.abs_diff(200) <= 1, "{pair:?}");
    // While one is served the other waits.
    assert!(pair.waited_ns > 2_000 * MS, "{pair:?}");
    let mean = &found.tasks[0];
    assert!(mean.await_ns > mean.service_ns + 9 * MS, "{mean:?}");
    assert_eq!(mean.actor.cgroup, Cgroup(u64::from(mean.actor.process.0) * 100));
    let mut findings = report.findings.iter();
    let finding =
        findings.find(|finding| finding.kind == FindingKind::DiskContention).expect("found");
    assert!(finding.sentence.contains("(/srv)"), "{}", finding.sentence);
    assert!(finding.victim.is_some() && finding.victim != finding.culprit);
    assert!((0.0..=1.0).contains(&finding.share), "{}", finding.share);
}

#[test]
fn turns_are_proposed_and_read_ahead_where_it_is_enough() {
    let report = two_streams(20).report();
    let of = |kind| {
        let remedy = report.remedies.iter().find(|remedy| remedy.kind == kind);
        remedy.and_then(|remedy| remedy.predicted_gain).expect("proposed")
    };
    // 4 MiB take 38 ms, a switch 12: three quarters of what turns reach.
    let (turns, read_ahead) = (1.0 + of(RemedyKind::Turns), 1.0 + of(RemedyKind::ReadAhead));
    assert!((read_ahead / turns - 0.76).abs() < 0.02, "{turns} {read_ahead}");
}

#[test]
fn one_stream_is_no_contention() {
    let mut model = Model::new();
    (0..1_000).for_each(|_| model.read_on(10));
    let report = model.report();
    assert!(!finds(&report) && report.disks[0].contention.is_none());
}

#[test]
fn one_task_and_its_journal_are_no_contention() {
    let mut model = Model::new();
    (0..20).for_each(|_| model.read_on(10));
    for _ in 0..300 {
        model.read_on(10);
        model.read_on(20);
    }
    assert!(!finds(&model.report()));
}

#[test]
fn processes_without_a_name_are_no_tasks() {
    let mut model = Model::new();
    for _ in 0..300 {
        model.read_on(30);
        model.read_on(31);
    }
    assert!(!finds(&model.report()));
}

#[test]
fn random_readers_gain_nothing() {
    let mut model = Model::new();
    for round in 0..900_u32 {
        // By chance twice in a row.
        let process = if round % 7 < 2 { 10 } else { 10 + round % 2 };
        model.read_at_random(process);
    }
    let report = model.report();
    assert!(!finds(&report), "{:?}", report.findings);
    let found = report.disks[0].contention.as_ref().expect("shared");
    assert!(found.together_ns > 1_000 * MS && found.gain < 0.05, "{found:?}");
    assert_eq!(found.read_ahead_gain, None);
}

#[test]
fn a_disk_that_serves_several_at_once_loses_nothing() {
    let mut model = Model::new();
    for process in [10, 11] {
        (0..50).for_each(|_| model.request(process, (128 * KIB, 0, 60 * US)));
    }
    // Twice the queue, half the time of each.
    for _ in 0..20_000 {
        model.request(10, (128 * KIB, 60 * US, 30 * US));
        model.request(11, (128 * KIB, 60 * US, 30 * US));
    }
    let report = model.report();
    assert!(!finds(&report), "{:?}", report.findings);
    let found = report.disks[0].contention.as_ref().expect("shared");
    assert!(found.switches > 10_000, "{found:?}");
    assert_eq!(found.gain, 0.0);
}

#[test]
fn tasks_one_after_the_other_are_no_contention() {
    let mut model = Model::new();
    for process in [10, 11, 12, 10] {
        (0..500).for_each(|_| model.read_on(process));
    }
    assert!(!finds(&model.report()));
}

#[test]
fn an_idle_disk_is_no_contention() {
    let mut model = Model::new();
    for process in [10, 11] {
        (0..20).for_each(|_| model.read_on(process));
    }
    for _ in 0..200 {
        model.read_on(10);
        model.now_ns += 20 * MS;
        model.read_on(11);
        model.now_ns += 20 * MS;
    }
    assert!(!finds(&model.report()));
}

/// Streams of one request at a time past the page cache: of `own` requests that come after one of their own task
/// every third is prompt. The others have lost a turn.
fn direct_streams(own: u32) -> Model {
    let mut model = Model::new();
    for round in 0..400 {
        model.request(10, (128 * KIB, 9 * MS, 7 * MS));
        let late_ns = if round % 3 == 0 { 1_200 * US } else { 9_500 * US };
        if round * own / 400 != (round + 1) * own / 400 {
            model.request(10, (128 * KIB, 0, late_ns));
        }
        model.request(11, (128 * KIB, 9 * MS, (5 + u64::from(round % 3)) * MS));
    }
    model
}

#[test]
fn requests_that_lost_a_turn_do_not_tell_what_a_disk_can_do() {
    let report = direct_streams(30).report();
    let found = report.disks[0].contention.as_ref().expect("shared");
    // 1.2 ms against 6.5; their mean is 6.7.
    assert!(found.gain > 3.0, "{found:?}");
    assert!((found.efficiency - 1.2 / 6.5).abs() < 0.05, "{found:?}");
    assert_eq!(found.basis, UndisturbedBasis::Seen);
    assert!(finds(&report));
}

#[test]
fn an_arm_is_assumed_where_each_request_comes_after_anothers() {
    let report = direct_streams(0).report();
    let found = report.disks[0].contention.as_ref().expect("shared");
    assert_eq!(found.basis, UndisturbedBasis::Assumed);
    // 128 KiB at 50 MB/s take 2.6 ms.
    assert!((found.efficiency - 2.6 / 6.5).abs() < 0.05, "{found:?}");
    let mut findings = report.findings.iter();
    let finding = findings.find(|finding| finding.kind == FindingKind::DiskContention);
    let sentence = &finding.expect("found").sentence;
    assert!(sentence.contains("if it has an arm"), "{sentence}");
    let alone = found.tasks.iter().map(|task| task.undisturbed_bytes_per_s);
    assert!(alone.flatten().next().is_none());
}

/// Checks that no gain is reported or found.
fn nothing_is_known_of(model: Model) {
    let report = model.report();
    let found = report.disks[0].contention.as_ref().expect("shared");
    assert_eq!(found.basis, UndisturbedBasis::Unknown);
    assert!(found.gain < 0.05, "{found:?}");
    assert!(!finds(&report));
}

#[test]
fn no_arm_is_assumed_where_some_requests_are_quick() {
    let mut model = Model::new();
    for round in 0..400 {
        // Two at once, 9 ms each.
        model.request(10, (128 * KIB, 8 * MS, 1_500 * US));
        model.request(11, (128 * KIB, 8 * MS, (7 + round % 2) * MS));
    }
    nothing_is_known_of(model);
}

#[test]
fn no_arm_is_assumed_where_all_requests_take_the_same() {
    let mut model = Model::new();
    for _ in 0..400 {
        model.request(10, (128 * KIB, 6 * MS, 6 * MS));
        model.request(11, (128 * KIB, 6 * MS, 6_100 * US));
    }
    nothing_is_known_of(model);
}

#[test]
fn chance_is_no_gain() {
    // Times that are spread exponentially, whoever was before.
    for seed in 1..50 {
        let mut random = seed;
        let mut next = || {
            random = u64::wrapping_mul(random, 6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let mut model = Model::new();
        for _ in 0..4_000 {
            let service_ns = (-(1.0 - next()).ln() * 400_000.0) as u64 + 1;
            let process = 10 + u32::from(next() < 0.5);
            model.request(process, (128 * KIB, 0, service_ns));
        }
        let report = model.report();
        let found = report.disks[0].contention.as_ref().expect("shared");
        assert!(found.gain < 0.1, "{seed}: {found:?}");
        assert!(!finds(&report), "{seed}");
    }
}

#[test]
fn a_sample_is_spread_over_all_requests() {
    let mut samples = BoundedSample::default();
    (0..10_000).for_each(|ns| samples.add(1, ns));
    assert!((32..=64).contains(&samples.len()), "{}", samples.len());
    let tenth = samples.fastest(10).expect("enough");
    assert!(tenth.abs_diff(1_000) < 300, "{tenth}");
    assert_eq!(samples.below(0).count, 0);
    assert_eq!(samples.below(10_000).count as usize, samples.len());
    let mut few = BoundedSample::default();
    (0..9).for_each(|ns| few.add(1, ns));
    assert_eq!(few.fastest(10), None);
}

#[test]
fn pauses_of_the_tasks_are_not_gained() {
    let run = |pause_ns: u64| {
        let mut model = Model::new();
        for process in [10, 11] {
            (0..20).for_each(|_| model.read_on(process));
        }
        model.now_ns += 500 * MS;
        for _ in 0..200 {
            for process in [10, 11] {
                // It is queued when the other's request and its own pause are over.
                let queued_ns = (13_200 * US).saturating_sub(pause_ns);
                model.request(process, (128 * KIB, queued_ns, 13_200 * US));
            }
        }
        let report = model.report();
        report.disks[0].contention.as_ref().expect("shared").gain
    };
    let (without, with) = (run(0), run(5 * MS));
    assert!(without > 9.0, "{without}");
    // 1.2 and 5 ms each one after the other.
    assert!((with - (13.2 / 6.2 - 1.0)).abs() < 0.1, "{with}");
}

#[test]
fn waits_for_a_place_in_the_queue_are_no_pauses() {
    let mut model = Model::new();
    for process in [10, 11] {
        (0..20).for_each(|_| model.read_on(process));
    }
    model.now_ns += 500 * MS;
    for _ in 0..200 {
        for process in [10, 11] {
            // It has waited since its last request, but is queued only when the other's is over.
            let wait = OffCpuWait {
                thread: Pid(process),
                process: Tgid(process),
                off_ns: model.now_ns - 13_150 * US,
                woken_ns: model.now_ns - 10 * US,
                on_ns: model.now_ns - 5 * US,
                state: WaitState::Uninterruptible,
                cause: WaitCause::Device,
                ..OffCpuWait::default()
            };
            model.analysis.add(TraceEvent::from(wait));
            model.request(process, (128 * KIB, 5 * US, 13_200 * US));
        }
    }
    let report = model.report();
    let found = report.disks[0].contention.as_ref().expect("shared");
    // 1.2 ms each, and 60 us that it did not wait.
    assert!((found.gain - 9.5).abs() < 0.2, "{found:?}");
}

#[test]
fn memory_is_bounded_however_many_processes_there_are() {
    let mut model = Model::new();
    model.sectors = vec![0; 5_000];
    for process in 100..5_000 {
        model.analysis.add(task(process, 1, "cc1"));
        model.read_at_random(process);
    }
    let report = model.report();
    let found = report.disks[0].contention.as_ref().expect("shared");
    assert!(found.tasks.len() <= 20 && found.slowed.len() <= 50);
    assert!(!finds(&report));
}
