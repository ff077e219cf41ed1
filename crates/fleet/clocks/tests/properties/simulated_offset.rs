//! Two clocks whose truth is known.

use luc_fleet_clocks::PairPoints;

/// A clock's offset to another, of piecewise constant curvature.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedOffset {
    /// Offset at time 0, ns.
    pub(crate) offset_ns: i64,
    /// Rate at time 0, ns/s.
    pub(crate) rate: f64,
    /// ns/s², for `part_s` each; the last one lasts.
    pub(crate) curvatures: Vec<f64>,
    /// Duration of a curvature, s.
    pub(crate) part_s: f64,
    /// Time of A at which the offset jumps, and the size of the jump, ns.
    pub(crate) jump: Option<(i64, i64)>,
}

/// A message: the true time at which it is sent, and its delay, both ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedMessage {
    pub(crate) sent_ns: i64,
    pub(crate) delay_ns: i64,
    pub(crate) is_forward: bool,
}

impl SimulatedOffset {
    /// Returns B's clock less A's when A's shows this, ns, relative to `offset_ns`.
    pub(crate) fn drift_ns(&self, at_ns: i64) -> f64 {
        let (mut left, mut height, mut rate) = (at_ns as f64 * 1e-9, 0.0, self.rate);
        for (at, curvature) in self.curvatures.iter().enumerate() {
            let is_last = at + 1 == self.curvatures.len();
            let length = if is_last { left } else { left.min(self.part_s) };
            height += rate * length + curvature / 2.0 * length * length;
            rate += curvature * length;
            left -= length;
        }
        let jumped = self.jump.filter(|jump| at_ns >= jump.0);
        height + jumped.map_or(0.0, |jump| jump.1 as f64)
    }

    pub(crate) fn offset_at(&self, at_ns: i64) -> i64 {
        self.offset_ns + self.drift_ns(at_ns).round() as i64
    }

    /// Returns the messages as both hosts record them. A's clock is the truth. B's time stamps are rounded so that no
    /// bound is broken.
    pub(crate) fn record(
        &self,
        messages: impl IntoIterator<Item = SimulatedMessage>,
    ) -> PairPoints {
        let mut points = PairPoints::default();
        for message in messages {
            let received_ns = message.sent_ns + message.delay_ns;
            if message.is_forward {
                let on_b = self.offset_ns + self.drift_ns(received_ns).ceil() as i64 + received_ns;
                points.add_forward(message.sent_ns, on_b).expect("in range");
            } else {
                let on_b = self.offset_ns
                    + self.drift_ns(message.sent_ns).floor() as i64
                    + message.sent_ns;
                points.add_backward(on_b, received_ns).expect("in range");
            }
        }
        points
    }
}
