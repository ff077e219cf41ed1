//! Names of services, threads and addresses, each kept once.

use std::collections::HashMap;

/// Index of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelIndex(u32);

/// The names of a graph. The same name of two traces has one index, so that its times add up.
#[derive(Debug, Clone, Default)]
pub struct WaitLabels {
    names: Vec<String>,
    indices: HashMap<String, LabelIndex>,
}

impl WaitLabels {
    /// Returns the index of a name, which is added if it is new.
    pub fn index(&mut self, name: &str) -> LabelIndex {
        if let Some(&index) = self.indices.get(name) {
            return index;
        }
        let index = LabelIndex(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index);
        index
    }

    /// Returns the name with an index; empty if the index is of another graph.
    #[must_use]
    pub fn name(&self, index: LabelIndex) -> &str {
        self.names.get(index.0 as usize).map_or("", String::as_str)
    }
}
