//! Tests findings with troubles that are planted in rows.

use luc_events::event_kinds::{DataDirection, MessageDirection};
use luc_events::tables::{BlockRequest, FileData, FsyncCall, OffCpuWait, ThreadInfo};
use luc_events::{Dev, Inode, Pid, Tgid, WaitCause};
use luc_fleet::explain::{SlowRequestFinding, SlowRequestFindings};
use luc_fleet::text::ResultText;
use luc_fleet::{FleetExplanation, RecordedHost};

use crate::planted_hosts::{BEGIN_NS, TRUE_CLOCK, explained, host, message, talk};

/// Number of requests; one in ten is slow.
const REQUESTS: i64 = 100;

pub(crate) fn wait(
    thread: u32,
    [off_ns, woken_ns, on_ns]: [u64; 3],
    cause: WaitCause,
    waker: u32,
) -> OffCpuWait {
    OffCpuWait {
        thread: Pid(thread),
        process: Tgid(7),
        off_ns,
        woken_ns,
        on_ns,
        cause,
        waker: Pid(waker),
        ..OffCpuWait::default()
    }
}

/// Client that asks a server. Each request takes the server 2 ms. A slow one takes `slow_us` longer, for what `trouble`
/// plants. Its argument turns us since the server read the request into a time.
fn served(
    trouble: impl Fn(&mut RecordedHost, &dyn Fn(u64) -> u64),
    slow_us: u64,
) -> [RecordedHost; 2] {
    let (mut client, mut server) = (host("client", &TRUE_CLOCK, 4), host("server", &TRUE_CLOCK, 4));
    talk([&mut client, &mut server], [&TRUE_CLOCK, &TRUE_CLOCK], 1, 4);
    let mut read_ns = TRUE_CLOCK.monotonic_ns(BEGIN_NS + 400_000_000);
    for number in 0..REQUESTS {
        let asked_ns = TRUE_CLOCK.monotonic_ns(BEGIN_NS + 500_000_000 + number * 30_000_000);
        let is_slow = number % 10 == 3;
        let at = |us: u64| asked_ns + 100_000 + us * 1_000;
        let idle = [read_ns, at(0) - 20_000, at(0) - 10_000];
        server.waits.push(wait(7, idle, WaitCause::PipeSocket, 0));
        if is_slow {
            trouble(&mut server, &|us| at(1_000 + us));
        }
        let sent_ns = at(2_000 + if is_slow { slow_us } else { 0 });
        let back_ns = sent_ns + 100_000;
        let asleep = [asked_ns + 5_000, back_ns - 20_000, back_ns - 10_000];
        client.waits.push(wait(7, asleep, WaitCause::PipeSocket, 0));
        let first = |bytes: u64| number as u64 * bytes;
        let row = |at_ns, flow, bytes: u64| message(1, at_ns, flow, first(bytes), bytes);
        let asked = row(asked_ns, MessageDirection::Sent, 40);
        client.messages.extend([asked, row(back_ns, MessageDirection::Received, 90)]);
        let read = row(at(0), MessageDirection::Received, 40);
        server.messages.extend([read, row(sent_ns, MessageDirection::Sent, 90)]);
        read_ns = sent_ns + 50_000;
    }
    server.waits.sort_by_key(|wait| wait.on_ns);
    [client, server]
}

/// The first finding of the only address, whose shares sum to all of the slowest requests' time.
fn first(found: &FleetExplanation) -> (&SlowRequestFindings, &SlowRequestFinding) {
    let [findings] = &found.findings[..] else {
        panic!("{:?}", found.findings);
    };
    assert_eq!((findings.address.as_str(), findings.requests), ("10.0.0.2:80", REQUESTS as u64));
    assert_eq!(findings.slowest.requests, 10);
    let all_ns: u64 = findings.findings.iter().map(|one| one.time_ns).sum();
    assert_eq!(all_ns, findings.slowest.time_ns);
    let first = &findings.findings[0];
    assert!(first.share_low <= first.share && first.share <= first.share_high);
    let text = ResultText { what: found, colours: false };
    assert!(text.to_string().contains(&first.text), "{text}");
    (findings, first)
}

