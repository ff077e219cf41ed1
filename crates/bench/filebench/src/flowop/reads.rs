//! Flowops that read a part of a file or all of it. Their sizes and offsets are drawn for writes, too.

use std::io::Seek as _;

use rand::RngExt;

use crate::file_syscalls;
use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::PlannedFlowop;
use luc_workload::workers::ClientFault;

/// A single call moves at most this, bytes.
const MAX_CALL_BYTES: u64 = 1 << 30;

impl FlowopWorker<'_> {
    /// Returns the size of the flowop's next call.
    pub(crate) fn io_size(
        &mut self,
        flowop: &PlannedFlowop,
        file: u64,
    ) -> Result<usize, WorkerStop> {
        let size = match self.draw(&flowop.iosize) {
            0 => file.max(1),
            size => size,
        };
        if size > MAX_CALL_BYTES {
            return Err(
                self.fail(flowop, &format!("a call of {size} bytes; use an iosize up to 1g"))
            );
        }
        Ok(size as usize)
    }

    /// Draws a random offset in the first `file` bytes, a multiple of `size`. Filebench never draws the last.
    pub(crate) fn offset(
        &mut self,
        flowop: &PlannedFlowop,
        file: u64,
        size: usize,
    ) -> Result<u64, WorkerStop> {
        let size = size as u64;
        if size > file {
            let why = format!(
                "its iosize of {size} is above the {file} bytes of its file; use a larger file"
            );
            return Err(self.fail(flowop, &why));
        }
        if self.shared.compat {
            let place = self.random.random::<f64>() * (file - size) as f64;
            return Ok(place as u64 / size * size);
        }
        Ok(self.random.random_range(0..file / size) * size)
    }

    pub(crate) fn read(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, file_size) = self.ready(flowop)?;
        let size = self.io_size(flowop, file_size)?;
        if flowop.random {
            let offset = self.offset(flowop, file_size, size)?;
            let call = |worker: &mut Self| {
                let data = worker.buffer.of(size, &mut worker.random);
                match &worker.slots.get(number).file {
                    Some(file) => file_syscalls::read_at(file, data, offset),
                    None => Ok(0),
                }
            };
            return self.timed(flowop, call).map(drop);
        }
        let rewinds = !self.shared.compat;
        let bytes = self.timed(flowop, |worker| {
            let data = worker.buffer.of(size, &mut worker.random);
            let Some(mut file) = worker.slots.get(number).file.as_deref() else {
                return Ok(0);
            };
            let bytes = file_syscalls::read(file, data)?;
            if bytes == 0 && rewinds {
                file.rewind()?;
                return file_syscalls::read(file, data);
            }
            Ok(bytes)
        })?;
        if let (0, Some(mut file)) = (bytes, self.slots.get(number).file.as_deref()) {
            file.rewind().map_err(ClientFault::of(flowop.operation))?;
        }
        Ok(())
    }

    pub(crate) fn read_whole(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let (number, file_size) = self.ready(flowop)?;
        let size = self.io_size(flowop, file_size)?;
        let call = |worker: &mut Self| {
            let data = worker.buffer.of(size, &mut worker.random);
            let mut total = 0;
            if let Some(mut file) = worker.slots.get(number).file.as_deref() {
                file.rewind()?;
                loop {
                    match file_syscalls::read(file, data)? {
                        0 => break,
                        bytes => total += bytes,
                    }
                }
            }
            Ok(total)
        };
        self.timed(flowop, call).map(drop)
    }
}
