//! On distributions' kernels, which lack some of the tracepoints. Skipped, with the reason, where QEMU or a kernel is
//! missing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use luc_events::WaitCause;
use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SocketRole};
use luc_events::store::TraceReader;
use luc_events::tables::{LostEvents, SocketConnection};
use luc_testkit::talk::{BYTES, MESSAGES};
use luc_vm::{GuestOutcome, VirtualMachine};

use super::compiled_programs;
use super::start_routines;
use super::trace_checks::{BothEnds, RecordedRows};
use crate::common::{LUC, rows};

/// Two hosts with a cable between them, as packets of a loopback device have no rows. There is neither a file system
/// with a journal nor its module.
const SCRIPT: &str = r#"
modprobe veth || exit 1
ip netns add server || exit 1
ip link add client type veth peer name server netns server || exit 1
ip address add 10.77.0.1/24 dev client && ip link set client up || exit 1
ip -n server address add 10.77.0.2/24 dev server && ip -n server link set server up || exit 1
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && mkdir /sys/fs/cgroup/quota || exit 1
echo 10000 100000 >/sys/fs/cgroup/quota/cpu.max || exit 1
cat >/run/busy <<EOF
echo 0 >/sys/fs/cgroup/quota/cgroup.procs
exec timeout 1 sh -c 'while :; do :; done'
EOF
luc record --fleet --all --pipes --tokens --out /run/trace -- \
	talk 10.77.0.2 /run/netns/server 'ip link set client down; threads brief; sh /run/busy; pairs; true' || exit 1
