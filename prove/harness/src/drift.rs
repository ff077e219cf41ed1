//! Rounds in which recorded runs lie between unrecorded ones: the machine's speed drifts by more than recording costs.

/// Returns the order of a round: unrecorded at its beginning and its end.
#[must_use]
pub fn around<S: Copy>(unrecorded: S, recorders: &[S]) -> Vec<S> {
    let ends = [unrecorded];
    ends.iter().chain(recorders).chain(&ends).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_and_ends_unrecorded() {
        assert_eq!(around(0, &[2, 1]), [0, 2, 1, 0]);
    }
}
