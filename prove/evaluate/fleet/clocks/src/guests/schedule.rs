//! Drawn changes of a guest's clock, the same for the same seed.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use luc_stats::seeded_random;
use rand::RngExt as _;

use super::scenario::Scenario;

/// Maximum difference of a clock from the nominal rate, ppb.
const MAX_OFFSET_PPB: f64 = 100_000.0;
/// Amplitude of the bend of a rate by temperature, ppb.
const BEND_PPB: f64 = 20_000.0;
/// Maximum change of a rate by a load step, ppb.
const MAX_STEP_PPB: f64 = 30_000.0;
/// Range of the time between load steps, s.
const STEP_INTERVAL_S: std::ops::Range<f64> = 3.0..12.0;
/// Maximum of rates that have nothing to do with each other, ppb: what adjtimex allows.
const MAX_RATE_PPB: f64 = 500_000.0;
/// Times at which CLOCK_REALTIME is set, as shares of a run, and the steps in ns.
const CLOCK_STEPS: [(f64, i64); 2] = [(0.35, 700_000_000), (0.65, -400_000_000)];

/// Returns the schedule of a host in the format of `inside.c`.
pub(super) fn of(scenario: &Scenario, host: usize, seed: u64, seconds: f64) -> String {
    let mut lines: Vec<(f64, String)> = Vec::new();
    if let Some((least_s, most_s)) = scenario.rates_last_s[host] {
        let mut random = seeded_random::stream(seed, host as u64);
        let base = random.random_range(-MAX_OFFSET_PPB..MAX_OFFSET_PPB);
        let period_s: f64 = random.random_range(15.0..60.0);
        let phase = random.random_range(0.0..TAU);
        let (mut at_s, mut load, mut next_load_s) = (0.0, 0.0, 0.0);
        while at_s < seconds {
            if at_s >= next_load_s {
                load = random.random_range(-MAX_STEP_PPB..MAX_STEP_PPB);
                next_load_s = at_s + random.random_range(STEP_INTERVAL_S);
            }
            let rate = if scenario.are_wild {
                random.random_range(-MAX_RATE_PPB..MAX_RATE_PPB)
            } else {
                base + BEND_PPB * (TAU * at_s / period_s + phase).sin() + load
            };
            lines.push((at_s, format!("rate {}", rate as i64)));
            at_s += random.random_range(least_s..most_s);
        }
    }
    // With NTP the server's time is set, and its client follows.
    if scenario.has_steps && host == usize::from(!scenario.has_ntp) {
        lines.extend(CLOCK_STEPS.map(|(share, ns)| (share * seconds, format!("step {ns}"))));
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = String::new();
    for (at_s, what) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:.0} {what}", at_s * 1e6);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::scenario::SCENARIOS;

    #[test]
    fn schedules_are_in_order_and_repeat() {
        for scenario in &SCENARIOS {
            for host in 0..scenario.hosts {
                let text = of(scenario, host, 3, 40.0);
                assert_eq!(text, of(scenario, host, 3, 40.0));
                let times = text.lines().map(|line| {
                    let at_us = line.split(' ').next().expect("a time");
                    at_us.parse::<u64>().expect("a number")
                });
                assert!(times.is_sorted(), "{}: {text}", scenario.name);
                assert!(text.is_empty() == (scenario.has_ntp && host == 1), "{text}");
            }
        }
    }
}