#[test]
fn a_device_is_named_and_not_the_thread_that_was_interrupted() {
    let read = |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
        let times = [at(0), at(10_000), at(10_010)];
        server.waits.push(wait(7, times, WaitCause::Device, 9));
    };
    let found = explained(served(read, 10_010));
    let (findings, first) = first(&found);
    assert_eq!((first.kind, first.cause), ("device", Some("device")));
    let who = &first.who;
    assert_eq!((who.host.as_str(), who.name.as_str()), ("server", "serverd"));
    assert_eq!((who.process_id, who.thread), (Some(7), Some(7)));
    assert_eq!(who.service.as_deref(), Some("10.0.0.2:80"));
    // The clocks of two hosts are known to a few ns at best.
    assert!(first.time_ns.abs_diff(100_000_000) < 100_000, "{first:?}");
    assert_eq!(first.usual_time_ns, 0);
    assert_eq!(first.largest_in, 10);
    assert!((first.share - 10.0 / 12.21).abs() < 0.02, "{first:?}");
    assert_eq!(findings.usual.requests, 10);
}

/// The server waits for a lock, whose holder waits for its fsync, and that for the journal's thread.
#[test]
fn who_holds_a_lock_is_named_with_what_it_waits_for() {
    let lock = |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
        server.tasks.push(task(8, 7, "indexer 1"));
        server.tasks.push(task(5, 5, "jbd2/vda-8"));
        server.waits.extend([
            wait(8, [at(500), at(9_000), at(9_010)], WaitCause::CommitWait, 5),
            wait(5, [at(600), at(8_900), at(8_910)], WaitCause::Device, 7),
            wait(7, [at(0), at(10_000), at(10_010)], WaitCause::Futex, 8),
        ]);
        server.syncs.push(FsyncCall {
            thread: Pid(8),
            enter_ns: at(400),
            exit_ns: at(9_500),
            ..FsyncCall::default()
        });
    };
    let found = explained(served(lock, 10_010));
    let (_, first) = first(&found);
    assert_eq!((first.kind, first.cause), ("fsync", Some("commit_wait")));
    assert_eq!((first.who.name.as_str(), first.who.thread), ("indexer", Some(8)));
    let waiter = first.waiter.as_ref().expect("somebody waits");
    assert_eq!((waiter.name.as_str(), waiter.cause), ("serverd", Some("futex")));
    assert!(first.text.contains("indexer waits until its data are safe"), "{}", first.text);
}

/// A thread waits for the only processor.
#[test]
fn who_kept_a_thread_from_its_processor_is_named_or_not_known() {
    let starve = |is_busy: bool| {
        move |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
            server.trace.processors = 1;
            server.tasks.push(task(20, 19, "compiler"));
            let starved = wait(7, [at(0), 0, at(10_010)], WaitCause::Preempted, 0);
            let before = wait(20, [at(0) - 9_000, at(0) - 2_000, at(0)], WaitCause::Sleep, 0);
            let after = wait(20, [at(10_010), at(10_020), at(10_030)], WaitCause::Sleep, 0);
            let waits = [starved, before, after].into_iter().take(if is_busy { 3 } else { 1 });
            server.waits.extend(waits.map(|wait| OffCpuWait { processor: 1, ..wait }));
        }
    };
    let found = explained(served(starve(true), 10_010));
    let (_, busy) = first(&found);
    assert_eq!((busy.kind, busy.who.name.as_str()), ("computes", "compiler"));
    assert_eq!((busy.who.process_id, busy.who.thread), (Some(19), Some(20)));
    assert_eq!(busy.kept_others_ns, busy.time_ns);
    let found = explained(served(starve(false), 10_010));
    let (_, idle) = first(&found);
    assert_eq!((idle.kind, idle.who.name.as_str()), ("no_processor", "serverd"));
}

/// Two other threads run, and one of them has the processor that the server's thread waits for.
#[test]
fn who_had_the_same_processor_is_charged() {
    let starve = |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
        server.trace.processors = 2;
        let on = |processor, wait| OffCpuWait { processor, ..wait };
        let waits = [wait(7, [at(0), 0, at(10_010)], WaitCause::Preempted, 0)];
        server.waits.extend(waits.map(|wait| on(2, wait)));
        for (thread, comm, processor) in [(20, "compiler", 1), (30, "hog", 2)] {
            server.tasks.push(task(thread, thread, comm));
            let before = [at(0) - 9_000, at(0) - 2_000, at(0)];
            let after = [at(10_010), at(10_020), at(10_030)];
            let sleeps = [before, after].map(|times| wait(thread, times, WaitCause::Sleep, 0));
            server.waits.extend(sleeps.map(|wait| on(processor, wait)));
        }
    };
    let found = explained(served(starve, 10_010));
    let (_, busy) = first(&found);
    assert_eq!((busy.kind, busy.who.name.as_str()), ("computes", "hog"));
    assert!(busy.share > 0.75, "{busy:?}");
    let others = &found.findings[0].findings;
    // Of other waits it is not known which processor they were for.
    let mut of_other = others.iter().filter(|one| one.who.name == "compiler");
    assert!(of_other.all(|one| one.share < 0.01), "{others:?}");
}