cp /run/trace/* "$OUT"
"#;

/// Bytes that `pairs.c` plants on each connection, by direction; below, those on a pipe.
const LOCAL: [u64; 2] = [7 * MESSAGES * (MESSAGES + 1) / 2, MESSAGES * MESSAGES];
const PIPED: u64 = 123_456;

/// Reads the trace that a guest left, in `folder`.
fn recorded_by(outcome: &GuestOutcome, folder: &Path) -> RecordedRows {
    RecordedRows::of_reader(&left_by(outcome, folder), &outcome.text())
}

fn left_by(outcome: &GuestOutcome, folder: &Path) -> TraceReader {
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    for (name, bytes) in &outcome.files {
        fs::write(folder.join(name), bytes).expect("written");
    }
    TraceReader::open(folder).expect("a trace")
}

/// Whether the kernel skipped a program for what had preempted it, which the trace says.
fn has_skipped(reader: &TraceReader) -> bool {
    rows::<LostEvents>(reader).iter().any(|row| row.place == "message")
}

/// Maximum number of recordings until one is whole, on kernels that may preempt programs and then skip some.
const MAX_RECORDINGS: usize = 4;

fn check(version: &str, missing: &[&str]) {
    let Some(kernel) = luc_testkit::vm::kernel(version) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let talk = compiled_programs::compiled("talk", folder.path());
    let threads = compiled_programs::compiled("threads", folder.path());
    let pairs = compiled_programs::compiled("pairs", folder.path());
    let record = || {
        let trace = tempfile::tempdir_in(folder.path()).expect("a directory");
        let outcome = VirtualMachine::new(&kernel)
            .program(LUC)
            .program(&talk)
            .program(&threads)
            .program(&pairs)
            .program("ip")
            .module("veth")
            .timeout(Duration::from_secs(300))
            .script(SCRIPT)
            .run()
            .expect("a guest");
        let reader = left_by(&outcome, trace.path());
        (outcome.text(), reader, trace)
    };
    let may_skip = version.starts_with('7');
    let mut recordings =
        std::iter::repeat_with(record).take(if may_skip { MAX_RECORDINGS } else { 1 });
    let (text, reader, _trace) =
        recordings.find(|(_, reader, _)| !has_skipped(reader)).expect("nothing lost");
    let recorded = RecordedRows::of_reader(&reader, &text);
    for line in missing {
        assert!(text.contains(line), "{text}");
    }
    let of_side = |side: SocketRole| {
        let is_own =
            |row: &&SocketConnection| row.side == side && row.family == ConnectionFamily::Ipv4;
        let mut found = recorded.connections.values().filter(is_own);
        let row = found.next().unwrap_or_else(|| panic!("{side}: {text}"));
        assert!(found.next().is_none(), "one connection");
        row
    };
    let (client, server) = (of_side(SocketRole::Client), of_side(SocketRole::Server));
    assert_eq!(client.initial_sent, server.initial_received);
    assert_eq!(client.initial_received, server.initial_sent);
    let ends = BothEnds { client, server };
    recorded.check_messages(&ends, [0, 0], BYTES);
    assert!(recorded.check_packets(&ends) > 0, "{text}");
    check_local(&recorded);
    // The script's shell waits for luc.
    assert!(
        recorded.asleep.iter().any(|row| row.cause == WaitCause::Poll),
        "{:?}",
        recorded.asleep
    );
    // Its cgroup may use a tenth of a processor.
    let throttled = recorded.waits.iter().filter(|row| row.cause == WaitCause::Throttled);
    let throttled_ns: u64 = throttled.map(|row| row.on_ns - row.off_ns).sum();
    assert!(throttled_ns > 100_000_000, "{throttled_ns} ns: {text}");
    // The cable is cut before the client closes.
    assert_eq!(client.closed_ns, 0, "{client:?}");
    for end in [client, server] {
        let own = recorded.messages.iter().filter(|row| row.connection == end.connection);
        let last = own.map(|row| row.at_ns).max();
        assert!(Some(end.at_ns) > last, "has a last row: {end:?}");
        let sends = recorded.messages_of(end, MessageDirection::Sent).len() as u64;
        assert_eq!(sends, MESSAGES + 1, "{text}");
    }
    let (_, starts) = start_routines::starts(&recorded, "threads");
    let known = starts.iter().filter(|row| row.routine == "end_at_once");
    assert_eq!(known.count(), start_routines::THREADS, "{starts:?}");
}

/// Checks the bytes that `pairs.c` plants: on unix sockets, of a path and of a pair, and on a pipe.
fn check_local(recorded: &RecordedRows) {
    let of_family = |family| recorded.connections.values().filter(move |row| row.family == family);
    let named = of_family(ConnectionFamily::Unix).find(|row| row.local_address == "/run/planted");
    let server = named.expect("the server's end");
    assert_eq!(server.side, SocketRole::Server);
    let pair = of_family(ConnectionFamily::Unix).find(|row| {
        row.side == SocketRole::Unknown
            && recorded.messages.iter().any(|m| m.connection == row.connection)
    });
    for end in [server, pair.expect("a pair")] {
        let peer = &recorded.connections[&end.peer];
        let ends = BothEnds { client: peer, server: end };
        let either = |row: &SocketConnection| {
            let first = recorded.messages_of(row, MessageDirection::Sent);
            first.first().map_or(0, |row| row.bytes)
        };
        // Of a pair the end that asks sends 7 bytes first.
        let ends = if either(peer) == 7 { ends } else { BothEnds { client: end, server: peer } };
        recorded.check_messages(&ends, [0, 0], LOCAL);
    }
    let sums: Vec<u64> = of_family(ConnectionFamily::Pipe)
        .map(|row| {
            recorded.messages_of(row, MessageDirection::Received).iter().map(|row| row.bytes).sum()
        })
        .collect();
    assert!(sums.contains(&PIPED), "{sums:?}");
}

#[test]
fn system_calls_tell_of_sends_on_linux_6_1() {
    check("6.1", &["sends by io_uring and splice cannot be recorded"]);
}

#[test]
fn the_beginning_of_sends_is_told_by_system_calls_on_linux_6_12() {
    check("6.12", &[]);
}

#[test]
fn programs_can_be_preempted_on_linux_7_3() {
    check("7.3", &[]);
}

/// Bytes that `meet.c` plants on each of its pairs, by direction. Its pairs have at most `MET_REQUESTS` sends; those
/// of `pairs.c` have more.
const MET: [u64; 2] = [7 + 14 + 21 + 9, 1 + 3 + 5];
const MET_REQUESTS: usize = 4;
const MET_PAIRS: usize = 30 * 20;

/// Number of runs of `pairs`, with two pairs each.
const RUNS: usize = 150;

/// Each call that moves bytes has its row, also where both ends of a pair are first used at once. Pairs also use the
/// memory of older pairs, and senders close before all is read.
#[test]
fn pairs_that_are_met_at_once_on_linux_6_1() {
    let Some(kernel) = luc_testkit::vm::kernel("6.1") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let programs = format!("meet && for run in $(seq {RUNS}); do pairs || exit 1; done");
    let script = format!(
        "luc record --fleet --all --out /run/trace -- sh -c '{programs}' && cp /run/trace/* \"$OUT\"\n"
    );
    let outcome = VirtualMachine::new(&kernel)
        .program(LUC)
        .program(compiled_programs::compiled("meet", folder.path()))
        .program(compiled_programs::compiled("pairs", folder.path()))
        .program("seq")
        .timeout(Duration::from_secs(300))
        .script(script)
        .run()
        .expect("a guest");
    let text = outcome.text();
    let recorded = recorded_by(&outcome, folder.path());
    let (mut met, mut others) = (0, 0);
    for asking in recorded.connections.values() {
        let requests = recorded.messages_of(asking, MessageDirection::Sent);
        if requests.first().is_none_or(|row| row.bytes != 7) {
            continue;
        }
        let ends = BothEnds { client: asking, server: &recorded.connections[&asking.peer] };
        if requests.len() <= MET_REQUESTS {
            recorded.check_messages(&ends, [0, 0], MET);
            met += 1;
        } else {
            recorded.check_messages(&ends, [0, 0], LOCAL);
            others += 1;
        }
    }
    assert_eq!((met, others), (MET_PAIRS, 2 * RUNS), "{text}");
}
