//! Assumptions of a fit.

use crate::error::ClockError;

/// Settings of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Maximum change of the offset's rate in a second, ns/s². The bounds are guaranteed if it holds. A value that is
    /// too small does not show. One that is too large costs little, as the error grows with its cube root.
    pub kappa_ns_per_s2: f64,
    /// Time on either side of a knot whose messages are used, s; rounded up to whole steps.
    pub window_s: f64,
    /// Time from knot to knot, s.
    pub step_s: f64,
    /// Maximum error of time stamps, ns, both hosts together: [`ClockMap::error_ns`](crate::ClockMap::error_ns) of
    /// both.
    pub timestamp_error_ns: f64,
}

impl Default for FitOptions {
    /// 5 µs/s², ample for a crystal and its temperature; 2 s; 0.25 s; exact time stamps.
    fn default() -> Self {
        Self { kappa_ns_per_s2: 5000.0, window_s: 2.0, step_s: 0.25, timestamp_error_ns: 0.0 }
    }
}

/// Minimum length of a step: knots are then never more than a few for each ms.
const MIN_STEP_S: f64 = 1e-3;
/// Maximum length of a step and of a window: a day.
const MAX_WINDOW_S: f64 = 86_400.0;
/// Maximum number of steps on either side of a knot.
const MAX_STEPS: f64 = 10_000.0;

/// [`FitOptions`], checked and in whole ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedFitOptions {
    pub(crate) kappa: f64,
    pub(crate) step_ns: i64,
    /// Number of steps on either side of a knot.
    pub(crate) steps: i64,
    pub(crate) timestamp_error_ns: f64,
}

impl FitOptions {
    pub(crate) fn check(&self) -> Result<CheckedFitOptions, ClockError> {
        let positive = |name, value: f64| {
            let is_good = value.is_finite() && value > 0.0;
            is_good.then_some(value).ok_or(ClockError::Setting { name, value })
        };
        let kappa = positive("kappa_ns_per_s2", self.kappa_ns_per_s2)?;
        let step_s = positive("step_s", self.step_s)?.clamp(MIN_STEP_S, MAX_WINDOW_S);
        let window_s = positive("window_s", self.window_s)?.min(MAX_WINDOW_S);
        let error = self.timestamp_error_ns;
        if error != 0.0 {
            positive("timestamp_error_ns", error)?;
        }
        Ok(CheckedFitOptions {
            kappa,
            step_ns: (step_s * 1e9).round() as i64,
            steps: (window_s / step_s).ceil().clamp(1.0, MAX_STEPS) as i64,
            timestamp_error_ns: error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_meaning_are_refused() {
        let with = |change: fn(&mut FitOptions, f64), value| {
            let mut options = FitOptions::default();
            change(&mut options, value);
            options.check()
        };
        let changes: [fn(&mut FitOptions, f64); 4] = [
            |options, value| options.kappa_ns_per_s2 = value,
            |options, value| options.window_s = value,
            |options, value| options.step_s = value,
            |options, value| options.timestamp_error_ns = value,
        ];
        for change in changes {
            for value in [f64::NAN, f64::INFINITY, -1.0] {
                assert!(with(change, value).is_err(), "{value}");
            }
        }
        assert!(with(changes[0], 0.0).is_err());
        assert!(with(changes[3], 0.0).is_ok());
        let smallest = with(changes[2], 1e-300).expect("clamped");
        assert_eq!((smallest.step_ns, smallest.steps), (1_000_000, 2000));
    }
}
