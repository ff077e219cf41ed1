//! A back end whose messages leave its host slowly.

use luc_network::{Namespace, slow_down, slow_down_nothing};
use luc_twin_truth::Kind;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;

const RATE_KBIT_PER_S: [u64; 2] = [200, 600];

pub(super) fn draw(
    how: Option<u64>,
    random: &mut ChaCha8Rng,
    searches: u64,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn = random.random_range(RATE_KBIT_PER_S[0]..=RATE_KBIT_PER_S[1]);
    let kbit_per_s = how.unwrap_or(drawn);
    let span = Span::new(Kind::Rate, kbit_per_s);
    let begin = move || slow_down(Namespace::Own, kbit_per_s);
    Switched::network("rate", span, window, begin, || slow_down_nothing(Namespace::Own))
}
