//! Clients that think for random times: a short sample of them is often luck.

use crate::MS;
use crate::clients_and_journal::ClientsAndJournal;

/// Number of requests of each client in a run of a few seconds.
const SHORT_RUN_REQUESTS: u64 = 135;
/// Number of requests of each client in a run of minutes.
const LONG_RUN_REQUESTS: u64 = 40 * SHORT_RUN_REQUESTS;

/// Mean gain over seeds of runs of `requests` of each client, and that of the worst run.
fn gains(clients: usize, requests: u64, think_ns: u64, is_exact: bool, seeds: u64) -> (f64, f64) {
    let requests = requests * clients as u64;
    let gains: Vec<f64> = (0..seeds)
        .map(|seed| {
            let world = || {
                let world = ClientsAndJournal::drawn(clients, 12_400_000, think_ns, 100_000, seed);
                if is_exact { world.seen_exactly() } else { world }
            };
            let stock = world().time_of(requests, false);
            stock as f64 / world().time_of(requests, true) as f64
        })
        .collect();
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    (mean, gains.into_iter().fold(f64::INFINITY, f64::min))
}

/// Checks the gains of clients that think for about as long as a commit takes, or longer.
fn check_losses(requests: u64, seeds: u64, least_mean: f64, least: f64) {
    for clients in [4, 8, 16] {
        for think_ms in [10, 20, 50] {
            for is_exact in [false, true] {
                let (mean, worst) = gains(clients, requests, think_ms * MS, is_exact, seeds);
                let case = format!("{clients} that think {think_ms} ms, exact {is_exact}");
                assert!(mean > least_mean, "{case}: {mean}");
                assert!(worst > least, "{case}: {worst}");
            }
        }
    }
}

#[test]
fn clients_that_think_for_as_long_as_a_commit_lose_one_percent() {
    check_losses(SHORT_RUN_REQUESTS, 20, 0.985, 0.97);
}

/// A gain that was luck is found out, and each trial that loses delays the next one for longer.
#[test]
fn clients_that_think_lose_nothing_over_minutes() {
    check_losses(LONG_RUN_REQUESTS, 4, 0.997, 0.995);
}

#[test]
fn clients_that_think_for_a_moment_gain() {
    for (clients, least) in [(4, 1.6), (8, 1.5), (16, 1.4)] {
        for is_exact in [false, true] {
            let (mean, worst) = gains(clients, SHORT_RUN_REQUESTS, MS, is_exact, 20);
            assert!(mean > least, "{clients} clients, exact {is_exact}: {mean}");
            assert!(worst > 0.95 * least, "{clients} clients, exact {is_exact}: {worst}");
        }
    }
}
