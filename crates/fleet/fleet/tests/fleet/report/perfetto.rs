//! Tests the Perfetto trace.

use std::collections::BTreeMap;

use luc_fleet::JoinedTraces;
use luc_fleet::report::perfetto;
use luc_testkit::perfetto::{Checked, check};

use super::{CLIENT, HOSTILE, REQUESTS, chosen, joined, planted, written};
use crate::planted_hosts::BEGIN_NS;

pub(super) fn trace(joined: &JoinedTraces) -> Checked {
    let trace = written(joined, chosen(None, 5), |report, out| perfetto::write(report, out));
    check(&trace)
}

#[test]
fn machines_have_threads_and_flows_connect_messages() {
    let joined = joined(planted());
    let found = trace(&joined);
    let machines: Vec<&str> = found.machines.values().map(String::as_str).collect();
    assert_eq!(machines, ["all hosts", "client", "server"]);
    let named: Vec<(u64, String, &str, u64, u64)> = found
        .slices
        .iter()
        .map(|(track, name, _, begin_ns, end_ns)| {
            let machine = found.machine_of[track];
            (machine, found.path(*track), name.as_str(), *begin_ns, *end_ns)
        })
        .collect();
    // The server's clock is 7 ms ahead: the times are the client's.
    let at_ns = |us: i64| CLIENT.monotonic_ns(BEGIN_NS + 500_000_000 + us * 1_000);
    for (machine, track, name, begin_us, end_us) in [
        (0, "client/clientd 7", "asks 10.0.0.2:80", 0, 3_200),
        (0, "server/serverd 7", "answers at 10.0.0.2:80", 100, 3_100),
        (0, "server/serverd 7", "asks 10.0.0.3:5432", 300, 900),
        (1, "clientd", "waits (pipe_socket)", 10, 3_190),
        (1, "clientd", "waits for a processor", 3_180, 3_190),
        (2, "serverd", "waits (device)", 1_000, 2_010),
        (2, "serverd", "on a processor", 895, 1_000),
        (2, HOSTILE, "waits (futex)", 1_000, 1_110),
    ] {
        let near = |a_ns: u64, b_us: i64| a_ns.abs_diff(at_ns(b_us)) < 30_000;
        let is_it = named.iter().any(|slice| {
            (slice.0, slice.1.as_str(), slice.2) == (machine, track, name)
                && near(slice.3, begin_us)
                && near(slice.4, end_us)
        });
        assert!(is_it, "{name} of {track} is not in {named:#?}");
    }
    let path: Vec<_> =
        named.iter().filter(|slice| slice.1 == "what request 1 waited for").collect();
    let sum_ns: u64 = path.iter().map(|slice| slice.4 - slice.3).sum();
    assert!(sum_ns.abs_diff(8_200_000) < 1_000, "{path:?}");
    // Each message that both hosts have seen is a flow from its send to its reception.
    assert_eq!(found.flows.len() as i64, 2 * REQUESTS);
    for tracks in found.flows.values() {
        let mut hosts: Vec<String> = tracks.iter().map(|track| found.path(*track)).collect();
        hosts.sort();
        assert_eq!(hosts, ["client/clientd 7", "server/serverd 7"]);
    }
    let mut of_flow: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for instant in &found.instants {
        for &flow in &instant.flows {
            of_flow.entry(flow).or_default().push(instant);
        }
    }
    for ends in of_flow.values() {
        let sent = ends.iter().find(|end| end.name == "sends").expect("a send");
        let received = ends.iter().find(|end| end.name == "receives").expect("a reception");
        let error_ns = received.numbers["clock error ns"];
        assert!((10_000..30_000).contains(&error_ns), "{received:?}");
        let way_ns = received.at_ns - sent.at_ns;
        assert!(way_ns.abs_diff(100_000) <= error_ns, "{way_ns}");
        assert_eq!(received.numbers["one-way time ns"], way_ns);
    }
}
