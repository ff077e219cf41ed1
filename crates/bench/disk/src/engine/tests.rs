use super::*;
use crate::model::ModelSpec;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Data(Vec<u8>),
    Done(u32),
    Failed(BlockErrno),
}

impl RequestReply for Sender<Outcome> {
    fn data(self, bytes: &[u8]) {
        let _ = self.send(Outcome::Data(bytes.to_vec()));
    }
    fn done(self, len: u32) {
        let _ = self.send(Outcome::Done(len));
    }
    fn failed(self, errno: BlockErrno) {
        let _ = self.send(Outcome::Failed(errno));
    }
}

/// Returns a disk of 1 MiB; with its timer only if `timed`, so that without, late requests stay.
fn disk(flush_ns: u64, timed: bool) -> Arc<DiskEngine<Sender<Outcome>>> {
    let engine = DiskEngine::new(1 << 20, 1 << 20, PageKind::Ordinary).expect("memory and a timer");
    let spec = ModelSpec::Fixed { read_ns: 0, write_ns: 0, flush_ns };
    engine.begin(spec.build(1 << 20));
    if timed {
        let engine = Arc::clone(&engine);
        std::thread::spawn(move || engine.run_timer());
    }
    engine
}

fn restore(engine: &DiskEngine<Sender<Outcome>>) -> bool {
    engine.restore(ModelSpec::free().build(1 << 20))
}

fn outcome(request: impl FnOnce(Sender<Outcome>)) -> Receiver<Outcome> {
    let (sender, receiver) = channel();
    request(sender);
    receiver
}

fn write(engine: &DiskEngine<Sender<Outcome>>, byte: u8) {
    let written = outcome(|reply| engine.write(4096, &[byte; 512], reply));
    assert_eq!(written.recv(), Ok(Outcome::Done(512)));
}

fn read(engine: &DiskEngine<Sender<Outcome>>) -> Outcome {
    outcome(|reply| engine.read(4096, 512, reply)).recv().expect("an outcome")
}

#[test]
fn late_requests_complete_from_the_timer_thread() {
    let engine = disk(3_000_000, true);
    write(&engine, 1);
    let flushed = outcome(|reply| engine.flush(reply));
    let timeout = Duration::from_secs(10);
    assert_eq!(flushed.recv_timeout(timeout), Ok(Outcome::Done(0)));
    assert_eq!(engine.cut(None), Some(CutReport::default()));
    assert_eq!(read(&engine), Outcome::Failed(BlockErrno::EIO));
    assert!(restore(&engine));
    assert_eq!(read(&engine), Outcome::Data(vec![1; 512]));
}

#[test]
fn a_flush_that_the_cut_overtakes_makes_nothing_durable() {
    let engine = disk(3_600_000_000_000, false);
    write(&engine, 1);
    let flushed = outcome(|reply| engine.flush(reply));
    let report = engine.cut(None).expect("was not cut");
    assert_eq!(report.lost_sectors, 1);
    assert_eq!(flushed.recv(), Ok(Outcome::Failed(BlockErrno::EIO)));
    assert_eq!(engine.cut(None), None);
    assert!(restore(&engine));
    assert!(!restore(&engine));
    assert_eq!(read(&engine), Outcome::Data(vec![0; 512]));
}

#[test]
fn a_write_during_a_flush_is_not_part_of_it() {
    let engine = disk(3_600_000_000_000, false);
    write(&engine, 1);
    let flushed = outcome(|reply| engine.flush(reply));
    let late = outcome(|reply| engine.write(4096, &[2; 512], reply));
    engine.hurry();
    assert_eq!(flushed.recv(), Ok(Outcome::Done(0)));
    assert_eq!(late.recv(), Ok(Outcome::Done(512)));
    engine.cut(None);
    assert!(restore(&engine));
    assert_eq!(read(&engine), Outcome::Data(vec![1; 512]));
}

#[test]
fn requests_beyond_the_end_fail() {
    let engine = disk(0, false);
    let beyond = outcome(|reply| engine.write((1 << 20) - 1, &[0; 2], reply));
    assert_eq!(beyond.recv(), Ok(Outcome::Failed(BlockErrno::EIO)));
    let beyond = outcome(|reply| engine.discard(u64::MAX, u64::MAX, reply));
    assert_eq!(beyond.recv(), Ok(Outcome::Failed(BlockErrno::EIO)));
    assert_eq!(engine.stats().refused, 2);
}

#[test]
fn a_request_that_fails_changes_nothing() {
    let enodata: BlockErrno = "ENODATA".parse().expect("an errno");
    let engine = disk(0, false);
    write(&engine, 1);
    assert_eq!(engine.fault(), None);
    engine.fail(FaultSpec::writes(enodata));
    let failed = outcome(|reply| engine.write(4096, &[2; 512], reply));
    assert_eq!(failed.recv(), Ok(Outcome::Failed(enodata)));
    assert_eq!(read(&engine), Outcome::Data(vec![1; 512]));
    assert_eq!(engine.stats().failed, 1);
    assert_eq!(engine.stats().writes, 1);
    let status = engine.clear_fault().expect("a fault");
    assert_eq!((status.matched, status.failed), (1, 1));
    assert_eq!(engine.clear_fault(), None);
    write(&engine, 3);
    assert_eq!(read(&engine), Outcome::Data(vec![3; 512]));
}

#[test]
fn a_flush_that_fails_makes_nothing_durable() {
    let engine = disk(0, false);
    write(&engine, 1);
    engine.fail(FaultSpec {
        on: vec![crate::FaultKind::Flush],
        ..FaultSpec::writes(BlockErrno::EIO)
    });
    let failed = outcome(|reply| engine.flush(reply));
    assert_eq!(failed.recv(), Ok(Outcome::Failed(BlockErrno::EIO)));
    assert_eq!(engine.cut(None).map(|report| report.lost_sectors), Some(1));
    assert!(restore(&engine));
    assert_eq!(read(&engine), Outcome::Data(vec![0; 512]));
}
