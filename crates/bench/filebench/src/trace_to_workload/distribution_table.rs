//! Random variables with the distribution of counted values.

/// Values that are each a row of their own, if there are no more.
const MAX_VALUES: usize = 16;
/// Maximum number of rows of a table; each row has the same number of values.
const ROWS: usize = 20;

/// Writes a variable in Filebench's language: a number, or a tabular random variable whose percents are whole.
pub(super) fn variable(values: &[u64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let distinct: Vec<&[u64]> = sorted.chunk_by(|a, b| a == b).collect();
    match distinct.as_slice() {
        [] => "0".to_owned(),
        [only] => only[0].to_string(),
        few if few.len() <= MAX_VALUES => {
            let counts: Vec<usize> = few.iter().map(|same| same.len()).collect();
            let percents = percents(&counts);
            let rows = few.iter().zip(percents).map(|(same, percent)| [percent, same[0], same[0]]);
            write_table(&rows.collect::<Vec<_>>())
        }
        _ => write_table(&quantiles(&sorted)),
    }
}

/// Returns a variable that is on average `mean`: the whole numbers around it.
pub(super) fn write_mean(mean: f64) -> String {
    let low = mean.floor();
    let percent = ((mean - low) * 100.0).round() as u64;
    let low = low as u64;
    match percent {
        0 => low.to_string(),
        100 => (low + 1).to_string(),
        _ => write_table(&[[100 - percent, low, low], [percent, low + 1, low + 1]]),
    }
}

/// Makes rows of equally many values; each is even from its lowest to where its mean is kept.
fn quantiles(sorted: &[u64]) -> Vec<[u64; 3]> {
    let row = |number: usize| {
        let from = number * sorted.len() / ROWS;
        let to = ((number + 1) * sorted.len() / ROWS).max(from + 1);
        let part = &sorted[from..to.min(sorted.len())];
        let low = part[0];
        let sum: u128 = part.iter().map(|&value| u128::from(value)).sum();
        let mean = (sum / part.len() as u128) as u64;
        [(100 / ROWS) as u64, low, 2 * mean - low]
    };
    (0..ROWS).map(row).collect()
}

/// Returns whole percents of `counts` that are 100 together (largest remainders).
fn percents(counts: &[usize]) -> Vec<u64> {
    let all: usize = counts.iter().sum();
    let mut percents: Vec<u64> = counts.iter().map(|count| (count * 100 / all) as u64).collect();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(counts[at] * 100 % all));
    let missing = 100 - percents.iter().sum::<u64>() as usize;
    for &at in order.iter().cycle().take(missing) {
        percents[at] += 1;
    }
    percents
}

/// Writes a table's rows. The language takes the lowest value of a table off and adds `min`.
fn write_table(rows: &[[u64; 3]]) -> String {
    let rows: Vec<&[u64; 3]> = rows.iter().filter(|row| row[0] > 0).collect();
    let least = rows.iter().map(|row| row[1]).min().unwrap_or(0);
    let rows: Vec<String> =
        rows.iter().map(|[percent, low, high]| format!("{{{percent},{low},{high}}}")).collect();
    format!("randvar(type=tabular,min={least},randtable={{{}}})", rows.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_are_themselves() {
        assert_eq!(variable(&[]), "0");
        assert_eq!(variable(&[7, 7]), "7");
        assert_eq!(
            variable(&[1, 3, 3, 3]),
            "randvar(type=tabular,min=1,randtable={{25,1,1},{75,3,3}})"
        );
        assert_eq!(write_mean(2.0), "2");
        assert_eq!(write_mean(1.999), "2");
        assert_eq!(write_mean(0.25), "randvar(type=tabular,min=0,randtable={{75,0,0},{25,1,1}})");
    }

    proptest! {
        #[test]
        fn percents_are_a_hundred(counts in prop::collection::vec(1_usize..10_000, 1..17)) {
            prop_assert_eq!(percents(&counts).iter().sum::<u64>(), 100);
        }

        #[test]
        fn quantiles_keep_the_mean(mut values in prop::collection::vec(0_u64..1_000_000, 40..400)) {
            values.sort_unstable();
            let rows = quantiles(&values);
            prop_assert_eq!(rows.len(), ROWS);
            let own = rows.iter().map(|row| (row[1] + row[2]) as f64 / 2.0).sum::<f64>() / ROWS as f64;
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            // Rows have as many values as their number allows, not exactly as many.
            prop_assert!((own - mean).abs() <= mean * 0.1 + 1.0, "{} {}", own, mean);
        }
    }
}
