//! The PID controller of the LUC paper (section IV.A, equation 2), in discrete time.

/// Gains of the controller.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PidGains {
    /// Gain of the error (proportional).
    pub kp: f64,
    /// Integral gain, per step.
    pub ki: f64,
    /// Derivative gain, times step.
    pub kd: f64,
}

impl PidGains {
    /// Gains of the paper. [`crate::stability`] computes their poles.
    pub const PAPER: Self = Self { kp: 0.8, ki: 0.25, kd: 0.25 };
}

/// Memory of the controller. All zeros is the initial state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pid {
    integral: f64,
    previous_error: f64,
}

/// Bound of the error and its sum, in requests. Without it, an unreachable set point would wind the controller up.
const ERROR_BOUND: f64 = 1024.0;

impl Pid {
    /// Takes the error `set point - measured` in requests per commit. Returns `u`, the wanted change of the measured
    /// value, in requests.
    ///
    /// A state or error that is not finite (memory damaged by a dying process) resets the controller.
    pub fn update(&mut self, gains: &PidGains, error: f64) -> f64 {
        if !(error.is_finite() && self.integral.is_finite() && self.previous_error.is_finite()) {
            *self = Self::default();
            return 0.0;
        }
        let error = error.clamp(-ERROR_BOUND, ERROR_BOUND);
        self.integral = (self.integral + error).clamp(-ERROR_BOUND, ERROR_BOUND);
        let derivative = error - self.previous_error;
        self.previous_error = error;
        gains.kp * error + gains.ki * self.integral + gains.kd * derivative
    }

    /// Forgets the accumulated error, after the controlled delay has hit its bound.
    pub fn unwind(&mut self) {
        self.integral = 0.0;
    }
}

/// Delay steered by a [`Pid`], within bounds. All zeros is the initial state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SteeredDelay {
    pid: Pid,
    delay_ns: f64,
}

impl SteeredDelay {
    /// The present delay, ns.
    pub fn delay_ns(&self) -> u64 {
        // Saturating: NaN becomes 0, negative becomes 0.
        self.delay_ns as u64
    }

    /// Starts over from `delay_ns`.
    pub fn restart(&mut self, delay_ns: u64) {
        *self = Self { pid: Pid::default(), delay_ns: delay_ns as f64 };
    }

    /// Takes the size of the commit that has just ended. Returns the delay for the next one.
    ///
    /// `ns_per_request` is the plant's slope: the extra wait for one more request.
    pub fn update(
        &mut self,
        gains: &PidGains,
        set_point: u32,
        measured: u32,
        ns_per_request: u64,
        bounds_ns: (u64, u64),
    ) -> u64 {
        let u = self.pid.update(gains, f64::from(set_point) - f64::from(measured));
        let (low, high) = (bounds_ns.0 as f64, bounds_ns.1.max(bounds_ns.0) as f64);
        let wanted = self.delay_ns + u * ns_per_request as f64;
        if wanted.is_finite() {
            self.delay_ns = wanted.clamp(low, high);
            if wanted < low || wanted > high {
                self.pid.unwind();
            }
        } else {
            self.restart(bounds_ns.0);
        }
        self.delay_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's plant (equation 1), with the measurement one step old as in any real loop.
    fn settle(gains: &PidGains, c: f64, set_point: f64, steps: usize) -> f64 {
        let mut pid = Pid::default();
        let mut measured = 1.0;
        for _ in 0..steps {
            measured += c * pid.update(gains, set_point - measured);
        }
        measured
    }

    #[test]
    fn the_loop_settles_on_the_set_point() {
        for c in [0.2, 0.5, 1.0] {
            let measured = settle(&PidGains::PAPER, c, 32.0, 200);
            assert!((measured - 32.0).abs() < 0.01, "c = {c}: settled at {measured}");
        }
    }

    #[test]
    fn an_unreachable_set_point_does_not_wind_up() {
        let mut delay = SteeredDelay::default();
        for _ in 0..1_000 {
            delay.update(&PidGains::PAPER, 64, 4, 10_000, (0, 2_000_000));
        }
        assert_eq!(delay.delay_ns(), 2_000_000);
        let mut steps = 0;
        while delay.delay_ns() > 500_000 {
            delay.update(&PidGains::PAPER, 4, 24, 100_000, (0, 2_000_000));
            steps += 1;
            assert!(steps < 4, "still at {} ns", delay.delay_ns());
        }
    }

    proptest! {
        #[test]
        fn the_delay_stays_in_bounds_whatever_is_fed(
            feeds in proptest::collection::vec((0u32..2_000, 0u32..2_000, 0u64..10_000_000), 1..100),
            high in 0u64..20_000_000,
        ) {
            let mut delay = SteeredDelay::default();
            for (set_point, measured, slope) in feeds {
                let ns = delay.update(&PidGains::PAPER, set_point, measured, slope, (0, high));
                prop_assert!(ns <= high);
            }
        }

        #[test]
        fn damaged_state_heals(bits in proptest::array::uniform3(any::<u64>())) {
            let mut delay = SteeredDelay {
                pid: Pid {
                    integral: f64::from_bits(bits[0]),
                    previous_error: f64::from_bits(bits[1]),
                },
                delay_ns: f64::from_bits(bits[2]),
            };
            for _ in 0..3 {
                delay.update(&PidGains::PAPER, 4, 2, 1_000, (0, 1_000_000));
            }
            prop_assert!(delay.delay_ns() <= 1_000_000);
            prop_assert!(delay.delay_ns.is_finite());
        }
    }
}
