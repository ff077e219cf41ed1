//! Compares the kernel's integer law with its reference on random inputs.
//!
//! The reference computes rates and logarithms in floating point, the kernel in integers. The tests bound the
//! difference.

use luc_control::engagement::{self, EngagementVerdict};
use luc_control::pid::{PidGains, SteeredDelay};
use luc_control::setpoint::{self, ReturnProfile};
use luc_control::{auto_gate, commit_end, engagement::CheckBackoff};
use luc_control_kernel as kernel;
use proptest::collection::vec;
use proptest::prelude::*;

fn same(kernel: kernel::KernelEngagementVerdict, reference: EngagementVerdict) -> bool {
    matches!(
        (kernel, reference),
        (kernel::KernelEngagementVerdict::More, EngagementVerdict::More)
            | (kernel::KernelEngagementVerdict::Pays, EngagementVerdict::Pays)
            | (kernel::KernelEngagementVerdict::DoesNotPay, EngagementVerdict::DoesNotPay)
    )
}

/// A small random number generator, so that a scenario is given by its seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

/// Feeds both controllers a journal with random callers, think times and noise, in lockstep. Held commits serve all
/// callers at `gain` times the rate. Returns the number of epochs after which the controllers disagreed, if they did.
fn disagreement(seed: u64) -> Option<usize> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut callers = 1 + numbers.next(40) as u32;
    let commit_ns = 100_000 + numbers.next(12_000_000);
    let gain_percent = 70 + numbers.next(150);
    let (mut reference, mut law) = (auto_gate::AutoGate::default(), kernel::KernelAuto::default());
    let mut held = false;
    let (mut end_ns, mut completions) = (1_000_000_000, 0);
    for epoch in 0..400 {
        if numbers.next(150) == 0 {
            callers = 1 + numbers.next(40) as u32;
        }
        let took_ns = commit_ns - commit_ns / 16 + numbers.next(commit_ns / 8);
        let served = u64::from(callers).div_ceil(if held { 1 } else { 2 });
        end_ns += if held { took_ns * 200 / gain_percent } else { took_ns };
        let mut arrivals: Vec<u32> =
            (0..callers).map(|_| numbers.next(commit_ns / 4) as u32).collect();
        arrivals.sort_unstable();
        let released = if held { served as u32 } else { 0 };
        let plan = reference.on_epoch(&commit_end::CommitEnd {
            end_ns,
            completions,
            own_completions: completions,
            newcomers: completions,
            participants: callers,
            commit_ns: took_ns,
            released,
            exact: true,
            arrivals_ns: &arrivals,
            ..commit_end::CommitEnd::default()
        });
        let planned = law.on_epoch(&kernel::KernelEpoch {
            end_ns,
            completions,
            participants: callers,
            commit_ns: took_ns,
            released,
            arrivals_ns: &arrivals,
        });
        completions += served;
        let agree = plan.gated == planned.held
            && plan.set_point == planned.set_point
            && plan.return_ns == planned.return_ns
            && plan.patience_ns.abs_diff(planned.patience_ns) <= 2
            && plan.commit_ns.abs_diff(planned.commit_ns) <= 1
            && reference.phase() as u32 == law.phase()
            && reference.reason() as u32 == law.reason();
        if !agree {
            return Some(epoch);
        }
        held = plan.gated;
    }
    None
}

#[test]
fn auto_decides_as_its_reference_does() {
    let apart: Vec<(u64, usize)> =
        (1..=1_000).filter_map(|seed| Some((seed, disagreement(seed)?))).collect();
    // A rate that lies within rounding of a threshold may fall on either side.
    assert!(apart.len() <= 5, "{} of 1000 scenarios: {apart:?}", apart.len());
}

