//! A back end whose messages leave its host slowly.

use luc_twin_truth::Kind;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;
use crate::network::{slow_down, slow_down_nothing};

/// kbit/s, from and to.
const DRAWN: [u64; 2] = [200, 600];

pub(super) fn draw(
    how: Option<u64>,
    random: &mut ChaCha8Rng,
    searches: u64,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn = random.random_range(DRAWN[0]..=DRAWN[1]);
    let kbit_per_s = how.unwrap_or(drawn);
    // What this kernel cannot do is said before the run.
    slow_down(kbit_per_s)?;
    slow_down_nothing()?;
    Switched::spawn(
        "rate",
        Span::new(Kind::Rate, kbit_per_s),
        move |progress, span| {
            progress.wait_for(window.from);
            span.begin();
            slow_down(kbit_per_s)?;
            // tc takes a while: the searches that came meanwhile have not met it.
            progress.wait_for(progress.seen() + window.length());
            slow_down_nothing()?;
            span.end();
            Ok(())
        },
    )
}
