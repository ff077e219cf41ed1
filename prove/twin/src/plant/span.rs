//! From when to when a trouble was there, and how often it was met.

use std::sync::Mutex;

use crate::kind::Kind;
use crate::sync::locked;
use crate::truth::Planted;

/// What becomes a row at the end.
#[derive(Debug)]
pub(super) struct Span(Mutex<Planted>);

impl Span {
    pub(super) fn new(kind: Kind, strength: u64) -> Self {
        Self(Mutex::new(Planted {
            kind,
            from_ns: 0,
            to_ns: 0,
            thread: 0,
            holder: 0,
            strength,
            times: 0,
        }))
    }

    /// It was there in this time.
    pub(super) fn note(&self, [from_ns, to_ns]: [u64; 2]) {
        let mut planted = locked(&self.0);
        if planted.times == 0 {
            planted.from_ns = from_ns;
        }
        planted.from_ns = planted.from_ns.min(from_ns);
        planted.to_ns = planted.to_ns.max(to_ns);
        planted.times += 1;
    }

    /// Which thread is the cause.
    pub(super) fn set_thread(&self, thread: u32) {
        locked(&self.0).thread = thread;
    }

    /// Which thread holds what others wait for.
    pub(super) fn set_holder(&self, holder: u32) {
        locked(&self.0).holder = holder;
    }

    /// The row; none if it never happened.
    pub(super) fn planted(&self) -> Vec<Planted> {
        let planted = *locked(&self.0);
        Vec::from_iter((planted.times > 0).then_some(planted))
    }
}
