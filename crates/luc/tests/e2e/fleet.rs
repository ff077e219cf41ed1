//! `luc fleet` end to end: a planted exchange between network namespaces is recorded once, and explained. Needs root,
//! iproute2 and BTF; skipped, with the reason, where they are missing.

use crate::common;
mod counts_in_request;
mod planted_front_end;
mod unix_socket_peer;
#[allow(dead_code, reason = "it has more than these tests use")]
use crate::record_fleet::two_hosts;
mod postgres;
use crate::common::fleet_recording;
mod split_into_hosts;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::LUC;
use fleet_recording::{FleetRecording, TemporaryTrace};
use luc_events::store::TraceReader;
use planted_front_end::{ALONE, ANSWER, ASKED, KINDS, MORE, REQUESTS};
use serde_json::Value;
use split_into_hosts::ClockWarp;
use two_hosts::TwoHosts;

/// Whether `luc-fleet` was built beside `luc`.
fn has_fleet() -> bool {
    let is_there = Path::new(LUC).with_file_name("luc-fleet").is_file();
    if !is_there {
        luc_testkit::skipped!("luc-fleet is not built beside luc");
    }
    is_there
}

fn fleet(words: &[&str]) -> Output {
    let output = Command::new(LUC).arg("fleet").args(words).output();
    output.expect("luc runs")
}

fn json(words: &[&str]) -> Value {
    let output = fleet(words);
    assert!(output.status.success(), "{}", common::stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}: no number"))
}

/// Checks that an explanation has what was planted: messages, requests, and which call was made for which. It may be
/// of any number of hosts. Returns how many requests have a path that goes from host to host.
fn check_planted(all: &Value, paths: &[&str]) -> usize {
    let planted = (KINDS.len() * REQUESTS) as u64;
    let services = all["services"].as_array().expect("services");
    for port in [7002, 7003] {
        let of_port = services.iter().filter(|service| service["port"] == port);
        let requests: u64 = of_port.map(|service| number(&service["answered"])).sum();
        assert_eq!(requests, planted, "{services:?}");
    }
    let connections = &all["connections"];
    let paired = number(&connections["paired"]["by_initial_numbers"]);
    assert_eq!(paired, 2 * KINDS.len() as u64, "{connections}");
    assert_eq!(connections["unpaired"], Value::Array(Vec::new()));
    let messages = &all["messages"];
    for gap in messages["gaps"].as_array().expect("gaps") {
        assert_eq!(gap["reason"], "ends of connections (FIN)", "{messages}");
    }
    // Each request there and its answer back, on both connections.
    let bytes = |first: usize| {
        let numbers = first..first + REQUESTS;
        numbers.map(|number| 2 * (ASKED + number) + MORE + 2 * ANSWER).sum::<usize>()
    };
    let bytes: usize = KINDS.into_iter().map(bytes).sum();
    assert_eq!(number(&messages["bytes_on_edges"]), bytes as u64);
    let (mut seen, mut across) = (BTreeMap::new(), 0);
    for request in 1.. {
        let request = request.to_string();
        let words = [&["explain", "--json", "--request", &request][..], paths];
        let output = fleet(&words.concat());
        if output.status.code() == Some(2) {
            let line = common::refusal(&output);
            assert!(line.contains("there is no request"), "{line}");
            break;
        }
        let one: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut parts = one["request"]["path"].as_array().expect("a path").iter();
        across += usize::from(parts.any(|part| part["is_between_hosts"] == true));
        if let Some(asked) = check_request(&one["request"]) {
            *seen.entry(asked).or_insert(0) += 1;
        }
    }
    // All of the clients'.
    for first in KINDS {
        for asked in first..first + REQUESTS {
            assert_eq!(seen.get(&(ASKED + asked)), Some(&1), "{seen:?}");
        }
    }
    across
}

/// A request's tree is as planted, and its path sums to its time. Returns how many bytes the client asked with.
fn check_request(report: &Value) -> Option<usize> {
    let time_ns = number(&report["request"]["time_ns"]);
    let path = report["path"].as_array().expect("a path");
    let sum: u64 = path.iter().map(|part| number(&part["time_ns"])).sum();
    assert_eq!(sum, time_ns, "{report}");
    for part in path.iter().filter(|part| part["is_between_hosts"] == true) {
        assert!(part["error_ns"].is_u64(), "{part}");
    }
    let calls = report["calls"].as_array().expect("calls");
    let bytes = |call: &Value| number(&call["bytes"]) as usize;
    let first = bytes(&calls[0]);
    let is_at = |call: &Value, port: &str| {
        let address = call["address"].as_str().expect("an address");
        address.starts_with("10.78.") && address.ends_with(port)
    };
    let is_of_client = is_at(&calls[0], ".2:7002");
    if !is_of_client {
        return None;
    }
    let kind = KINDS.into_iter().rfind(|kind| ASKED + kind <= first).expect("a kind");
    let evidence: Vec<&Value> = calls[1..].iter().map(|call| &call["evidence"]).collect();
    match kind {
        ALONE => assert_eq!(evidence, ["same thread"], "{report}"),
        // Writing the answer is an effect, and so is waking who does.
        _ => assert_eq!(evidence, ["effect"], "{report}"),
    }
    for call in &calls[1..] {
        assert_eq!(bytes(call), first + MORE, "made for another request: {report}");
        assert!(is_at(call, ".3:7003"), "{call}");
        assert!(call["server"].is_object(), "{call}");
    }
    Some(first)
}

