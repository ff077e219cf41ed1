//! Two clients whose requests share a connection, while the others have their own.
//!
//! A front end with a thread for each connection answers one after the other: the second request waits for the first.

use luc_twin_truth::{Kind, Planted};
use rand::RngExt as _;

use super::random;
use crate::error::TwinError;
use crate::spec::Spec;

/// The time in which a client asked, and its thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientSpan {
    pub(crate) client: u32,
    pub(crate) thread: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// Draws the two clients that share.
pub(crate) fn draw(seed: u64, clients: u32) -> Result<[u32; 2], TwinError> {
    if clients < 2 {
        let spec = Spec { kind: Kind::Share, how: None };
        return Err(spec.wrong("it takes two clients"));
    }
    let mut random = random(seed, Kind::Share);
    let first = random.random_range(0..clients);
    let other = random.random_range(1..clients);
    Ok([first, (first + other) % clients])
}

/// Makes the row of the truth.
pub(crate) fn planted(sharers: [u32; 2], spans: &[ClientSpan]) -> Option<Planted> {
    let span = |client: u32| spans.iter().find(|span| span.client == client);
    let [first, other] = [span(sharers[0])?, span(sharers[1])?];
    Some(Planted {
        kind: Kind::Share,
        from_ns: first.from_ns.max(other.from_ns),
        to_ns: first.to_ns.min(other.to_ns),
        thread: first.thread,
        holder: other.thread,
        strength: 2,
        times: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_different_clients_are_drawn() {
        draw(1, 1).expect_err("one is too few");
        let drawn: Vec<[u32; 2]> = (0..20).map(|seed| draw(seed, 6).expect("drawn")).collect();
        assert!(drawn.iter().all(|[a, b]| a != b && *a < 6 && *b < 6));
        assert!(drawn.iter().any(|pair| *pair != drawn[0]));
    }
}
