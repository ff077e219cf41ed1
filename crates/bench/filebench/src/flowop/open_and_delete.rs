//! Flowops on names and descriptors: open, create, close, delete, stat, fsync.

use std::fs;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use crate::file_syscalls;
use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::{FileAccess, PlannedFlowop};
use luc_workload::fileset::WantedFile;
use luc_workload::workers::ClientFault;

impl FlowopWorker<'_> {
    pub(crate) fn open_flowop(
        &mut self,
        flowop: &PlannedFlowop,
        create: bool,
    ) -> Result<(), WorkerStop> {
        let number = self.slot(flowop);
        if self.slots.get(number).file.is_some() {
            return Err(
                self.fail(flowop, "its file is open already; close it before or use another fd")
            );
        }
        self.open(flowop, number, create, true)
    }

    /// Opens or creates a file of the flowop's fileset; `counted` as an operation of the flowop.
    fn open(
        &mut self,
        flowop: &PlannedFlowop,
        number: usize,
        create: bool,
        counted: bool,
    ) -> Result<(), WorkerStop> {
        let wanted = if create { WantedFile::Missing } else { WantedFile::Existing };
        let (files, index) = self.pick(flowop, wanted)?;
        let tree = &self.shared.trees[files];
        let access = self.shared.plan.filesets[files].access;
        let mut options = OpenOptions::new();
        options
            .read(access != FileAccess::Write)
            .write(access != FileAccess::Read || create)
            .create(create)
            .custom_flags(
                if flowop.direct { libc::O_DIRECT } else { 0 }
                    | if flowop.dsync { libc::O_SYNC } else { 0 },
            );
        let call = |worker: &mut Self| {
            let file = options.open(&tree.paths[index])?;
            if flowop.no_readahead {
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
            }
            worker.slots.get(number).file = Some(Arc::new(file));
            Ok(0)
        };
        if counted {
            self.timed(flowop, call)?;
        } else {
            call(self).map_err(ClientFault::of(flowop.operation))?;
        }
        tree.state.opened(index);
        self.slots.get(number).identity = Some((files, index));
        Ok(())
    }

    /// Returns the slot of a flowop that opens a file or moves data.
    fn slot(&mut self, flowop: &PlannedFlowop) -> usize {
        match flowop.files {
            Some(files) if flowop.opennext && flowop.fd == 0 => {
                let entries = self.shared.trees[files].paths.len();
                self.slots.next(files, entries)
            }
            files => self.slots.number(flowop.fd, files),
        }
    }

    /// Returns the slot of a flowop that moves data, opened if it is closed: one more operation in Filebench.
    pub(crate) fn ready(&mut self, flowop: &PlannedFlowop) -> Result<(usize, u64), WorkerStop> {
        let number = self.slot(flowop);
        if self.slots.get(number).file.is_none() {
            self.open(flowop, number, false, self.shared.compat)?;
        }
        let size = match self.slots.get(number).identity {
            Some((files, index)) => self.shared.trees[files].sizes[index],
            None => 0,
        };
        Ok((number, if flowop.workingset > 0 { flowop.workingset } else { size }))
    }

    pub(crate) fn close(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let number = self.slots.number(flowop.fd, flowop.files);
        let slot = self.slots.get(number);
        let (Some(file), Some((files, index))) = (slot.file.take(), slot.identity) else {
            return Err(self.fail(flowop, "no file is open; open one before or name another fd"));
        };
        self.timed(flowop, |_| {
            drop(file);
            Ok(0)
        })?;
        self.shared.trees[files].state.closed(index);
        Ok(())
    }

    pub(crate) fn delete(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let named = if flowop.fd > 0 { self.slots.get(flowop.fd).identity } else { None };
        let (files, index) = match named {
            Some((files, index)) => {
                if !self.shared.trees[files].state.claim(index, WantedFile::Closed) {
                    return Ok(());
                }
                (files, index)
            }
            None if self.shared.compat => {
                let (files, index) = self.pick(flowop, WantedFile::Existing)?;
                let state = &self.shared.trees[files].state;
                if state.is_open(index) {
                    state.release(index);
                    return Ok(());
                }
                (files, index)
            }
            None => self.pick(flowop, WantedFile::Closed)?,
        };
        let tree = &self.shared.trees[files];
        self.timed(flowop, |_| fs::remove_file(&tree.paths[index]).map(|()| 0))?;
        tree.state.deleted(index);
        Ok(())
    }

    pub(crate) fn stat(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        if flowop.fd > 0 && self.slots.get(flowop.fd).file.is_some() {
            let stat = |worker: &mut Self| match &worker.slots.get(flowop.fd).file {
                Some(file) => file_syscalls::stat(file).map(|()| 0),
                None => Ok(0),
            };
            return self.timed(flowop, stat).map(drop);
        }
        let (files, index) = self.pick(flowop, WantedFile::Existing)?;
        let tree = &self.shared.trees[files];
        let outcome = self
            .timed(flowop, |_| rustix::fs::stat(&tree.paths[index]).map(|_| 0).map_err(Into::into));
        tree.state.release(index);
        outcome.map(drop)
    }

    pub(crate) fn fsync(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let number = self.slots.number(flowop.fd, flowop.files);
        if self.slots.get(number).file.is_none() {
            return Err(self.fail(flowop, "no file is open; open one before or name another fd"));
        }
        let sync = |worker: &mut Self| match &worker.slots.get(number).file {
            Some(file) => file.sync_all().map(|()| 0),
            None => Ok(0),
        };
        self.timed(flowop, sync).map(drop)
    }

    /// Syncs every file of the fileset that this client has open, each as an operation.
    pub(crate) fn fsync_set(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        for number in 0..self.slots.count() {
            let slot = self.slots.get(number);
            let of_set = slot.identity.map(|(files, _)| files) == flowop.files;
            let Some(file) = slot.file.clone().filter(|_| of_set) else {
                continue;
            };
            self.timed(flowop, |_| file.sync_all().map(|()| 0))?;
        }
        Ok(())
    }
}
