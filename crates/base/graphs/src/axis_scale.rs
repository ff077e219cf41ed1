//! Positions of values along an axis.

/// Range and kind of an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

/// Numbers this many times as large as others are on a logarithmic axis.
const MIN_LOGARITHMIC_RATIO: f64 = 8.0;

impl AxisScale {
    /// Returns a scale around all of these finite values, from a whole tick to a whole tick.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        let step = step(high - low, low);
        Self {
            low: (low / step + 1e-9).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            is_logarithmic: false,
        }
        .opened()
    }

    /// Returns a scale from the first to the last of these values, logarithmic if they are far apart.
    pub(super) fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        Self { low, high, is_logarithmic: low > 0.0 && high / low >= MIN_LOGARITHMIC_RATIO }
            .opened()
    }

    /// Gives an axis of length 0 a length.
    fn opened(self) -> Self {
        if self.high > self.low {
            return self;
        }
        let half = (self.low.abs() * 0.5).max(0.5);
        Self { low: self.low - half, high: self.high + half, ..self }
    }

    /// Returns the position of a value, from 0 to 1.
    pub(super) fn place(self, value: f64) -> f64 {
        let at = |value: f64| {
            if self.is_logarithmic { value.max(self.low).ln() } else { value }
        };
        ((at(value) - at(self.low)) / (at(self.high) - at(self.low))).clamp(0.0, 1.0)
    }

    /// Returns round values along it, four to ten.
    pub(super) fn ticks(self) -> Vec<f64> {
        let step = step(self.high - self.low, self.low);
        let first = (self.low / step - 1e-6).ceil();
        let last = (self.high / step + 1e-6).floor();
        let count = (last - first).clamp(0.0, 20.0) as usize;
        // Without what rounding leaves of 0.
        (0..=count).map(|tick| (first + tick as f64) * step + 0.0).collect()
    }

    /// Returns the same, named with the digits that tell them apart.
    pub(super) fn named_ticks(self) -> Vec<(f64, String)> {
        let step = step(self.high - self.low, self.low);
        // Steps are 1, 2 or 5 of a power of ten.
        let places = (-(step * 1.001).log10().floor()).clamp(0.0, 12.0) as usize;
        let name = |tick| (tick, format!("{tick:.places$}"));
        self.ticks().into_iter().map(name).collect()
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Returns 1, 2 or 5 times a power of ten, a fourth to a tenth of `length`; of no length for values around `near`.
fn step(length: f64, near: f64) -> f64 {
    let length = if length > 0.0 { length } else { near.abs().max(1.0) };
    let rough = length / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_ticks() {
        let scale = AxisScale::around([0.83, 1.0, 1.42].into_iter());
        let ticks = scale.ticks();
        assert!((ticks[0] - 0.8).abs() < 1e-9 && (ticks[ticks.len() - 1] - 1.6).abs() < 1e-9);
        let whole = AxisScale::around([0.0, 730.0].into_iter()).ticks();
        assert_eq!(whole, [0.0, 200.0, 400.0, 600.0, 800.0]);
    }

    #[test]
    fn names_of_ticks_differ() {
        let names = |ends: [f64; 2]| -> Vec<String> {
            let named = AxisScale::around(ends.into_iter()).named_ticks();
            named.into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names([1.0, 1.009])[..3], ["1.000", "1.002", "1.004"]);
        assert_eq!(names([0.0, 730.0])[1], "200");
        assert_eq!(names([0.0, 2.1])[1], "0.5");
    }

    #[test]
    fn far_apart_is_logarithmic() {
        let scale = AxisScale::over([1.0, 4.0, 64.0].into_iter());
        assert!((scale.place(4.0) - 1.0 / 3.0).abs() < 1e-9);
        let near = AxisScale::over([1.0, 2.0, 5.0].into_iter());
        assert!((near.place(2.0) - 0.25).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn everything_has_a_place(values in prop::collection::vec(-1e9_f64..1e9, 0..9)) {
            for scale in [AxisScale::around(values.iter().copied()), AxisScale::over(values.iter().copied())] {
                for &value in &values {
                    prop_assert!((0.0..=1.0).contains(&scale.place(value)));
                }
                let ticks = AxisScale::around(values.iter().copied()).ticks();
                prop_assert!((2..=12).contains(&ticks.len()), "{:?}", ticks);
                let named = AxisScale::around(values.iter().copied()).named_ticks();
                prop_assert!(named.windows(2).all(|two| two[0].1 != two[1].1), "{:?}", named);
            }
        }
    }
}
