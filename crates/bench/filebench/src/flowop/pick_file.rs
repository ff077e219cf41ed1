//! Choice of a file or directory for a flowop.

use rand::RngExt;

use crate::ast::RunEndRule;
use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::PlannedFlowop;
use luc_workload::fileset::{Fileset, WantedFile};

impl FlowopWorker<'_> {
    /// Returns the fileset that a flowop names.
    pub(crate) fn files(&self, flowop: &PlannedFlowop) -> Result<usize, WorkerStop> {
        flowop.files.ok_or_else(|| {
            self.fail(flowop, "it has neither an open file nor a fileset; add filesetname=NAME")
        })
    }

    /// Picks a file of the flowop's fileset, made busy: in turn as Filebench does, or at random.
    pub(crate) fn pick(
        &mut self,
        flowop: &PlannedFlowop,
        wanted: WantedFile,
    ) -> Result<(usize, usize), WorkerStop> {
        let files = self.files(flowop)?;
        let tree = &self.shared.trees[files];
        let count = tree.paths.len();
        let index = match &flowop.indexed {
            Some(number) if count > 0 => {
                let start = self.draw(number) % count as u64;
                tree.state.pick_from(wanted, start as usize)
            }
            None if flowop.opennext && count > 0 => {
                let next = self.slots.next_file(files);
                let index = tree.state.pick_from(wanted, *next % count);
                *next = index.map_or(*next, |index| index + 1);
                index
            }
            _ => self.pick_any(&tree.state, wanted, count),
        };
        let kind =
            if wanted == WantedFile::Missing { "name left to create" } else { "file left to use" };
        self.use_pick(flowop, files, index, kind)
    }

    /// Picks a leaf directory of the flowop's fileset, made busy.
    pub(crate) fn pick_leaf(
        &mut self,
        flowop: &PlannedFlowop,
        wanted: WantedFile,
    ) -> Result<(usize, usize), WorkerStop> {
        let files = self.files(flowop)?;
        let tree = &self.shared.trees[files];
        let count = tree.leaves.len();
        let index = match &flowop.indexed {
            Some(number) if count > 0 => {
                let start = u128::from(self.draw(number)) * count as u128 / 2 % count as u128;
                tree.leaf_state.pick_from(wanted, start as usize)
            }
            _ => self.pick_any(&tree.leaf_state, wanted, count),
        };
        let kind = if wanted == WantedFile::Missing {
            "leaf directory left to make"
        } else {
            "leaf directory left to remove"
        };
        self.use_pick(flowop, files, index, kind)
    }

    fn pick_any(&mut self, state: &Fileset, wanted: WantedFile, count: usize) -> Option<usize> {
        if self.shared.compat {
            state.pick(wanted)
        } else if count > 0 {
            state.pick_from(wanted, self.random.random_range(0..count))
        } else {
            None
        }
    }

    /// Returns the pick. With nothing left to pick, the run fails if it has a time, and otherwise ends.
    fn use_pick(
        &self,
        flowop: &PlannedFlowop,
        files: usize,
        index: Option<usize>,
        kind: &str,
    ) -> Result<(usize, usize), WorkerStop> {
        match index {
            Some(index) => Ok((files, index)),
            None if self.shared.plan.mode != RunEndRule::Timeout => Err(WorkerStop::Done),
            None => {
                let name = &self.shared.plan.filesets[files].name;
                let advice = "change its entries or prealloc, or set mode quit firstdone";
                Err(self.fail(flowop, &format!("fileset '{name}' has no {kind}; {advice}")))
            }
        }
    }
}
