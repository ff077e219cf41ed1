//! `luc fleet` end to end: a planted exchange between network namespaces is recorded once, and explained. Needs root,
//! iproute2 and BTF; skipped, with the reason, where they are missing.

#[path = "../common/mod.rs"]
mod common;
mod exchange;
#[allow(dead_code, reason = "it has more than these tests use")]
#[path = "../record_fleet/place.rs"]
mod place;
mod recording;

use std::path::Path;
use std::process::{Command, Output};

use common::LUC;
use exchange::{ASKED, MORE, REQUESTS};
use place::Place;
use recording::Recording;
use serde_json::Value;

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
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value}: no number"))
}

#[test]
fn a_planted_exchange_is_explained() {
    if !has_fleet() {
        return;
    }
    let Some(place) = Place::new() else {
        return;
    };
    let recording = Recording::start();
    exchange::exchange(&place);
    let trace = recording.stop();
    let path = trace.path();
    let path = path.to_str().expect("plain");
    let all = json(&["explain", path, "--json"]);
    println!("{}", common::stdout(&fleet(&["explain", path])));
    let services = all["services"].as_array().expect("services");
    for port in [7002, 7003] {
        let of_port = services.iter().filter(|service| service["port"] == port);
        let requests: u64 = of_port.map(|service| number(&service["answered"])).sum();
        assert_eq!(requests, 2 * REQUESTS as u64, "{services:?}");
    }
    let _ = (ASKED, MORE);
}
