//! Which points one guest runs.

use super::super::order::shuffled;
use super::super::plan::Plan;
use super::super::points::Point;

/// A boot takes as long as several points; a guest that is killed is lost as a whole.
const POINTS: usize = 40;

/// Points of one speed and one round, in the order in which a guest runs them.
#[derive(Debug, Clone)]
pub(super) struct Lot {
    pub(super) mips: u64,
    pub(super) round: usize,
    /// Which of this speed and round, from 0.
    pub(super) number: usize,
    pub(super) points: Vec<Point>,
}

/// All lots, round by round, so that what is there of a sweep that goes on is of all speeds.
pub(super) fn deal(plan: &Plan, points: &[Point]) -> Vec<Lot> {
    let mut speeds: Vec<u64> = points.iter().filter_map(|point| point.mips).collect();
    speeds.sort_unstable();
    speeds.dedup();
    let repeats = plan.virtual_time.as_ref().map_or(0, |time| time.repeats);
    let mut lots = Vec::new();
    for round in 0..repeats {
        let order = shuffled(plan.seed, round, points.len());
        for &mips in &speeds {
            let of_speed: Vec<&Point> = order
                .iter()
                .map(|&number| &points[number])
                .filter(|point| point.mips == Some(mips))
                .collect();
            // Equal shares: a last guest with few points would be a boot for little.
            let guests = of_speed.len().div_ceil(POINTS).max(1);
            let share = of_speed.len().div_ceil(guests).max(1);
            lots.extend(
                of_speed
                    .chunks(share)
                    .enumerate()
                    .map(|(number, points)| Lot {
                        mips,
                        round,
                        number,
                        points: points.iter().map(|&point| point.clone()).collect(),
                    }),
            );
        }
    }
    lots
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::super::super::points::points;
    use super::*;

    #[test]
    fn every_point_is_in_one_lot_of_each_round() {
        let threads: Vec<String> = (1..=50).map(|count| count.to_string()).collect();
        let text = format!(
            "threads = [{}]
             [virtual]
             mips = [500, 1000]
             repeats = 2
             [[workload]]
             name = 'w'
             bench = 'metarates'
             [[target]]
             name = 't'
             fs = 'ext4'",
            threads.join(", ")
        );
        let plan = Plan::parse(&text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let lots = deal(&plan, &points);
        assert_eq!(lots.len(), 2 * 2 * 2);
        let mut seen = HashSet::new();
        for lot in &lots {
            assert_eq!(lot.points.len(), 25);
            for point in &lot.points {
                assert_eq!(point.mips, Some(lot.mips));
                assert!(seen.insert((point.key(), lot.round)));
            }
        }
        assert_eq!(seen.len(), points.len() * 2);
        let keys = |lot: &Lot| lot.points.iter().map(Point::key).collect::<Vec<_>>();
        let again = deal(&plan, &points);
        assert!(lots.iter().zip(&again).all(|(a, b)| keys(a) == keys(b)));
        assert_ne!(keys(&lots[0]), keys(&lots[4]));
    }
}
