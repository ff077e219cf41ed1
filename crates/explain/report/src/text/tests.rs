use luc_events::Tgid;
use luc_explain::{
    Actor, FileSystemReport, Finding, FindingKind, LatencyDistribution, SyncReport, TraceReport,
};

use super::ReportText;

fn shown(report: &TraceReport, colours: bool) -> String {
    ReportText { report, colours }.to_string()
}

fn report() -> TraceReport {
    let dev = luc_events::Dev::new(7, 0);
    TraceReport {
        findings: vec![Finding {
            kind: FindingKind::SynchronizationBound,
            sentence: "fsyncs wait for commits that do not serve them".to_owned(),
            dev: Some(dev),
            cost_ns: 2_500_000_000,
            share: 0.46,
            victim: Some(Actor {
                process: Tgid(4711),
                comm: "im\x1b[31map".to_owned(),
                ..Actor::default()
            }),
            culprit: None,
            evidence: Vec::new(),
        }],
        file_systems: vec![FileSystemReport {
            dev,
            kind: "ext4".to_owned(),
            mount_point: "/srv/mail".to_owned(),
            journal_bytes: 64 << 20,
            syncs: SyncReport {
                latency: LatencyDistribution { count: 1, ..LatencyDistribution::default() },
                ..SyncReport::default()
            },
            ..FileSystemReport::default()
        }],
        ..TraceReport::default()
    }
}

#[test]
fn the_first_finding_comes_first_with_its_cost() {
    let text = shown(&report(), false);
    let finding = "  1. /srv/mail (7:0): fsyncs wait for commits that do not serve them\n     \
                   synchronization bound: 2.50 s of thread time, 46.0 % of the working time\n";
    assert!(text.contains(finding), "{text}");
    assert!(text.contains("/srv/mail (7:0), ext4, journal 64 MiB\n"), "{text}");
}

#[test]
fn names_cannot_steer_the_terminal_and_colours_are_asked_for() {
    assert!(!shown(&report(), false).contains('\x1b'));
    let coloured = shown(&report(), true);
    assert!(coloured.contains("\x1b[1mFindings"));
    assert!(!coloured.contains("\x1b[31m"));
}

#[test]
fn an_empty_trace_says_so() {
    let text = shown(&TraceReport::default(), false);
    assert!(text.contains("no call on a file system is in the trace"), "{text}");
}

#[test]
fn a_shared_disk_has_its_gaps_of_bandwidth_and_service_time() {
    let found = luc_explain::DiskContention {
        together_ns: 2_000_000_000,
        apart_ns: 500_000_000,
        gain: 3.0,
        efficiency: 0.25,
        tasks: vec![luc_explain::DiskTask {
            requests: 10,
            await_ns: 20_000_000,
            service_ns: 5_000_000,
            ..luc_explain::DiskTask::default()
        }],
        ..luc_explain::DiskContention::default()
    };
    let said = super::summary(&found);
    assert!(said.contains("efficiency 25.0 %"), "{said}");
    assert!(said.contains("75.0 % of a request's time is waiting for other requests"), "{said}");
    let of = |basis| luc_explain::DiskContention { basis, ..found.clone() };
    let assumed = super::summary(&of(luc_explain::UndisturbedBasis::Assumed));
    assert!(assumed.contains("efficiency 25.0 %"), "{assumed}");
    assert!(assumed.contains("50 MB/s"), "{assumed}");
    let unknown = super::summary(&luc_explain::DiskContention {
        gain: 0.0,
        efficiency: 1.0,
        ..of(luc_explain::UndisturbedBasis::Unknown)
    });
    assert!(unknown.contains("the trace does not tell"), "{unknown}");
    assert!(!unknown.contains("nothing is lost"), "{unknown}");
}
