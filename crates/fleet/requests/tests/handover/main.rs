//! Requests through pools: the share of calls that get the right cause.

mod across_hosts;
mod search_service;
mod server_simulation;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, CallCause, ConnectionEnd, Connections, EndId, Exchange, FleetWaits, HandOver,
    MessageRow, NumberedForest, RequestId, Requests, ThreadWait, TreeError,
};
use luc_stats::seeded_random;
use proptest::prelude::*;
use rand::RngExt;
use search_service::{FRONT, FrontEndThreads, SearchService};
use server_simulation::ServerSimulation;

/// Causes of a front end's calls.
#[derive(Debug, Default)]
struct Score {
    right: usize,
    wrong: usize,
    unknown: usize,
    by: BTreeMap<HandOver, (usize, usize)>,
}

impl Score {
    fn all(&self) -> f64 {
        (self.right + self.wrong + self.unknown) as f64
    }
}

fn analysed(simulation: &ServerSimulation) -> (Connections, Requests) {
    let ends = simulation.ends();
    let connections = Connections::pair(&ends, &simulation.messages, &[]);
    assert!(connections.unpaired.is_empty());
    let found = Requests::find(
        &ends,
        &connections,
        &simulation.messages,
        &FleetWaits::of(&simulation.waits).expect("few"),
        |_| true,
    );
    assert!(found.without_role.is_empty());
    (connections, found)
}

/// Returns the number that each incoming request's client has planted.
fn truth_of_incoming(
    simulation: &ServerSimulation,
    connections: &Connections,
    found: &Requests,
) -> Vec<u64> {
    let peers: HashMap<EndId, EndId> = connections
        .pairs
        .iter()
        .flat_map(|pair| [(pair.ends[0], pair.ends[1]), (pair.ends[1], pair.ends[0])])
        .collect();
    let truth = |end: EndId, first_byte| simulation.request_at(peers[&end], first_byte);
    let all = found.incoming.iter().map(|incoming| &incoming.exchange);
    all.map(|exchange| truth(exchange.end, exchange.first_byte)).collect()
}

fn add_score(simulation: &ServerSimulation, score: &mut Score) {
    let (connections, found) = analysed(simulation);
    add_score_of(simulation, &connections, &found, score);
}

