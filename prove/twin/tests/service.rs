//! The service's answers, and the completeness of its truth.

mod common;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Stdio;

use common::{command, folder, is_root, run, wait_for_processes};
use luc_twin::truth::{Direction, Folder, MessageKind, Role, WorkKind, streams, trees};
use luc_twin::{Corpus, Engine};
use rustix::time::{ClockId, clock_gettime};

const CLIENTS: u32 = 4;
const REQUESTS: u32 = 30;
const HITS: usize = 10;
const DOCUMENTS: u32 = 3_000;

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["--documents", "3000", "--clients", "4", "--requests", "30"];
    all.extend(more);
    all
}

/// The corpus of a run with these options.
fn corpus(seed: u64, partitions: usize) -> Corpus {
    Corpus { seed, documents: DOCUMENTS, vocabulary: 20_000, weights: vec![1; partitions] }
}

/// Checks the answers, trees and streams of a run.
fn check(folder: &Folder, seed: u64, back_ends: usize) {
    let parted = corpus(seed, back_ends);
    let whole = Engine::build(&corpus(seed, 1), 0).expect("built");
    let trees = trees(folder).expect("whole");
    assert_eq!(trees.len(), (CLIENTS * REQUESTS) as usize);
    let client = folder.of(Role::Client).next().expect("clients");
    let mut answered = BTreeSet::new();
    for answer in client.answers() {
        let words = parted.query(answer.client, answer.sequence);
        let hits = whole.search(&words, HITS);
        let expected: Vec<u32> = hits.iter().map(|hit| hit.document).collect();
        let documents = &answer.documents[..usize::from(answer.hits)];
        assert_eq!(documents, expected, "{words:?}");
        answered.insert(answer.request);
        let tree = trees.iter().find(|tree| tree.query.request == answer.request).expect("a tree");
        let owners: BTreeSet<String> = documents
            .iter()
            .map(|document| format!("back-end-{}", parted.owner(*document)))
            .collect();
        let asked: Vec<String> = tree
            .snippets
            .iter()
            .map(|question| folder.processes[question.host].header.host.clone())
            .collect();
        assert_eq!(asked, Vec::from_iter(owners));
        assert_eq!(tree.searches.len(), back_ends);
    }
    assert_eq!(answered.len(), trees.len());
    assert!(streams(folder).expect("whole streams") > 0);
    let namespaces: BTreeSet<u64> =
        folder.processes.iter().map(|process| process.header.namespace).collect();
    assert_eq!(namespaces.len(), back_ends + 2);
}

#[test]
fn two_partitions_answer_as_one_index() {
    if !is_root() {
        return;
    }
    let folder = run(&arguments(&["--seed", "7"]));
    check(&folder, 7, 2);
    // Each connection has a thread of its own at the front end, which also asks the back ends.
    let front_end = folder.of(Role::FrontEnd).next().expect("a front end");
    let threads: BTreeSet<u32> = front_end.messages().map(|message| message.thread).collect();
    assert_eq!(threads.len(), CLIENTS as usize);
}

#[test]
fn workers_of_a_pool_take_from_a_queue() {
    if !is_root() {
        return;
    }
    let options = ["--serve", "pool:2", "--back-ends", "3", "--seed", "8"];
    let folder = run(&arguments(&options));
    check(&folder, 8, 3);
    let front_end = folder.of(Role::FrontEnd).next().expect("a front end");
    let threads = |kind| -> BTreeSet<u32> {
        let messages = front_end.messages().filter(|message| message.kind == kind);
        messages.map(|message| message.thread).collect()
    };
    assert_eq!(threads(MessageKind::Query).len(), CLIENTS as usize);
    assert_eq!(threads(MessageKind::Search).len(), 2);
    assert!(threads(MessageKind::Search).is_disjoint(&threads(MessageKind::Query)));
    assert_eq!(threads(MessageKind::Query), threads(MessageKind::Answer));
    let queued = front_end.work().filter(|work| work.kind == WorkKind::Queue);
    assert_eq!(queued.count(), (CLIENTS * REQUESTS) as usize);
}

#[test]
fn workers_may_answer_themselves() {
    if !is_root() {
        return;
    }
    let folder = run(&arguments(&["--serve", "pool:2:worker", "--seed", "9"]));
    check(&folder, 9, 2);
    let front_end = folder.of(Role::FrontEnd).next().expect("a front end");
    for answer in front_end.messages().filter(|message| {
        message.kind == MessageKind::Answer && message.direction == Direction::Sent
    }) {
        let worker = front_end
            .work()
            .find(|work| work.request == answer.request && work.kind == WorkKind::Queue)
            .expect("a worker");
        assert_eq!(worker.thread, answer.thread);
    }
}

#[test]
fn several_requests_are_in_flight_on_one_connection() {
    if !is_root() {
        return;
    }
    let folder = run(&arguments(&[
        "--serve",
        "shared:4",
        "--seed",
        "10",
        "--delay-us",
        "2000",
        "--think-us",
        "0",
    ]));
    check(&folder, 10, 2);
    // One stream there and one back: of the clients, and of each back end.
    assert_eq!(streams(&folder).expect("whole"), 2 * (1 + 2));
    let mut searches: Vec<_> = trees(&folder).expect("whole");
    searches.sort_by_key(|tree| tree.searches[0].asked_ns);
    let overlapping = searches
        .windows(2)
        .filter(|pair| pair[1].searches[0].asked_ns < pair[0].searches[0].gathered_ns);
    assert!(overlapping.count() > 0);
}

#[test]
fn times_of_an_open_loop_do_not_depend_on_answers() {
    if !is_root() {
        return;
    }
    let options = ["--per-s", "400", "--seed", "11", "--delay-us", "1000"];
    let folder = run(&arguments(&options));
    check(&folder, 11, 2);
    let client = folder.of(Role::Client).next().expect("clients");
    // A client that waited for answers would never ask later than it was due.
    for answer in client.answers() {
        let asked = client.messages().find(|message| {
            message.request == answer.request && message.direction == Direction::Sent
        });
        assert!(asked.expect("asked").at_ns >= answer.due_ns);
    }
}

#[test]
fn queries_begin_when_somebody_says_so() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let truth = folder.path().join("truth");
    let mut run = command(&truth, &arguments(&["--wait", "--plant", "lock"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for_processes(&mut run);
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    // Who records begins here: the lock is held already.
    let mut input = run.stdin.take().expect("its input");
    writeln!(input).expect("it waits");
    assert!(run.wait().expect("ended").success());
    let folder = Folder::read(&truth).expect("read");
    let trees = trees(&folder).expect("whole");
    assert!(trees[0].query.asked_ns > now_ns);
    let holds = folder.planted().filter(|(_, hold)| hold.from_ns < now_ns);
    assert_eq!(holds.count(), 1);
}

#[test]
fn a_seed_asks_the_same_again() {
    if !is_root() {
        return;
    }
    let answers = |seed: &str| {
        let folder = run(&arguments(&["--seed", seed]));
        let client = folder.of(Role::Client).next().expect("clients");
        let mut answers: Vec<_> = client
            .answers()
            .map(|answer| (answer.request, answer.documents, answer.snippet_bytes))
            .collect();
        answers.sort_unstable();
        answers
    };
    let first = answers("3");
    assert_eq!(first, answers("3"));
    assert_ne!(first, answers("4"));
}
