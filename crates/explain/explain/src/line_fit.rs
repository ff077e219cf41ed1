//! Straight lines through points, without keeping the points.

/// Least squares of y on x.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineFit {
    count: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// Minimum number of points for a slope.
const MIN_POINTS: f64 = 8.0;
/// Minimum distance of a slope from 0, in standard errors.
const SIGNIFICANT_ERRORS: f64 = 4.0;

impl LineFit {
    /// Adds a point (Welford's update).
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let dx = x - self.mean_x;
        let dy = y - self.mean_y;
        self.mean_x += dx / self.count;
        self.mean_y += dy / self.count;
        self.xx += dx * (x - self.mean_x);
        self.xy += dx * (y - self.mean_y);
        self.yy += dy * (y - self.mean_y);
    }

    pub(crate) fn mean_x(&self) -> f64 {
        self.mean_x
    }

    pub(crate) fn mean_y(&self) -> f64 {
        self.mean_y
    }

    /// Returns the slope if there are enough points, x varies and the slope is significantly positive.
    pub(crate) fn rising_slope(&self) -> Option<f64> {
        if self.count < MIN_POINTS || self.xx <= 0.0 {
            return None;
        }
        let slope = self.xy / self.xx;
        let residual = (self.yy - slope * self.xy).max(0.0) / (self.count - 2.0);
        let error = (residual / self.xx).sqrt();
        (slope > SIGNIFICANT_ERRORS * error && slope > 0.0).then_some(slope)
    }

    /// Returns y at x: on the line if its slope is significantly positive, else the mean.
    pub(crate) fn at(&self, x: f64) -> f64 {
        self.mean_y + self.rising_slope().unwrap_or(0.0) * (x - self.mean_x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        let mut fit = LineFit::default();
        for x in 0..20 {
            fit.add(f64::from(x), 5.0 + 3.0 * f64::from(x));
        }
        assert!((fit.rising_slope().unwrap() - 3.0).abs() < 1e-9);
        assert!((fit.at(100.0) - 305.0).abs() < 1e-6);
    }

    #[test]
    fn noise_has_no_slope() {
        let mut fit = LineFit::default();
        for x in 0..20u32 {
            fit.add(f64::from(x % 2), f64::from(x * 7 % 5));
        }
        assert_eq!(fit.rising_slope(), None);
    }
}
