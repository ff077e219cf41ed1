//! Trees that are numbered and summed in this process.

use std::hint::black_box;
use std::time::Instant;

use luc_fleet_requests::{NumberedForest, SubtreeSums};
use luc_harness::error::EvaluateError;
use luc_harness::harness::missing;
use luc_stats::seeded_random;
use rand::RngExt as _;
use serde::Serialize;

/// Stream of the random numbers.
const STREAM: u64 = 40;
/// Number of subtrees whose sums are asked for in a run.
const SUBTREES: u32 = 100_000;
/// Number of nodes in a request's tree.
const NODES_PER_REQUEST: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    Requests,
    Random,
    Chain,
}

/// Times for a tree, seconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Timed {
    pub numbered_s: f64,
    pub summed_s: f64,
    /// Mean time of one subtree's sum.
    pub subtree_s: f64,
}

impl Shape {
    fn parents(self, nodes: u32, seed: u64) -> Vec<Option<u32>> {
        let mut random = seeded_random::stream(seed, STREAM);
        let mut parent = |node: u32| match self {
            Self::Requests => {
                let first = node - node % NODES_PER_REQUEST;
                (node > first).then(|| random.random_range(first..node))
            }
            Self::Random => (node > 0).then(|| random.random_range(0..node)),
            Self::Chain => node.checked_sub(1),
        };
        (0..nodes).map(&mut parent).collect()
    }
}

/// Numbers and sums a forest of `nodes` nodes.
///
/// # Errors
/// Parents that are no forest.
pub fn time(shape: Shape, nodes: u32, seed: u64) -> Result<Timed, EvaluateError> {
    let failed = |error| missing(&format!("a forest ({error})"));
    let parents = shape.parents(nodes, seed);
    let values: Vec<u64> = (0..u64::from(nodes)).collect();
    let began = Instant::now();
    let forest = NumberedForest::new(&parents).map_err(failed)?;
    let numbered_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let sums = SubtreeSums::new(&forest, &values).map_err(failed)?;
    let summed_s = began.elapsed().as_secs_f64();
    let mut random = seeded_random::stream(seed, STREAM + 1);
    let asked: Vec<u32> = (0..SUBTREES).map(|_| random.random_range(0..nodes)).collect();
    let began = Instant::now();
    for &node in &asked {
        black_box(sums.subtree(node));
    }
    Ok(Timed {
        numbered_s,
        summed_s,
        subtree_s: began.elapsed().as_secs_f64() / f64::from(SUBTREES),
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn each_shape_is_a_forest() {
        for shape in Shape::value_variants() {
            let parents = shape.parents(1_000, 1);
            let roots = parents.iter().filter(|parent| parent.is_none()).count();
            let expected = if *shape == Shape::Requests { 100 } else { 1 };
            assert_eq!(roots, expected, "{shape:?}");
            assert!(time(*shape, 1_000, 1).is_ok());
        }
    }
}
