//! Forests with their nodes numbered, so that all below a node is a range.

use std::ops::Range;

/// Reason why nodes are no forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error(
        "node {0} is above itself: the rows that the tree is made of contradict each other, record again"
    )]
    Cycle(u32),
    #[error(
        "node {node} has the parent {parent}, but there are {nodes} nodes: give each parent's place"
    )]
    NoSuchParent { node: u32, parent: u32, nodes: usize },
    #[error("{0} nodes are more than 32 bits number: take fewer requests at once, by time")]
    TooMany(usize),
    #[error("{values} values for {nodes} nodes: give one for each")]
    Values { values: usize, nodes: usize },
}

/// A forest whose nodes have numbers in pre-order and in post-order.
///
/// A subtree is the nodes whose pre-order numbers are in [`NumberedForest::subtree`]: a range, which any engine can ask
/// for. A node is above another if its pre-order number is smaller and its post-order number larger. That is from
/// Dietz,
/// *Maintaining Order in a Linked List*, 1982.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedForest {
    pre: Vec<u32>,
    post: Vec<u32>,
    /// Number of nodes of each subtree.
    size: Vec<u32>,
    /// The nodes in pre-order.
    order: Vec<u32>,
}

impl NumberedForest {
    /// Numbers the nodes `0..parents.len()`; children and roots keep their order. Takes linear time and no stack,
    /// whatever the shape. No step waits for the memory that the step before it reads, as a walk along pointers does.
    ///
    /// # Errors
    /// [`TreeError::Cycle`], [`TreeError::NoSuchParent`], [`TreeError::TooMany`].
    pub fn new(parents: &[Option<u32>]) -> Result<Self, TreeError> {
        let nodes = parents.len();
        if u32::try_from(nodes).map_or(true, |nodes| nodes == u32::MAX) {
            return Err(TreeError::TooMany(nodes));
        }
        // 1. Sizes of subtrees, from leaves to roots.
        let up = sort_upwards(parents)?;
        let mut size = vec![1; nodes];
        for &node in &up {
            if let Some(parent) = parents[node as usize] {
                size[parent as usize] += size[node as usize];
            }
        }
        // 2. Number of nodes before each among those below its parent; for roots, in all.
        let (mut before, mut taken, mut roots) = (vec![0; nodes], vec![0; nodes], 0);
        for (node, parent) in parents.iter().enumerate() {
            let taken = parent.map_or(&mut roots, |parent| &mut taken[parent as usize]);
            before[node] = *taken;
            *taken += size[node];
        }
        let mut forest = Self { pre: before, post: vec![0; nodes], size, order: vec![0; nodes] };
        // 3. Numbers, from roots to leaves.
        let mut depth = taken;
        for &node in up.iter().rev() {
            let at = node as usize;
            depth[at] = 0;
            if let Some(parent) = parents[at] {
                depth[at] = depth[parent as usize] + 1;
                forest.pre[at] += forest.pre[parent as usize] + 1;
            }
            // Before a node in post-order are those before it in pre-order, less those above it, and those below it.
            forest.post[at] = forest.pre[at] - depth[at] + (forest.size[at] - 1);
            forest.order[forest.pre[at] as usize] = node;
        }
        Ok(forest)
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns a node's number in pre-order.
    #[must_use]
    pub fn pre(&self, node: u32) -> Option<u32> {
        self.pre.get(node as usize).copied()
    }

    /// Returns a node's number in post-order.
    #[must_use]
    pub fn post(&self, node: u32) -> Option<u32> {
        self.post.get(node as usize).copied()
    }

    /// Returns the pre-order numbers of a node and of all below it; none if the node is unknown.
    #[must_use]
    pub fn subtree(&self, node: u32) -> Range<u32> {
        match self.pre(node) {
            Some(pre) => pre..pre + self.size[node as usize],
            None => 0..0,
        }
    }

    /// Returns a node and all below it, in pre-order.
    #[must_use]
    pub fn below(&self, node: u32) -> &[u32] {
        let range = self.subtree(node);
        &self.order[range.start as usize..range.end as usize]
    }
}

/// Returns all nodes, each before its parent (Kahn, *Topological Sorting of Large Networks*, 1962).
fn sort_upwards(parents: &[Option<u32>]) -> Result<Vec<u32>, TreeError> {
    let nodes = parents.len();
    let mut children = vec![0_u32; nodes];
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent {
            let count = children.get_mut(parent as usize);
            *count.ok_or(TreeError::NoSuchParent { node: node as u32, parent, nodes })? += 1;
        }
    }
    let mut up: Vec<u32> = Vec::with_capacity(nodes);
    up.extend((0..nodes as u32).filter(|&node| children[node as usize] == 0));
    let mut at = 0;
    while let Some(&node) = up.get(at) {
        at += 1;
        if let Some(parent) = parents[node as usize] {
            let left = &mut children[parent as usize];
            *left -= 1;
            if *left == 0 {
                up.push(parent);
            }
        }
    }
    if up.len() == nodes {
        return Ok(up);
    }
    // What is left has a child that is left, so it is above a cycle; and above a cycle is only the cycle.
    let node = children.iter().position(|&left| left > 0).unwrap_or(0) as u32;
    Err(TreeError::Cycle(node))
}

