//! A partition that burns processor time before each search.

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rustix::time::{ClockId, clock_gettime};

use super::Plant;
use super::progress::Window;
use super::span::Span;
use crate::error::TwinError;
use crate::log::Recorder;

/// Range of the processor time of each search, ms.
const BURN_MS: [u64; 2] = [4, 12];
const NS_PER_MS: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct Cpu {
    window: Window,
    burn_ns: u64,
    span: Span,
}

impl Cpu {
    pub(super) fn draw(how_ms: Option<u64>, random: &mut ChaCha8Rng, searches: u64) -> Self {
        let window = Window::draw(random, searches);
        let drawn_ms = random.random_range(BURN_MS[0]..=BURN_MS[1]);
        let burn_ns = how_ms.unwrap_or(drawn_ms).saturating_mul(NS_PER_MS);
        Self { window, burn_ns, span: Span::new(Kind::Cpu, burn_ns) }
    }
}

impl Plant for Cpu {
    fn before_search(
        &self,
        ordinal: u64,
        request: u64,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        if !self.window.has(ordinal) {
            return Ok(());
        }
        self.span.work(request, recorder, || {
            let begin_ns = used_ns();
            while used_ns() - begin_ns < self.burn_ns {
                std::hint::spin_loop();
            }
            Ok(())
        })
    }

    fn planted(&self) -> Vec<Planted> {
        self.span.planted()
    }
}

/// Processor time of this thread, ns.
fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}
