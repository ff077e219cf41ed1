//! Counts of a thread while it serves a request are found in the request.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use super::{has_fleet, json, number};
use crate::common::fleet_recording::FleetRecording;
use crate::common::is_root;

const REQUESTS: usize = 8;
const PAGE: usize = 4096;

/// Page faults of this thread so far, by the kernel.
fn faults() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/stat").expect("readable");
    // The name, in parentheses, may have spaces.
    let fields = text.rsplit_once(')').expect("a name").1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |place: usize| fields[place].parse::<u64>().expect("a number");
    field(7) + field(9)
}

/// Answers requests; returns how many page faults each cost. A request of n bytes needs n new pages.
fn serve(mut server: TcpStream) -> Vec<u64> {
    let mut costs = Vec::new();
    // A thread that has never run has no rows, and its wait for a processor is brief.
    server.read_exact(&mut [0]).expect("received");
    server.write_all(&[0]).expect("sent");
    for number in 1..=REQUESTS {
        let bytes = 500 * number;
        server.read_exact(&mut vec![0; bytes]).expect("received");
        let before = faults();
        let mut memory: Vec<u8> = Vec::with_capacity(bytes * PAGE);
        memory.resize(bytes * PAGE, 1);
        // What is freed may be used again without a fault.
        std::mem::forget(memory);
        costs.push(faults() - before);
        server.write_all(&[0; 3]).expect("sent");
    }
    costs
}

#[test]
fn page_faults_of_a_request_are_those_of_the_thread_that_serves_it() {
    if !is_root() || !has_fleet() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).expect("connected");
    let (server, _) = listener.accept().expect("accepted");
    let recording = FleetRecording::start(&["--all", "--counters=page-faults"]);
    let server = thread::spawn(move || serve(server));
    client.write_all(&[0]).expect("sent");
    client.read_exact(&mut [0]).expect("answered");
    for number in 1..=REQUESTS {
        client.write_all(&vec![0; 500 * number]).expect("sent");
        client.read_exact(&mut [0; 3]).expect("answered");
    }
    let costs = server.join().expect("served");
    let trace = recording.stop();
    let path = trace.path();
    let path = path.to_str().expect("plain");
    let all = json(&["explain", path, "--json"]);
    let (mut found, mut cost) = (0, 0);
    for slowest in all["slowest"].as_array().expect("requests") {
        let which = number(&slowest["number"]).to_string();
        let report = json(&["explain", path, "--json", "--request", &which]);
        let call = &report["request"]["calls"][0];
        let bytes = number(&call["bytes"]) as usize;
        if !bytes.is_multiple_of(500) || call["address"] != address.to_string() {
            continue;
        }
        cost += costs[bytes / 500 - 1];
        let counted = report["request"]["counted"].as_array().into_iter().flatten();
        let faults = counted.filter(|count| count["event"] == "page-faults");
        found += faults.map(|count: &Value| number(&count["value"])).sum::<u64>();
    }
    // All that this thread does in its requests takes no other pages than these, but rows end a little after messages.
    assert!(cost > costs.iter().sum::<u64>() / 2, "{}", all["slowest"]);
    assert!(found > cost * 2 / 3 && found < cost * 3 / 2, "{found} counted, {cost} by the kernel");
}