fn add_score_of(
    simulation: &ServerSimulation,
    connections: &Connections,
    found: &Requests,
    score: &mut Score,
) {
    let incoming = truth_of_incoming(simulation, connections, found);
    for outgoing in &found.outgoing {
        let exchange = &outgoing.exchange;
        if exchange.end.host != HostId(FRONT as u32) {
            assert_eq!(outgoing.cause, None, "clients ask for themselves");
            continue;
        }
        let truth = simulation.request_at(exchange.end, exchange.first_byte);
        match outgoing.cause {
            None => score.unknown += 1,
            Some(CallCause { request, evidence }) => {
                let by = score.by.entry(evidence).or_default();
                if incoming[request.0] == truth {
                    score.right += 1;
                    by.0 += 1;
                } else {
                    score.wrong += 1;
                    by.1 += 1;
                }
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn saturated_pools_hand_over_as_they_should() {
    // (mode, clients, how long a lock is held, at least this share right, at most this share wrong)
    let cases = [
        (FrontEndThreads::SameThread, 8, 0, 0.99, 0.005),
        (FrontEndThreads::ThreadPerRequest, 8, 0, 0.99, 0.005),
        (FrontEndThreads::Pool(2), 8, 0, 0.99, 0.005),
        (FrontEndThreads::Pool(4), 16, 0, 0.99, 0.005),
        (FrontEndThreads::PoolAnswers(2), 8, 0, 0.99, 0.005),
        (FrontEndThreads::PoolAnswers(4), 16, 0, 0.99, 0.005),
        (FrontEndThreads::Scatter(2), 8, 0, 0.99, 0.005),
        (FrontEndThreads::Scatter(4), 16, 0, 0.99, 0.005),
        // Of a result for which nobody waits yet an idle pool tells nothing.
        (FrontEndThreads::Scatter(16), 8, 0, 0.97, 0.005),
        // Wake-ups for a lock look like results.
        (FrontEndThreads::Pool(4), 16, 20_000, 0.98, 0.005),
        (FrontEndThreads::Pool(16), 8, 20_000, 0.98, 0.005),
        (FrontEndThreads::PoolAnswers(4), 16, 20_000, 0.98, 0.005),
        (FrontEndThreads::Scatter(4), 16, 20_000, 0.98, 0.005),
        // 32 threads that queue for the lock for two thirds of the time: some wake-ups cannot be told from results.
        (FrontEndThreads::Scatter(16), 16, 20_000, 0.9, 0.01),
    ];
    for (mode, clients, lock_ns, least_right, most_wrong) in cases {
        let service = SearchService { mode, clients, back_ends: 3, think_ns: 500_000, lock_ns };
        let mut score = Score::default();
        for seed in 0..2 {
            add_score(&service.simulate(seed, SECOND * 6 / 10), &mut score);
        }
        let (right, wrong) = (score.right as f64 / score.all(), score.wrong as f64 / score.all());
        println!(
            "{mode:?}, {clients} clients, lock {lock_ns} ns: {} calls, {:.2} % right, {:.2} % wrong, (right, wrong) by \
             evidence {:?}",
            score.all(),
            100.0 * right,
            100.0 * wrong,
            score.by
        );
        assert!(score.all() > 1000.0);
        assert!(right >= least_right && wrong <= most_wrong, "{mode:?} {score:?}");
    }
}

#[test]
fn lost_rows_leave_causes_unknown() {
    for mode in [
        FrontEndThreads::SameThread,
        FrontEndThreads::Pool(4),
        FrontEndThreads::PoolAnswers(4),
        FrontEndThreads::Scatter(4),
    ] {
        let service =
            SearchService { mode, clients: 16, back_ends: 3, think_ns: 500_000, lock_ns: 0 };
        let mut simulation = service.simulate(17, SECOND * 6 / 10);
        let mut random = seeded_random::stream(32, 0);
        simulation.messages.retain(|_| !random.random_bool(0.01));
        simulation.waits.retain(|_| !random.random_bool(0.01));
        let mut score = Score::default();
        add_score(&simulation, &mut score);
        let (right, wrong) = (score.right as f64 / score.all(), score.wrong as f64 / score.all());
        println!(
            "{mode:?}, 1 % of rows lost: {:.2} % right, {:.2} % wrong {score:?}",
            100.0 * right,
            100.0 * wrong
        );
        // A merged request has the truth of its first bytes, so that some of what is wrong is the test's.
        assert!(right >= 0.94 && wrong <= 0.01);
    }
}

#[test]
fn summed_waits_tell_nothing() {
    let cases = [
        (FrontEndThreads::SameThread, 0.99),
        (FrontEndThreads::PoolAnswers(4), 0.99),
        (FrontEndThreads::ThreadPerRequest, 0.99),
        // Only wake-ups would tell.
        (FrontEndThreads::Pool(4), 0.0),
        (FrontEndThreads::Scatter(4), 0.0),
    ];
    for (mode, least_right) in cases {
        let service =
            SearchService { mode, clients: 16, back_ends: 3, think_ns: 500_000, lock_ns: 0 };
        let mut simulation = service.simulate(18, SECOND * 6 / 10);
        simulation.waits.retain(|wait| wait.on_ns - wait.off_ns >= 1_000_000);
        let ends = simulation.ends();
        let connections = Connections::pair(&ends, &simulation.messages, &[]);
        let find = |is_complete| {
            let found = Requests::find(
                &ends,
                &connections,
                &simulation.messages,
                &FleetWaits::of(&simulation.waits).expect("few"),
                |_| is_complete,
            );
            let mut score = Score::default();
            add_score_of(&simulation, &connections, &found, &mut score);
            (score.right as f64 / score.all(), score.wrong as f64 / score.all())
        };
        let (believed, known) = (find(true), find(false));
        println!(
            "{mode:?}, without waits below 1 ms: right and wrong {known:.4?}; {believed:.4?} if they are believed to be all"
        );
        assert!(known.0 >= least_right && known.1 <= 0.005);
    }
}

#[test]
fn a_name_in_the_bytes_is_the_best_evidence() {
    let service = SearchService {
        mode: FrontEndThreads::SameThread,
        clients: 2,
        back_ends: 2,
        think_ns: 500_000,
        lock_ns: 0,
    };
    let mut simulation = service.simulate(3, SECOND / 20);
    let (connections, before) = analysed(&simulation);
    let truth = truth_of_incoming(&simulation, &connections, &before);
    let first = before
        .outgoing
        .iter()
        .find_map(|outgoing| outgoing.cause)
        .expect("a call of the front end")
        .request;
    let exchange = before.incoming[first.0].exchange;
    let call = before
        .outgoing
        .iter()
        .find(|outgoing| outgoing.cause.is_some_and(|cause| cause.request == first));
    let call = call.expect("a call").exchange;
    for row in &mut simulation.messages {
        for named in [exchange, call] {
            if row.end() == named.end
                && row.first_byte == named.first_byte
                && row.at_ns == named.asked.at_ns
            {
                row.token = Some(77);
            }
        }
    }
    let (_, after) = analysed(&simulation);
    let by_token: Vec<RequestId> = after
        .outgoing
        .iter()
        .filter_map(|outgoing| outgoing.cause)
        .filter(|cause| cause.evidence == HandOver::Token)
        .map(|cause| cause.request)
        .collect();
    assert_eq!(by_token, [first]);
    assert_eq!(truth.len(), after.incoming.len());
}

/// Returns the same rows with other names of hosts, in another order.
fn renamed(
    simulation: &ServerSimulation,
    seed: u64,
) -> (Vec<ConnectionEnd>, Vec<MessageRow>, Vec<ThreadWait>) {
    let mut random = seeded_random::stream(31, seed);
    let rename = |host: HostId| HostId(1000 - 7 * host.0);
    let mut ends = simulation.ends();
    let (mut messages, mut waits) = (simulation.messages.clone(), simulation.waits.clone());
    ends.iter_mut().for_each(|end| end.host = rename(end.host));
    messages.iter_mut().for_each(|row| row.host = rename(row.host));
    waits.iter_mut().for_each(|wait| wait.host = rename(wait.host));
    for at in (1..messages.len()).rev() {
        messages.swap(at, random.random_range(0..=at));
    }
    for at in (1..waits.len()).rev() {
        waits.swap(at, random.random_range(0..=at));
    }
    ends.reverse();
    (ends, messages, waits)
}

#[test]
fn neither_names_of_hosts_nor_the_order_of_rows_matter() {
    for (seed, mode) in
        [FrontEndThreads::Scatter(2), FrontEndThreads::PoolAnswers(2), FrontEndThreads::SameThread]
            .into_iter()
            .enumerate()
    {
        let service =
            SearchService { mode, clients: 6, back_ends: 2, think_ns: 300_000, lock_ns: 5000 };
        let simulation = service.simulate(seed as u64, SECOND / 10);
        let (_, before) = analysed(&simulation);
        let (ends, messages, waits) = renamed(&simulation, seed as u64);
        let connections = Connections::pair(&ends, &messages, &[]);
        let waits = FleetWaits::of(&waits).expect("few");
        let after = Requests::find(&ends, &connections, &messages, &waits, |_| true);
        // Each call with its cause, by connection and byte: these are the same under any name.
        let plain = |found: &Requests| -> BTreeSet<_> {
            let all = found.outgoing.iter().map(|outgoing| {
                let place = |exchange: &Exchange| {
                    (exchange.end.connection, exchange.first_byte, exchange.asked.at_ns)
                };
                let cause = outgoing.cause.map(|CallCause { request, evidence }| {
                    (place(&found.incoming[request.0].exchange), evidence)
                });
                (place(&outgoing.exchange), cause)
            });
            all.collect()
        };
        assert_eq!(plain(&before), plain(&after));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn forged_rows_make_no_cause_in_the_future(seed in 0_u64..4, edits in prop::collection::vec(any_edit(), 1..40)) {
        let modes = [FrontEndThreads::Scatter(2), FrontEndThreads::PoolAnswers(2), FrontEndThreads::SameThread, FrontEndThreads::Pool(2)];
        let service = SearchService { mode: modes[seed as usize], clients: 4, back_ends: 2, think_ns: 300_000, lock_ns: 5000 };
        let simulation = service.simulate(seed, SECOND / 100);
        let (mut ends, mut messages, mut waits) =
            (simulation.ends(), simulation.messages.clone(), simulation.waits.clone());
        for (what, place, number) in edits {
            let (row, end) = (place % messages.len(), place % ends.len());
            let wait = place % waits.len();
            match what {
                0 => messages[row].at_ns = number,
                1 => messages[row].first_byte = number,
                2 => messages[row].bytes = number,
                3 => messages[row].connection = number % 9,
                4 => messages[row].thread.id = number as u32 % 5 + 1000,
                5 => { messages.remove(row); }
                6 => messages.push(MessageRow { way: ByteDirection::Sent, ..messages[row] }),
                7 => waits[wait].woken_ns = Some(number),
                8 => waits[wait].waker = Some(waits[number as usize % waits.len()].thread),
                9 => waits[wait].off_ns = number,
                10 => ends[end].opener = None,
                11 => ends[end].own_isn = None,
                12 => messages[row].token = Some(number % 2),
                _ => messages[row].host = HostId(number as u32 % 4),
            }
        }
        let connections = Connections::pair(&ends, &messages, &[]);
        let waits = FleetWaits::of(&waits).expect("few");
        let found = Requests::find(&ends, &connections, &messages, &waits, |_| true);
        for outgoing in &found.outgoing {
            if let Some(cause) = outgoing.cause {
                let cause = &found.incoming[cause.request.0].exchange;
                prop_assert_eq!(cause.end.host, outgoing.exchange.end.host);
                prop_assert!(cause.asked.at_ns <= outgoing.exchange.asked.at_ns);
                if let Some(answer) = cause.answer {
                    prop_assert!(outgoing.exchange.asked.at_ns <= answer.last.at_ns);
                }
            }
        }
        // A forest, or an error that names a node.
        match NumberedForest::new(&found.parents().expect("few nodes")) {
            Ok(forest) => prop_assert_eq!(forest.len(), found.incoming.len() + found.outgoing.len()),
            Err(error) => prop_assert!(matches!(error, TreeError::Cycle(_))),
        }
    }
}

/// A change of a row: its kind, the row, and the new value.
fn any_edit() -> impl Strategy<Value = (u8, usize, u64)> {
    let number = prop_oneof![any::<u64>(), 0_u64..100, Just(u64::MAX), Just(u64::MAX - 1)];
    (0_u8..14, any::<usize>(), number)
}
