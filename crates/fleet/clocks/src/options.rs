//! What a fit takes for granted.

use crate::error::ClockError;

/// Settings of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// The most that the offset's rate changes in a second, ns/s². The bounds are guaranteed if it holds. A value that
    /// is too small does not show; one that is too large costs little, as the error grows with its cube root.
    pub kappa_ns_per_s2: f64,
    /// How far on either side of a knot messages are looked at, s; rounded up to whole steps.
    pub window_s: f64,
    /// From knot to knot, s.
    pub step_s: f64,
    /// By how much a time stamp may be wrong, ns, both hosts together: what [`ClockMap`](crate::ClockMap) says of both.
    pub timestamp_error_ns: f64,
}

impl Default for FitOptions {
    /// 5 µs/s², ample for a crystal and its temperature; 2 s; 0.25 s; exact time stamps.
    fn default() -> Self {
        Self { kappa_ns_per_s2: 5000.0, window_s: 2.0, step_s: 0.25, timestamp_error_ns: 0.0 }
    }
}

/// A step is at least this long: knots are then never more than a few for each ms.
const MIN_STEP_S: f64 = 1e-3;
/// The longest step and window, a day.
const MAX_S: f64 = 86_400.0;
/// The most steps in a window.
const MAX_STEPS: f64 = 10_000.0;

/// The same, checked and in whole ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) kappa: f64,
    pub(crate) step_ns: i64,
    /// Steps on either side of a knot.
    pub(crate) steps: i64,
    pub(crate) timestamp_error_ns: f64,
}

impl FitOptions {
    pub(crate) fn checked(&self) -> Result<Settings, ClockError> {
        let positive = |name, value: f64| {
            let is_good = value.is_finite() && value > 0.0;
            is_good.then_some(value).ok_or(ClockError::Setting { name, value })
        };
        let kappa = positive("kappa_ns_per_s2", self.kappa_ns_per_s2)?;
        let step_s = positive("step_s", self.step_s)?.clamp(MIN_STEP_S, MAX_S);
        let window_s = positive("window_s", self.window_s)?.min(MAX_S);
        let error = self.timestamp_error_ns;
        if error != 0.0 {
            positive("timestamp_error_ns", error)?;
        }
        Ok(Settings {
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
            options.checked()
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
