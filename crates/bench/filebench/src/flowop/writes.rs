//! Flowops that write a part of a file, write it whole, append to it, or write asynchronously.

use std::io::{Seek as _, SeekFrom};

use rand::RngExt;

use crate::file_syscalls;
use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::{FlowopKind, PlannedFlowop};
use luc_workload::workers::now_ns;

impl FlowopWorker<'_> {
    /// Writes at a random place of the file, or on and on, as in Filebench, so that the file grows.
    pub(crate) fn write(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, file_size) = self.ready(flowop)?;
        let size = self.io_size(flowop, file_size)?;
        let offset = if flowop.random { Some(self.offset(flowop, file_size, size)?) } else { None };
        let call = |worker: &mut Self| {
            let data = worker.buffer.of(size, &mut worker.random);
            if let Some(file) = worker.slots.get(number).file.as_deref() {
                match offset {
                    Some(offset) => file_syscalls::write_at(file, data, offset)?,
                    None => file_syscalls::write_all(file, data)?,
                }
            }
            Ok(size as u64)
        };
        self.timed(flowop, call).map(drop)
    }

    /// Writes as many bytes as the file in `srcfd` has, or as the file itself. Filebench rounds up to whole calls.
    pub(crate) fn write_whole(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, mut length) = self.ready(flowop)?;
        if let (1.., Some((files, index))) = (flowop.srcfd, self.slots.get(flowop.srcfd).identity) {
            length = self.shared.trees[files].sizes[index];
        }
        let size = self.io_size(flowop, length)? as u64;
        if self.shared.compat && length > size {
            length = length.div_ceil(size).saturating_mul(size);
        }
        let call = |worker: &mut Self| {
            let data = worker.buffer.of(size as usize, &mut worker.random);
            if let Some(file) = worker.slots.get(number).file.as_deref() {
                let mut left = length;
                while left > 0 {
                    let piece = left.min(size);
                    file_syscalls::write_all(file, &data[..piece as usize])?;
                    left -= piece;
                }
            }
            Ok(length)
        };
        self.timed(flowop, call).map(drop)
    }

    /// Appends. Filebench's random append is uniform from 0 to one byte less than `iosize`; ours from 1 to `iosize`.
    pub(crate) fn append(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, file_size) = self.ready(flowop)?;
        let mut size = self.io_size(flowop, file_size)?;
        if flowop.task == FlowopKind::AppendRandom {
            size = self.random.random_range(0..size) + usize::from(!self.shared.compat);
        }
        let call = |worker: &mut Self| {
            let data = worker.buffer.of(size, &mut worker.random);
            if let Some(mut file) = worker.slots.get(number).file.as_deref()
                && size > 0
            {
                file.seek(SeekFrom::End(0))?;
                file_syscalls::write_all(file, data)?;
            }
            Ok(size as u64)
        };
        self.timed(flowop, call).map(drop)
    }

    /// Hands a random write to the client's pool; it counts when it is handed over.
    pub(crate) fn aio_write(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, file_size) = self.ready(flowop)?;
        let size = self.io_size(flowop, file_size)?;
        let offset = self.offset(flowop, file_size, size)?;
        let Some(file) = self.slots.get(number).file.clone() else {
            return Ok(());
        };
        let start = now_ns();
        self.aio.submit(self.client, flowop.operation, &file, offset, size, &mut self.random)?;
        self.completed(flowop, start, size as u64);
        Ok(())
    }

    pub(crate) fn aio_wait(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let start = now_ns();
        self.aio.reap()?;
        self.completed(flowop, start, 0);
        Ok(())
    }
}
