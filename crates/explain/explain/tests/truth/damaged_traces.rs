//! Traces on disk, whole and damaged.

use std::fs;

use luc_events::store::{TraceReader, TraceWriter};
use luc_events::{Dev, Transaction};
use luc_explain::{
    AnalysisObserver, CallTimePart, ExplainedCommit, ExplainedSync, explain, explain_with,
};
use luc_testkit::json::difference;
use serde_json::Value;

use super::trace_simulation::{JournalParameters, SimulatedOp, TraceSimulation};
use super::{END_NS, explain_events, program};

const DEV: Dev = Dev(8 << 20 | 1);

#[derive(Default)]
struct Sums {
    commits: Vec<Transaction>,
    syncs: u64,
    predecessor_ns: u64,
}

impl AnalysisObserver for Sums {
    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        self.commits.push(commit.row.transaction);
        let bytes: u64 = commit.bytes.iter().map(|&(_, _, bytes)| bytes).sum();
        assert!(bytes > 0 && commit.data.is_empty(), "{commit:?}");
    }

    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        let time_ns = sync.row.exit_ns - sync.row.enter_ns;
        assert_eq!(sync.parts.sum(), time_ns);
        assert_eq!(sync.pieces.iter().map(|&(_, ns)| ns).sum::<u64>(), time_ns);
        assert!(sync.own.is_some_and(|own| own.transaction == sync.row.wanted_exit));
        assert!(sync.waited.last().is_some_and(|last| last.0 == sync.row.wanted_exit));
        assert!(self.commits.contains(&sync.row.wanted_exit));
        let shared: u64 = sync.culprits.iter().map(|&(_, _, ns)| ns).sum();
        let waited: u64 = sync.waited.iter().map(|&(_, ns)| ns).sum();
        assert!(shared <= waited && waited - shared < 10, "{shared} {waited}");
        self.syncs += 1;
        self.predecessor_ns += sync.parts.get(CallTimePart::Predecessor);
    }
}

fn value(report: &luc_explain::TraceReport) -> Value {
    serde_json::to_value(report).unwrap()
}

#[test]
fn a_stored_trace_is_explained_alike() {
    let ops = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 500_000 }];
    let (events, truth) =
        TraceSimulation::new(JournalParameters::plain(DEV), &[program(100, 6, &ops)], None)
            .play(END_NS);
    let directory = tempfile::tempdir().unwrap();
    let mut writer =
        TraceWriter::create(directory.path(), TraceSimulation::description(0)).unwrap();
    for (index, event) in events.iter().enumerate() {
        writer.add(event.clone()).unwrap();
        if index % 5_000 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish(TraceSimulation::description(END_NS)).unwrap();

    let reader = TraceReader::open(directory.path()).unwrap();
    let mut sums = Sums::default();
    let report = explain_with(&reader, &mut sums).unwrap();
    let direct = explain_events(events);
    let (stored, direct) = (value(&report), value(&direct));
    assert_eq!(difference(&stored, &direct), None);
    assert_eq!(sums.syncs, truth.syncs);
    assert_eq!(
        sums.predecessor_ns,
        report.file_systems[0].syncs.parts.get(CallTimePart::Predecessor)
    );

    let file = directory.path().join("wait-000001-000001.parquet");
    let file = if file.exists() {
        file
    } else {
        let entries = fs::read_dir(directory.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.to_string_lossy().contains("/wait-")).unwrap()
    };
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, bytes).unwrap();
    let error = explain(&reader).unwrap_err().to_string();
    assert!(error.contains("wait-") && error.contains("offset"), "{error}");
}
