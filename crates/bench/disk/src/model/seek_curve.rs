//! Time of an arm's movement, by the curve of Ruemmler and Wilkes. It grows with the square root of the distance
//! while the arm accelerates, and linearly once it coasts. Source: "An introduction to disk drive modeling", IEEE
//! Computer 27(3), 1994.

/// A seek curve through three published figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeekCurve {
    shortest_ns: f64,
    /// Distance, as a part of the full stroke, from which it is linear.
    knee: f64,
    /// Factor of the square root.
    root_ns: f64,
}

impl SeekCurve {
    /// Fits the curve to three times: for one track, on average over random pairs of positions, and for the full
    /// stroke. Returns `None` if no curve fits: the average must lie between 1/3 and 8/15 of the way from the
    /// shortest to the longest.
    pub(super) fn fit(shortest_ns: u64, average_ns: u64, longest_ns: u64) -> Option<Self> {
        let (shortest, longest) = (shortest_ns as f64, longest_ns as f64);
        let with_knee = |knee: f64| Self {
            shortest_ns: shortest,
            knee,
            // Value and slope of both parts agree at the knee, and the whole stroke is `longest`.
            root_ns: 2.0 * (longest - shortest) / (knee.sqrt() + 1.0 / knee.sqrt()),
        };
        let (mut low, mut high) = (1e-6, 1.0);
        let average = average_ns as f64;
        if !(with_knee(low).average_ns()..=with_knee(high).average_ns()).contains(&average) {
            return None;
        }
        // The average grows with the knee; 60 halvings are all that a double tells apart.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if with_knee(middle).average_ns() < average { low = middle } else { high = middle }
        }
        Some(with_knee(low))
    }

    /// Returns an arm that takes no time.
    pub(super) fn still() -> Self {
        Self { shortest_ns: 0.0, knee: 1.0, root_ns: 0.0 }
    }

    /// Returns the time to move over a part of the full stroke, 0 to 1. None at all is free.
    pub(super) fn time_ns(&self, distance: f64) -> u64 {
        if distance <= 0.0 {
            return 0;
        }
        let moving = if distance < self.knee {
            distance.sqrt()
        } else {
            (self.knee.sqrt() + distance / self.knee.sqrt()) / 2.0
        };
        (self.shortest_ns + self.root_ns * moving) as u64
    }

    /// Over random pairs: a distance d has the density 2 (1 - d).
    fn average_ns(&self) -> f64 {
        let (k, root) = (self.knee, self.knee.sqrt());
        let short = 4.0 / 3.0 * k * root - 4.0 / 5.0 * k * k * root;
        let constant = root / 2.0 * (1.0 - k).powi(2);
        let linear = (1.0 / 3.0 - k * k + 2.0 / 3.0 * k.powi(3)) / (2.0 * root);
        self.shortest_ns + self.root_ns * (short + constant + linear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_its_figures() {
        let curve = SeekCurve::fit(1_000_000, 8_500_000, 15_900_000).expect("fits");
        assert!(curve.time_ns(1e-9).abs_diff(1_000_000) < 1_000);
        assert!(curve.time_ns(1.0).abs_diff(15_900_000) < 10);
        assert_eq!(curve.time_ns(0.0), 0);
        let steps = 2_000;
        let sum: f64 = (0..steps)
            .map(|step| (f64::from(step) + 0.5) / f64::from(steps))
            .map(|distance| 2.0 * (1.0 - distance) * curve.time_ns(distance) as f64)
            .sum();
        assert!((sum / f64::from(steps) - 8_500_000.0).abs() < 5_000.0);
        assert!(curve.time_ns(curve.knee).abs_diff(curve.time_ns(curve.knee - 1e-9)) < 100);
    }

    #[test]
    fn refuses_what_no_curve_has() {
        assert_eq!(SeekCurve::fit(1_000_000, 3_000_000, 15_900_000), None);
        assert_eq!(SeekCurve::fit(1_000_000, 12_000_000, 15_900_000), None);
    }
}
