//! Flowops on directories: make, remove, list.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::Ordering;

use rand::RngExt;

use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::PlannedFlowop;
use luc_workload::fileset::WantedFile;

/// Bytes that a directory entry counts besides its name.
const ENTRY_BYTES: u64 = 279;

impl FlowopWorker<'_> {
    pub(crate) fn make_directory(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (files, index) = self.pick_leaf(flowop, WantedFile::Missing)?;
        let tree = &self.shared.trees[files];
        self.timed(flowop, |_| fs::create_dir(&tree.leaves[index]).map(|()| 0))?;
        tree.leaf_state.made(index);
        Ok(())
    }

    pub(crate) fn remove_directory(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (files, index) = self.pick_leaf(flowop, WantedFile::Existing)?;
        let tree = &self.shared.trees[files];
        self.timed(flowop, |_| fs::remove_dir(&tree.leaves[index]).map(|()| 0))?;
        tree.leaf_state.deleted(index);
        Ok(())
    }

    /// Lists the next directory, or any; the root is one of them.
    pub(crate) fn list_directory(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let files = self.files(flowop)?;
        let tree = &self.shared.trees[files];
        let count = tree.directories.len();
        let index = match &flowop.indexed {
            Some(number) => (self.draw(number) % count as u64) as usize,
            None if self.shared.compat => tree.rotor.fetch_add(1, Ordering::Relaxed) % count,
            None => self.random.random_range(0..count),
        };
        let list = |_: &mut Self| {
            let mut bytes = 0;
            for entry in fs::read_dir(&tree.directories[index])? {
                bytes += entry?.file_name().as_bytes().len() as u64 + ENTRY_BYTES;
            }
            Ok(bytes)
        };
        self.timed(flowop, list).map(drop)
    }
}
