//! For any trace the page is well formed and bounded, and no name in it is markup.

use luc_events::event_kinds::{SyncKind, WaitState};
use luc_events::tables::{FsyncCall, JournalCommit, OffCpuWait};
use luc_events::{Dev, Pid, Tgid, TraceEvent, Transaction, WaitCause};
use luc_testkit::page::check;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::random_traces::{events, exported};

/// Returns the data of the script.
fn island(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"timelines\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

proptest! {
    #[test]
    fn any_trace_gives_a_good_page(events in events()) {
        let (page, _) = exported(events, HtmlWriter::new);
        let page = String::from_utf8(page).unwrap();
        check(&page);
        prop_assert!(!page.contains("<img") && !page.contains("<script>alert"));
        let steers = page.contains(['\u{1b}', '\u{0}', '\u{202e}']);
        prop_assert!(!steers);
        let timelines = island(&page);
        for period in timelines["file_systems"].as_array().unwrap().iter().flat_map(|of| of.as_array().unwrap()) {
            let length_us = period["length_us"].as_u64().unwrap();
            prop_assert!(length_us > 0);
            for call in period["lanes"].as_array().unwrap().iter().flat_map(|lane| lane["calls"].as_array().unwrap()) {
                let numbers: Vec<u64> = call.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
                prop_assert_eq!(numbers.len() % 2, 1);
            }
        }
    }
}

/// Many fsyncs of many threads, each waiting a while.
fn busy(syncs: u64, threads: u32) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    for number in 0..syncs {
        let dev = Dev::new(8, (number % 20) as u32);
        let end_ns = 10_000_000 + number * 100_000;
        let transaction = Transaction((number / 20) as u32 + 4_000_000_000);
        events.push(TraceEvent::from(JournalCommit {
            dev,
            transaction,
            start_ns: end_ns - 90_000,
            locking_ns: end_ns - 90_000,
            flushing_ns: end_ns - 80_000,
            logging_ns: end_ns - 70_000,
            end_ns,
            ..JournalCommit::default()
        }));
        let thread = (number % u64::from(threads)) as u32 + 1_000_000;
        for (off_ns, on_ns) in [(94_000, 92_000), (91_000, 30_000), (20_000, 5_000)] {
            events.push(TraceEvent::from(OffCpuWait {
                thread: Pid(thread),
                process: Tgid(thread),
                off_ns: end_ns - off_ns,
                woken_ns: end_ns - on_ns,
                on_ns: end_ns - on_ns + 1_000,
                state: WaitState::Uninterruptible,
                cause: WaitCause::CommitWait,
                ..OffCpuWait::default()
            }));
        }
        events.push(TraceEvent::from(FsyncCall {
            thread: Pid(thread),
            process: Tgid(thread),
            dev,
            kind: SyncKind::SyncFileRange,
            enter_ns: end_ns - 95_000,
            exit_ns: end_ns + 1_000,
            wanted_enter: transaction,
            wanted_exit: transaction,
            ..FsyncCall::default()
        }));
    }
    events
}

#[test]
fn a_page_is_bounded_for_a_long_trace() {
    let (page, _) = exported(busy(200_000, 500), HtmlWriter::new);
    assert!((300_000..3_000_000).contains(&page.len()), "{}", page.len());
    let page = String::from_utf8(page).unwrap();
    check(&page);
    assert!(page.contains("a typical period"), "it says that details are of a part only");
}

#[test]
fn an_empty_report_is_a_page() {
    let (page, _) = exported(Vec::new(), HtmlWriter::new);
    let page = String::from_utf8(page).unwrap();
    check(&page);
    assert!(page.contains("no call on a file system is in the trace"));
}