fn task(thread: u32, process: u32, comm: &str) -> ThreadInfo {
    ThreadInfo {
        thread: Pid(thread),
        process: Tgid(process),
        comm: comm.to_owned(),
        start_ns: 1,
        ..ThreadInfo::default()
    }
}

#[test]
fn who_stopped_a_process_is_named() {
    let stop = |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
        server.tasks.push(task(30, 30, "debugger"));
        let times = [at(0), at(10_000), at(10_010)];
        server.waits.push(wait(7, times, WaitCause::Stopped, 30));
    };
    let found = explained(served(stop, 10_010));
    let (_, first) = first(&found);
    assert_eq!((first.kind, first.cause), ("stopped", Some("stopped")));
    let holder = first.holder.as_ref().expect("somebody let it go on");
    assert_eq!((first.who.process_id, holder.process_id), (Some(7), Some(30)));
}

/// The server reads, and the disk writes meanwhile what a backup made dirty.
#[test]
fn for_whom_else_a_disk_worked_is_named() {
    let dev = Dev(1);
    let read = |server: &mut RecordedHost, at: &dyn Fn(u64) -> u64| {
        let request = |issuer, begin_ns, complete_ns, bytes| BlockRequest {
            dev,
            issuer: Pid(issuer),
            issuer_process: Tgid(issuer),
            insert_ns: begin_ns,
            complete_ns,
            bytes,
            ..BlockRequest::default()
        };
        let data = |at_ns, thread, direction| FileData {
            at_ns,
            dev,
            inode: Inode(5),
            thread: Pid(thread),
            process: Tgid(thread),
            bytes: 1,
            direction,
            ..FileData::default()
        };
        server.tasks.push(task(40, 40, "kworker/u8:1"));
        server.tasks.push(task(50, 50, "backup"));
        server.waits.push(wait(7, [at(0), at(10_000), at(10_010)], WaitCause::Device, 9));
        server.data.extend([
            data(at(0), 50, DataDirection::Dirtied),
            data(at(9_000), 40, DataDirection::WrittenByFlusher),
        ]);
        let other_disk = BlockRequest { dev: Dev(2), ..request(60, at(20), at(8_000), 1 << 30) };
        server.requests.extend([
            request(40, at(10), at(5_000), 9_000),
            other_disk,
            request(7, at(5), at(9_900), 1_000),
            request(40, at(20), at(11_000), 1 << 30),
        ]);
    };
    let found = explained(served(read, 10_010));
    let (_, first) = first(&found);
    assert_eq!(first.kind, "device");
    let beside = first.beside.as_ref().expect("the disk wrote");
    assert_eq!((beside.who.process.as_str(), beside.who.process_id), ("backup", Some(50)));
    assert_eq!((beside.share, beside.share_of_who), (0.9, 0.9));
    let said = "90.0 % of what the disk moved meanwhile was others', most of it of backup 50 on server (backup)";
    assert!(first.text.contains(said), "{}", first.text);
}

#[test]
fn a_server_waits_for_work_and_a_client_for_answers() {
    let found = explained(served(|_, _| (), 0));
    let [client, server] = &found.idle[..] else {
        panic!("{:?}", found.idle);
    };
    // Between two requests the server has nothing to do, and the client waits for all of each answer.
    assert_eq!((client.host.as_str(), client.for_work_ns), ("client", 0));
    assert!(client.for_answers_ns > 100 * 1_000_000, "{client:?}");
    assert_eq!((client.threads, client.without_work), (1, 0));
    assert_eq!((server.host.as_str(), server.for_answers_ns), ("server", 0));
    assert!(server.for_work_ns > 1_000_000_000, "{server:?}");
    assert_eq!((server.threads, server.without_work), (1, 1));
    let text = ResultText { what: &found, colours: false }.to_string();
    assert!(text.contains("server: 1 of 1 thread only waited for work"), "{text}");
}
