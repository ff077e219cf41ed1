//! End of a run's warm-up: a change point in the series of its rates.

/// Values to a batch, as in MSER-5.
const BATCH_SIZE: usize = 5;

/// Returns the number of leading values of `series` that are warm-up, by MSER-5. White describes it in *An effective
/// truncation heuristic for bias reduction in simulation output*, Simulation 69(6), 1997.
///
/// `series` has rates or durations of equal intervals, in their order. The cut is where the standard error of the mean
/// of batches of 5 is least. `None` if the series is not steady before its middle, or has fewer than 4 batches.
#[must_use]
pub fn warm_up(series: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = series
        .chunks_exact(BATCH_SIZE)
        .map(|batch| batch.iter().sum::<f64>() / BATCH_SIZE as f64)
        .collect();
    if batches.len() < 4 || batches.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
    };
    // The last few batches look steady by chance: the usual guard leaves five, or half of a short series.
    let kept = 5.min(batches.len() / 2);
    let cuts = 0..=batches.len() - kept;
    let best = cuts.min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (best <= batches.len() / 2).then_some(best * BATCH_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random;

    /// Generates a rate of 1000 with noise that depends on the last, and a slow start that dies away.
    fn series(seed: u64, start: f64) -> Vec<f64> {
        let mut random = seeded_random::stream(seed, 0);
        let mut noise = 0.0;
        (0..200)
            .map(|at| {
                noise = 0.5 * noise + 30.0 * seeded_random::normal(&mut random);
                1000.0 + noise - start * (-f64::from(at) / 10.0).exp()
            })
            .collect()
    }

    #[test]
    fn a_slow_start_is_cut_and_the_bias_with_it() {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for seed in 0..100 {
            let series = series(seed, 800.0);
            let Some(cut) = warm_up(&series) else {
                continue;
            };
            assert!((10..=100).contains(&cut), "{seed}: {cut}");
            whole.push(mean(&series));
            rest.push(mean(&series[cut..]));
        }
        assert!(rest.len() >= 70, "{}", rest.len());
        assert!(mean(&whole) < 970.0, "{}", mean(&whole));
        assert!((mean(&rest) - 1000.0).abs() < 8.0, "{}", mean(&rest));
    }

    #[test]
    fn a_steady_run_mostly_stays_whole() {
        let cuts: Vec<usize> = (0..100).filter_map(|seed| warm_up(&series(seed, 0.0))).collect();
        let whole = cuts.iter().filter(|&&cut| cut <= 50).count();
        assert!(whole >= 70, "{cuts:?}");
    }

    #[test]
    fn what_never_becomes_steady_says_so() {
        let rising: Vec<f64> = (0..100).map(|at| f64::from(at * at)).collect();
        assert_eq!(warm_up(&rising), None);
        assert_eq!(warm_up(&[1.0; 19]), None);
        assert_eq!(warm_up(&[f64::NAN; 40]), None);
        assert_eq!(warm_up(&[1.0; 40]), Some(0));
    }
}
