//! Rows that nobody would write: whatever they say, nothing panics.

use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource, SocketRole};
use luc_events::tables::{
    AsleepThread, BriefWait, ClockSample, ConnectionMessage, LostEvents, OffCpuWait,
    SocketConnection, TcpPacket, ThreadInfo, TraceDescription,
};
use luc_events::{ConnectionId, Pid, Tgid, WaitCause};
use luc_fleet::report::{ReportSelection, ReportSource, html, otlp, perfetto};
use luc_fleet::text::ResultText;
use luc_fleet::{ExplanationOptions, JoinedTraces, RecordedHost, ThreadName, explain, fit, why};
use proptest::collection::vec;
use proptest::prelude::*;

/// Control character that begins escape sequences, in names.
const ESCAPE: char = '\u{1b}';

/// Small most of the time, so that rows meet; sometimes any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0_u64..200,
        2 => 1_000_000_000_u64..1_000_200_000,
        1 => u64::MAX - 9..=u64::MAX,
        1 => (1_u64 << 32) - 9..(1 << 32) + 9,
        1 => any::<u64>(),
    ]
}

fn flow() -> impl Strategy<Value = MessageDirection> {
    prop::sample::select(MessageDirection::ALL)
}

fn connection() -> impl Strategy<Value = SocketConnection> {
    let address = prop::sample::select(vec!["10.0.0.1", "10.0.0.2", "::1", "", "x"]);
    let port = prop_oneof![4 => 1_u32..4, 1 => any::<u32>()];
    let codes = (
        prop::sample::select(SocketRole::ALL),
        prop::sample::select(SequenceSource::ALL),
        prop::sample::select(ConnectionFamily::ALL),
    );
    (
        (0_u32..5, 0_u32..5),
        address.clone(),
        address,
        (port.clone(), port),
        (0_u32..3, 0_u32..3),
        codes,
        number(),
    )
        .prop_map(
            |((id, peer), local, remote, ports, initial, (side, sequences, family), closed_ns)| {
                SocketConnection {
                    connection: ConnectionId(id),
                    local_address: local.to_owned(),
                    remote_address: remote.to_owned(),
                    local_port: ports.0,
                    remote_port: ports.1,
                    initial_sent: initial.0,
                    initial_received: initial.1,
                    side,
                    sequences,
                    family,
                    peer: ConnectionId(peer),
                    closed_ns,
                    ..SocketConnection::default()
                }
            },
        )
}

fn message() -> impl Strategy<Value = ConnectionMessage> {
    (number(), 0_u32..4, 0_u32..5, flow(), number(), number()).prop_map(
        |(at_ns, thread, connection, direction, first_byte, bytes)| ConnectionMessage {
            at_ns,
            thread: Pid(thread),
            process: Tgid(thread / 2),
            connection: ConnectionId(connection),
            direction,
            first_byte,
            bytes,
        },
    )
}

fn packet() -> impl Strategy<Value = TcpPacket> {
    (number(), 0_u32..5, flow(), number(), number(), number()).prop_map(
        |(at_ns, connection, direction, first_byte, bytes, ack)| TcpPacket {
            at_ns,
            connection: ConnectionId(connection),
            direction,
            first_byte,
            bytes,
            ack,
        },
    )
}

fn wait() -> impl Strategy<Value = OffCpuWait> {
    let cause = prop::sample::select(WaitCause::ALL);
    (number(), number(), number(), 0_u32..4, 0_u32..4, cause).prop_map(
        |(off_ns, woken_ns, on_ns, thread, waker, cause)| OffCpuWait {
            off_ns,
            woken_ns,
            on_ns,
            thread: Pid(thread),
            waker: Pid(waker),
            cause,
            ..OffCpuWait::default()
        },
    )
}

fn asleep() -> impl Strategy<Value = AsleepThread> {
    (number(), number(), 0_u32..4, 0_u32..4, 0_u32..3).prop_map(
        |(since_ns, at_ns, thread, holder, connection)| AsleepThread {
            since_ns,
            at_ns,
            thread: Pid(thread),
            holder: Pid(holder),
            connection: ConnectionId(connection),
            ..AsleepThread::default()
        },
    )
}

fn brief_wait() -> impl Strategy<Value = BriefWait> {
    (number(), number(), number(), number(), 0_u32..4).prop_map(
        |(since_ns, until_ns, blocked_ns, runnable_ns, thread)| BriefWait {
            since_ns,
            until_ns,
            blocked_ns,
            runnable_ns,
            thread: Pid(thread),
            ..BriefWait::default()
        },
    )
}