#[test]
fn a_planted_exchange_is_explained() {
    let Some((place, trace)) = recorded() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let planted = folder.path().join("planted");
    write_planted(&place, &trace, &planted);
    let planted = planted.to_str().expect("plain");
    let across = check_planted(&json(&["explain", planted, "--json"]), &[planted]);
    assert_eq!(across, 0);
    let output = fleet(&["fit", planted]);
    assert!(common::refusal(&output).contains("two hosts or more"));
    let output = fleet(&["explain", planted, &format!("other={planted}")]);
    assert!(common::refusal(&output).contains("same boot"));

    // All of the machine, whatever it did meanwhile.
    let path = trace.path();
    let text = common::stdout(&fleet(&["explain", path.to_str().expect("plain")]));
    for part in ["What its time went into", "sum of all parts", "the same thread", "7003"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Writes what is planted as the trace of one host.
fn write_planted(place: &TwoHosts, trace: &TemporaryTrace, to: &Path) {
    let all = [&place.client, &place.server, &place.between].map(two_hosts::NamespaceHost::inode);
    split_into_hosts::write(&trace.path(), &all, "planted", ClockWarp::default(), to);
}

#[test]
fn without_luc_fleet_it_says_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let luc = folder.path().join("luc");
    common::copy_luc(&luc);
    let output = Command::new(&luc)
        .args(["fleet", "explain", "a.trace"])
        .env("PATH", folder.path())
        .output();
    let line = common::refusal(&output.expect("luc runs"));
    assert!(line.contains("make product install"), "{line}");
}

fn recorded() -> Option<(TwoHosts, TemporaryTrace)> {
    if !has_fleet() {
        return None;
    }
    let place = TwoHosts::new()?;
    let recording = FleetRecording::start(&["--all", "--no-calls"]);
    planted_front_end::exchange(&place);
    Some((place, recording.stop()))
}

/// The same trace, split among three hosts. Two of them have other clocks.
#[test]
fn the_clocks_of_three_hosts_are_found() {
    let Some((place, trace)) = recorded() else {
        return;
    };
    let since_ns = TraceReader::open(&trace.path()).expect("a trace").trace().start_ns;
    let warp = |offset_ns, drift_ppb| ClockWarp { offset_ns, drift_ppb, since_ns };
    let folder = tempfile::tempdir().expect("a directory");
    let hosts = [
        ("client", &place.client, warp(0, 0)),
        ("front", &place.server, warp(86_400_000_000_123, 40_000)),
        ("back", &place.between, warp(-7_000_456, -25_000)),
    ];
    let mut paths = Vec::new();
    for (name, host, warp) in hosts {
        let to = folder.path().join(name);
        split_into_hosts::write(&trace.path(), &[host.inode()], name, warp, &to);
        paths.push(to.to_str().expect("plain").to_owned());
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let fit = json(&[&["fit", "--json"], &paths[..]].concat());
    let pairs = fit["pairs"].as_array().expect("pairs");
    let names: Vec<_> = pairs.iter().map(|pair| (&pair["a"], &pair["b"])).collect();
    assert_eq!(pairs.len(), 2, "{names:?}");
    for pair in pairs {
        let clock = |name: &Value| {
            let found = hosts.iter().find(|host| name == host.0);
            found.expect("a host").2
        };
        let (a, b) = (clock(&pair["a"]), clock(&pair["b"]));
        let offset = &pair["offset"];
        // The offset is given at a time of A's clock, since A's trace began.
        let at = offset["at_ns"].as_i64().expect("a time");
        let kernel_ns = at * 1_000_000_000 / (1_000_000_000 + a.drift_ppb);
        let drift = |warp: ClockWarp| kernel_ns * warp.drift_ppb / 1_000_000_000;
        let truth = b.offset_ns + drift(b) - a.offset_ns - drift(a);
        let bound = |name: &str| {
            let bound = offset[name].as_i64();
            bound.unwrap_or_else(|| panic!("{name} of {fit}"))
        };
        assert!(bound("low_ns") <= truth && truth <= bound("high_ns"), "{truth}: {pair}");
        assert!(offset["jumps"].as_array().expect("jumps").is_empty(), "{pair}");
    }
    assert_eq!(fit["unrelated"].as_array().expect("hosts").len(), 0);

    // Edges are what they are on one host.
    let planted = folder.path().join("planted");
    write_planted(&place, &trace, &planted);
    let one = json(&["explain", "--json", planted.to_str().expect("plain")]);
    let all = json(&[&["explain", "--json"], &paths[..]].concat());
    assert_eq!(all["messages"], one["messages"]);
    // The clocks are known between the first and the last packets, and so are the paths.
    let across = check_planted(&all, &paths);
    assert!(across > REQUESTS, "{across}");
    for way in all["one_way"].as_array().expect("ways") {
        assert_eq!(way["before_sent"], 0, "{way}");
        assert!(way["p50_ns"].is_i64() && way["error"].is_object(), "{way}");
    }
}