proptest! {
    #[test]
    fn the_steered_delay_is_the_same(
        feeds in vec((0u32..2_000, 0u32..2_000, 0u64..10_000_000), 1..100),
        low in 0u64..100_000,
        high in 0u64..50_000_000,
        start in 0u64..50_000_000,
    ) {
        let (mut reference, mut law) = (SteeredDelay::default(), kernel::KernelSteeredDelay::default());
        reference.restart(start);
        law.restart(start);
        for (set_point, measured, slope) in feeds {
            let expected = reference.update(&PidGains::PAPER, set_point, measured, slope, (low, high));
            let ns = law.update(&kernel::KernelGains::PAPER, set_point, measured, slope, (low, high));
            prop_assert!(expected.abs_diff(ns) <= 2, "{ns} ns, reference {expected}");
            prop_assert_eq!(ns, law.delay_ns());
        }
    }

    #[test]
    fn returns_and_set_point_are_the_same(
        feeds in vec((vec(0u32..50_000_000, 0..600), 0u64..2_000_000_000), 1..12),
        commit_ns in 1u64..50_000_000,
    ) {
        let (mut reference, mut law) = (ReturnProfile::default(), kernel::KernelReturnProfile::default());
        for (mut arrivals, span_ns) in feeds {
            arrivals.sort_unstable();
            reference.observe(&arrivals, span_ns);
            law.observe(&arrivals, span_ns);
            match (reference.best(commit_ns), law.best(commit_ns)) {
                (None, None) => {}
                (Some(expected), Some(best)) => {
                    prop_assert_eq!(expected.callers, best.callers);
                    prop_assert_eq!(expected.return_ns, best.return_ns);
                }
                (expected, best) => prop_assert!(false, "{:?} and {:?}", expected, best),
            }
        }
    }

    #[test]
    fn what_holding_is_worth_is_the_same(
        commit_ns in any::<u64>(), since_ns in any::<u64>(), gathered in any::<u32>(), missing in any::<u32>(),
    ) {
        prop_assert_eq!(
            setpoint::worth_holding_ns(commit_ns, since_ns, gathered, missing),
            kernel::worth_holding_ns(commit_ns, since_ns, gathered, missing)
        );
    }

    #[test]
    fn verdicts_are_the_same_but_for_rounding(rates in vec((1u64..100_000_000, 50u64..200), 1..13)) {
        // The reference, and its verdicts if every rate of held commits were a little higher or lower.
        let mut references = [(1.0, engagement::RatePairs::default()); 3];
        references[1].0 = 1.0 - 5e-5;
        references[2].0 = 1.0 + 5e-5;
        let mut law = kernel::KernelRatePairs::default();
        for (without, percent) in rates {
            let with = (without * percent / 100).max(1);
            let expected = references.each_mut().map(|(nudge, pairs)| pairs.add(with as f64 * *nudge, without as f64));
            let verdict = law.add(with, without);
            let distance = (references[0].1.gain().ln() - law.mean_log()).abs();
            prop_assert!(distance < 2e-5, "mean logarithms are {} apart", distance);
            prop_assert!(expected.iter().any(|e| same(verdict, *e)), "{:?}, reference {:?}", verdict, expected);
            // A trial ends with its first verdict.
            if verdict != kernel::KernelEngagementVerdict::More {
                break;
            }
        }
    }

    #[test]
    fn pauses_are_the_same(factors in vec(1u64..10, 1..20)) {
        let (mut reference, mut law) = (CheckBackoff::default(), kernel::KernelBackoff::default());
        for factor in factors {
            prop_assert_eq!(reference.lengthen(factor), law.lengthen(factor));
        }
    }

    #[test]
    fn a_short_commit_goes_when_its_callers_are_overdue(
        set_point in 1u32..500, return_ns in 0u64..20_000_000, patience_ns in 0u64..20_000_000,
        commit_ns in 1u64..20_000_000, end_ns in 0u64..1_000_000_000, first in 0u64..20_000_000,
        more in 0u64..20_000_000, gathered in 1u32..500,
    ) {
        let plan = kernel::KernelPlan { held: true, set_point, return_ns, patience_ns, commit_ns };
        let (first_ns, last_ns) = (end_ns + first, end_ns + first + more);
        let expected_ns = first_ns.max(end_ns + return_ns);
        let before = plan.deadline_ns(end_ns, first_ns, last_ns, expected_ns.saturating_sub(1), gathered);
        prop_assert_eq!(before, expected_ns);
        let after = plan.deadline_ns(end_ns, first_ns, last_ns, expected_ns, gathered);
        let missing = set_point.saturating_sub(gathered);
        let worth_ns = setpoint::worth_holding_ns(commit_ns, last_ns - end_ns, gathered, missing);
        prop_assert_eq!(after, (expected_ns + patience_ns).min(last_ns + worth_ns));
    }
}