/// Samples in order, or in any order.
fn clocks() -> impl Strategy<Value = Vec<ClockSample>> {
    let any = vec((number(), number(), number(), number()), 0..4).prop_map(|rows| {
        let sample = |(at_ns, raw_ns, width_ns, rate)| ClockSample {
            at_ns,
            raw_ns,
            width_ns,
            rate_ppb: rate as i64,
            ..ClockSample::default()
        };
        rows.into_iter().map(sample).collect()
    });
    let ordered = (0_u64..1_000_000, 2_u64..20, 1_u64..100, number()).prop_map(
        |(offset_ns, count, step_ns, rate)| {
            let sample = |at: u64| ClockSample {
                // Of one in three.
                rate_ppb: if at.is_multiple_of(3) { rate as i64 } else { 0 },
                at_ns: at * step_ns,
                raw_ns: offset_ns + at * step_ns,
                ..ClockSample::default()
            };
            (0..count).map(sample).collect()
        },
    );
    prop_oneof![1 => any, 4 => ordered]
}

fn host(number_of: usize) -> impl Strategy<Value = RecordedHost> {
    let net = (vec(connection(), 0..6), vec(message(), 0..30), vec(packet(), 0..20));
    let threads = (
        vec(wait(), 0..20),
        vec(brief_wait(), 0..5),
        vec(asleep(), 0..6),
        vec((0_u32..4, number()), 0..6),
    );
    let lost = vec((number(), number()), 0..2);
    (net, threads, clocks(), number(), number(), lost).prop_map(
        move |(
            (connections, messages, packets),
            (waits, brief_waits, asleep, tasks),
            clocks,
            start_ns,
            end_ns,
            lost,
        )| {
            let task = |(thread, start_ns): (u32, u64)| ThreadInfo {
                thread: Pid(thread),
                start_ns,
                comm: format!("t\u{1b}{thread}"),
                ..ThreadInfo::default()
            };
            let loss = |(at_ns, count)| LostEvents { at_ns, count, place: "packet".to_owned() };
            // As the reader has it: of each connection one row.
            let mut connections = connections;
            connections.sort_by_key(|row: &SocketConnection| row.connection);
            connections.dedup_by_key(|row| row.connection);
            RecordedHost {
                name: format!("h{number_of}"),
                trace: TraceDescription { start_ns, end_ns, ..TraceDescription::default() },
                connections,
                messages,
                packets,
                clocks,
                lost: lost.into_iter().map(loss).collect(),
                tasks: tasks.into_iter().map(task).collect(),
                waits,
                brief_waits,
                asleep,
                ..RecordedHost::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn nothing_panics_and_paths_sum(
        one in host(1),
        two in host(2),
        both: bool,
        request in 0_usize..4,
        thread in 0_u32..4,
        after_ns in number(),
    ) {
        let hosts = if both { vec![one, two] } else { vec![one] };
        let Ok(joined) = JoinedTraces::new(hosts) else {
            return Ok(());
        };
        if let Ok(found) = fit(&joined) {
            let text = ResultText { what: &found, colours: false }.to_string();
            prop_assert!(!text.contains(ESCAPE));
            serde_json::to_string(&found).expect("JSON");
        }
        let who = ThreadName { thread: thread.to_string(), host: Some("h1".to_owned()) };
        for after_ns in [None, Some(after_ns)] {
            let Ok(found) = why(&joined, &who, after_ns) else {
                continue;
            };
            let text = ResultText { what: &found, colours: false }.to_string();
            prop_assert!(!text.contains(ESCAPE));
            serde_json::to_string(&found).expect("JSON");
        }
        for request in [None, Some(request)] {
            let Ok(found) = explain(&joined, ExplanationOptions { request, rows: true }) else {
                continue;
            };
            let text = ResultText { what: &found, colours: false }.to_string();
            prop_assert!(!text.contains(ESCAPE));
            serde_json::to_string(&found).expect("JSON");
            if let Some(request) = &found.request {
                let sum: u64 = request.path.iter().map(|part| part.time_ns).sum();
                prop_assert_eq!(sum, request.request.time_ns);
            }
            for findings in &found.findings {
                // All of the slowest requests' time is in some finding.
                let sum = findings.findings.iter().map(|one| u128::from(one.time_ns)).sum::<u128>();
                prop_assert!(sum >= u128::from(findings.slowest.time_ns));
                let is_cut = findings.slowest.time_ns == u64::MAX;
                prop_assert!(is_cut || sum == u128::from(findings.slowest.time_ns));
            }
            let rows = found.rows.as_ref().expect("they are wanted");
            prop_assert_eq!(rows.edges.len() as u64, found.messages.edges);
            let report = ReportSource::new(&joined, ReportSelection { request, slowest: 3 }).expect("found");
            let mut page = Vec::new();
            html::write(&report, &mut page).expect("written");
            prop_assert!(!page.contains(&(ESCAPE as u8)));
            let mut spans = Vec::new();
            otlp::write(&report, &mut spans).expect("written");
            serde_json::from_slice::<serde_json::Value>(&spans).expect("JSON");
            let mut trace = Vec::new();
            perfetto::write(&report, &mut trace).expect("written");
            let trace = luc_testkit::perfetto::check(&trace);
            prop_assert_eq!(trace.machines.len(), found.hosts.len() + 1);
        }
    }
}
