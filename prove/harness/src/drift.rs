//! Rounds in which recorded runs lie between unrecorded ones: the machine's speed drifts by more than recording costs.

/// Returns the order of a round: unrecorded at its beginning and its end.
#[must_use]
pub fn around<S: Copy>(unrecorded: S, recorders: &[S]) -> Vec<S> {
    let ends = [unrecorded];
    ends.iter().chain(recorders).chain(&ends).copied().collect()
}

/// Divides the figure of a round's run by the unrecorded figure at that time. That figure is interpolated between the
/// round's ends by the run's place.
#[must_use]
pub fn over_unrecorded(figures: &[f64], index: usize) -> Option<f64> {
    let (&first, &last) = (figures.first()?, figures.last()?);
    let place = index as f64 / (figures.len().checked_sub(1)?.max(1)) as f64;
    let unrecorded = first + (last - first) * place;
    (unrecorded > 0.0).then(|| figures.get(index).map(|with| with / unrecorded))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_is_not_taken_for_a_cost() {
        let slowing = [100.0, 98.0, 96.0, 94.0];
        for index in 0..4 {
            let over = over_unrecorded(&slowing, index).unwrap();
            assert!((over - 1.0).abs() < 1e-12, "{index}: {over}");
        }
        let over = over_unrecorded(&[100.0, 48.5, 94.0], 1).unwrap();
        assert!((over - 0.5).abs() < 1e-12, "{over}");
        assert_eq!(over_unrecorded(&[], 0), None);
        assert_eq!(over_unrecorded(&[0.0, 1.0], 1), Some(1.0));
    }

    #[test]
    fn a_round_begins_and_ends_unrecorded() {
        assert_eq!(around(0, &[2, 1]), [0, 2, 1, 0]);
    }
}