/// Sums of one value over any subtree, in constant time each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubtreeSums<'f> {
    forest: &'f NumberedForest,
    /// Sums over all nodes before each in pre-order. 2^32 values of 64 bits do not overflow 128.
    before: Vec<u128>,
}

impl<'f> SubtreeSums<'f> {
    /// Prepares sums of a value for each node.
    ///
    /// # Errors
    /// [`TreeError::Values`].
    pub fn new(forest: &'f NumberedForest, values: &[u64]) -> Result<Self, TreeError> {
        if values.len() != forest.len() {
            return Err(TreeError::Values { values: values.len(), nodes: forest.len() });
        }
        let mut before = Vec::with_capacity(values.len() + 1);
        let mut sum = 0;
        before.push(sum);
        for &node in &forest.order {
            sum += u128::from(values[node as usize]);
            before.push(sum);
        }
        Ok(Self { forest, before })
    }

    /// Returns the sum over a node and all below it.
    #[must_use]
    pub fn subtree(&self, node: u32) -> u128 {
        let range = self.forest.subtree(node);
        self.before[range.end as usize] - self.before[range.start as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_a_small_forest() {
        // 2 has 0 and 3, 3 has 1; 4 is alone.
        let forest =
            NumberedForest::new(&[Some(2), Some(3), None, Some(2), None]).expect("a forest");
        let pre = [0, 1, 2, 3, 4].map(|node| forest.pre(node).expect("a node"));
        let post = [0, 1, 2, 3, 4].map(|node| forest.post(node).expect("a node"));
        assert_eq!((pre, post), ([1, 3, 0, 2, 4], [0, 1, 3, 2, 4]));
        assert_eq!(forest.below(3), [3, 1]);
        assert!(forest.below(9).is_empty());
        let sums =
            SubtreeSums::new(&forest, &[1, 10, 100, 1000, u64::MAX]).expect("a value for each");
        assert_eq!(sums.subtree(2), 1111);
        assert_eq!(sums.subtree(4), u128::from(u64::MAX));
        assert_eq!(sums.subtree(5), 0);
        assert!(SubtreeSums::new(&forest, &[1]).is_err());
        assert!(NumberedForest::new(&[]).expect("a forest").is_empty());
    }

    #[test]
    fn forged_parents_are_errors() {
        assert_eq!(NumberedForest::new(&[Some(0)]), Err(TreeError::Cycle(0)));
        let cycle = NumberedForest::new(&[None, Some(2), Some(3), Some(2)]);
        assert!(matches!(cycle, Err(TreeError::Cycle(2 | 3))), "{cycle:?}");
        let missing = TreeError::NoSuchParent { node: 1, parent: 7, nodes: 2 };
        assert_eq!(NumberedForest::new(&[None, Some(7)]), Err(missing));
    }

    #[test]
    fn a_chain_takes_no_stack() {
        let nodes = 1_000_000_u32;
        let parents: Vec<Option<u32>> = (0..nodes).map(|node| node.checked_sub(1)).collect();
        let forest = NumberedForest::new(&parents).expect("a forest");
        assert_eq!(forest.subtree(0), 0..nodes);
        assert_eq!(forest.post(0), Some(nodes - 1));
        let sums = SubtreeSums::new(&forest, &vec![1; nodes as usize]).expect("a value for each");
        assert_eq!(sums.subtree(nodes - 10), 10);
    }

    proptest! {
        #[test]
        fn ranges_are_what_walks_up_find(parents in prop::collection::vec(prop::option::of(any::<u32>()), 1..60),
                                         can_be_cyclic in any::<bool>()) {
            let nodes = parents.len() as u32;
            let parents: Vec<Option<u32>> = (0..nodes)
                .zip(parents)
                .map(|(node, parent)| {
                    let most = if can_be_cyclic { nodes } else { node };
                    parent.filter(|_| most > 0).map(|parent| parent % most.max(1))
                })
                .collect();
            // All above each node, with itself; a walk that is longer than the forest is on a cycle.
            let walk = |node: u32| -> Vec<u32> {
                std::iter::successors(Some(node), |&node| parents[node as usize])
                    .take(nodes as usize + 1)
                    .collect()
            };
            let is_cyclic = (0..nodes).any(|node| walk(node).len() > nodes as usize);
            match NumberedForest::new(&parents) {
                Err(error) => {
                    let TreeError::Cycle(node) = error else { panic!("{error}") };
                    prop_assert!(walk(node)[1..].contains(&node));
                }
                Ok(forest) => {
                    prop_assert!(!is_cyclic);
                    let values: Vec<u64> = (0..u64::from(nodes)).map(|node| 1 << node).collect();
                    let sums = SubtreeSums::new(&forest, &values).expect("a value for each");
                    for upper in 0..nodes {
                        let below: Vec<u32> = (0..nodes).filter(|&lower| walk(lower).contains(&upper)).collect();
                        let mut found = forest.below(upper).to_vec();
                        found.sort_unstable();
                        prop_assert_eq!(&found, &below);
                        prop_assert_eq!(sums.subtree(upper), below.iter().map(|&node| 1_u128 << node).sum::<u128>());
                        for lower in 0..nodes {
                            let by_numbers = forest.pre(upper) <= forest.pre(lower)
                                && forest.post(upper) >= forest.post(lower);
                            prop_assert_eq!(below.contains(&lower), by_numbers);
                        }
                    }
                }
            }
        }
    }
}
