//! A back end whose incoming packets get lost: questions, and acknowledgements of its answers.

use luc_network::{Namespace, lose, lose_nothing};
use luc_twin_truth::Kind;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;
use crate::spec::Spec;

/// Range of the lost packets, percent.
const LOSS_PERCENT: [u64; 2] = [4, 12];
const MAX_PERCENT: u64 = 50;

pub(super) fn draw(
    spec: &Spec,
    random: &mut ChaCha8Rng,
    searches: u64,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn = random.random_range(LOSS_PERCENT[0]..=LOSS_PERCENT[1]);
    let percent = spec.number()?.unwrap_or(drawn);
    if percent > MAX_PERCENT {
        return Err(spec.wrong("more than 50 % loss ends connections"));
    }
    let span = Span::new(Kind::Loss, percent);
    let begin = move || lose(Namespace::Own, percent);
    Switched::network("loss", span, window, begin, || lose_nothing(Namespace::Own))
}
