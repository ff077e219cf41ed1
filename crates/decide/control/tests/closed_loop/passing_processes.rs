//! Clients that are one process after the other, like scripts that make commits: no process returns, but others follow.

use crate::MS;
use crate::clients_and_journal::ClientsAndJournal;

/// Number of requests of each client.
const REQUESTS_PER_CLIENT: u64 = 200;

/// Mean gain over seeds, and the number of trials.
fn gain(clients: usize, commit_ns: u64, think_ns: u64, seeds: std::ops::Range<u64>) -> (f64, f64) {
    let requests = REQUESTS_PER_CLIENT * clients as u64;
    let runs: Vec<(f64, f64)> = seeds
        .map(|seed| {
            let world =
                || ClientsAndJournal::drawn(clients, commit_ns, think_ns, 100_000, seed).passing();
            let stock = world().time_of(requests, false);
            let mut gated = world();
            let with = gated.time_of(requests, true);
            (stock as f64 / with as f64, f64::from(gated.auto.trials().0))
        })
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(|run| run.0), mean(|run| run.1))
}

/// Callers that follow one another at once fill a round as well as those that return.
#[test]
fn a_closed_population_gains() {
    for (clients, commit_ms, least) in [
        (2, 1, 1.35),
        (2, 13, 1.55),
        (3, 4, 1.45),
        (4, 32, 1.45),
        (8, 13, 1.35),
        (16, 13, 1.25),
        (32, 32, 1.2),
        (64, 32, 1.1),
    ] {
        let (gain, trials) = gain(clients, commit_ms * MS, commit_ms * MS / 10, 100..110);
        let case = format!("{clients} clients, {commit_ms} ms");
        assert!(gain > least && trials >= 1.0, "{case}: {gain}, {trials} trials");
    }
}

/// Callers arrive independently, so a round that waits for them loses.
#[test]
fn an_open_population_loses_one_percent_at_most() {
    for clients in [2, 3, 4, 8, 16, 32, 64] {
        for commit_ms in [1, 4, 13, 32] {
            for think_tenths in [4, 8, 16, 40] {
                let think_ns = commit_ms * MS * think_tenths / 10;
                let (gain, _) = gain(clients, commit_ms * MS, think_ns, 100..110);
                assert!(gain > 0.985, "{clients} clients, {commit_ms} ms, {think_ns} ns: {gain}");
            }
        }
    }
}
