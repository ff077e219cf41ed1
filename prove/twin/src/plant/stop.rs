//! A back end that another process stops by a signal, again and again.

use std::time::Duration;

use luc_twin_truth::Kind;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;
use crate::neighbour::NeighbourOptions;

/// Ranges of the time of a stop and of the time between two, ms.
const STOPPED_MS: [u64; 2] = [10, 30];
const BETWEEN_MS: [u64; 2] = [2, 8];

pub(super) fn draw(
    how_ms: Option<u64>,
    random: &mut ChaCha8Rng,
    searches: u64,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn_ms = random.random_range(STOPPED_MS[0]..=STOPPED_MS[1]);
    let stopped = Duration::from_millis(how_ms.unwrap_or(drawn_ms));
    let between = Duration::from_millis(random.random_range(BETWEEN_MS[0]..=BETWEEN_MS[1]));
    let stopped_ns = u64::try_from(stopped.as_nanos()).unwrap_or(u64::MAX);
    let options = NeighbourOptions::Stop { process: std::process::id(), stopped, between };
    Switched::neighbour("stop", Span::new(Kind::Stop, stopped_ns), window, options)
}
