//! Programs that are run rather than attached: iterators over what is there, and what each processor hands over.

use std::ffi::OsStr;
use std::io::Read as _;
use std::thread;

use libbpf_rs::{Iter, MapCore, MapFlags, ProgramInput};
use luc_units::OnPath as _;

use super::{
    ASLEEP_END, COUNT_RUNNING, END_PROGRAM, END_VISIT, FILES, FILES_END, HAND_OVER, MAX_VISITS,
    MESSAGES, NETWORK_BEGIN, PIPE_END, PLACE_END, RecorderPrograms, VISIT_INTERVAL, WAITS,
    WITHOUT_STATE,
};
use crate::ProbeError;
use crate::preemption_guard::PreemptionGuard;
use crate::ring_records::{self, BATCH, BatchHead, LOST_PLACES, Plain};

impl RecorderPrograms {
    /// Visits the present state: sums and times of threads, connections, sleeping threads. `consume` takes the records
    /// of each kind before the next come: all at once may not fit into the ring buffer.
    pub(crate) fn visit_all(
        &self,
        mut consume: impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        self.visit(END_PROGRAM)?;
        consume()?;
        if self.network {
            self.run_once(PIPE_END)?;
            if self.by_calls {
                self.run_once(PLACE_END)?;
            }
            consume()?;
            self.forget_files()?;
            self.set(END_VISIT, self.variable(END_VISIT)?.wrapping_add(1))?;
            self.visit(FILES_END)?;
        }
        if self.sleepers {
            self.visit(ASLEEP_END)?;
            consume()?;
        }
        Ok(())
    }

    /// Forgets which files were connections: numbers of files are used again.
    fn forget_files(&self) -> Result<(), ProbeError> {
        let files = self.map(FILES)?;
        let known: Vec<Vec<u8>> = files.keys().collect();
        for file in known {
            files.delete(&file).map_err(ProbeError::refused("changing its maps"))?;
        }
        Ok(())
    }

    /// Makes each processor hand over its gathered rows.
    pub(crate) fn hand_over(&self) {
        if self.network {
            self.run_on_each_processor(HAND_OVER);
        }
    }

    /// Makes each processor read its counters for the running thread.
    pub(crate) fn count_running(&self) {
        if self.counts {
            self.run_on_each_processor(COUNT_RUNNING);
        }
    }

    /// Runs the program of this name on this processor.
    fn run_once(&self, name: &str) -> Result<(), ProbeError> {
        let programs = self.object.progs_mut();
        for program in programs.filter(|program| program.name() == name) {
            program
                .test_run(ProgramInput::default())
                .map_err(ProbeError::refused(format!("the program {name}")))?;
        }
        Ok(())
    }

    fn run_on_each_processor(&self, name: &str) {
        let programs = self.object.progs_mut();
        for program in programs.filter(|program| program.name() == name) {
            for cpu in 0..self.processors {
                // One that is offline refuses: what it has is found later.
                let _ = program.test_run(ProgramInput {
                    cpu,
                    flags: libbpf_sys::BPF_F_TEST_RUN_ON_CPU,
                    ..ProgramInput::default()
                });
            }
        }
    }

    /// Returns the rows that processors still have, as records. Call it when the programs no longer run.
    pub(crate) fn held_batches(&self) -> Result<Vec<Vec<u8>>, ProbeError> {
        let mut records = Vec::new();
        if !self.network {
            return Ok(records);
        }
        for (name, row_bytes) in [
            (MESSAGES, size_of::<ring_records::Message>()),
            (WAITS, size_of::<ring_records::Wait>()),
        ] {
            for batch in self.resting(name)? {
                let rows = BatchHead::read(&batch).map_or(0, |head| head.count as usize);
                let rows =
                    batch[size_of::<BatchHead>()..].chunks_exact(row_bytes).take(rows.min(BATCH));
                records.extend(rows.map(<[u8]>::to_vec));
            }
        }
        Ok(records)
    }

    /// Returns the processors' batches of this name, as soon as no program is writing one. From Linux 7.0 on a program
    /// may be preempted there.
    fn resting(&self, name: &'static str) -> Result<Vec<Vec<u8>>, ProbeError> {
        let mut looks = 0;
        loop {
            let batches = self
                .map(name)?
                .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(ProbeError::refused("reading its maps"))?
                .unwrap_or_default();
            let is_busy =
                |batch: &Vec<u8>| BatchHead::read(batch).is_some_and(|head| head.busy != 0);
            looks += 1;
            if looks > MAX_VISITS || !batches.iter().any(is_busy) {
                return Ok(batches);
            }
            thread::sleep(VISIT_INTERVAL);
        }
    }

    /// Runs the iterator of this name, once for each thread or open file.
    pub(super) fn visit(&self, name: &str) -> Result<(), ProbeError> {
        let what = match name {
            NETWORK_BEGIN | FILES_END => "all open files",
            _ => "all threads",
        };
        let refused = || ProbeError::refused(format!("going through {what}"));
        for program in self.object.progs_mut() {
            if program.name() == OsStr::new(name) {
                let link = program.attach().map_err(refused())?;
                let mut iterator = Iter::new(&link).map_err(refused())?;
                let mut output = Vec::new();
                iterator.read_to_end(&mut output).map_err(ProbeError::io("go through", what))?;
            }
        }
        Ok(())
    }

    /// Number of events lost since loading, by the places of [`LOST_PLACES`].
    pub(crate) fn lost(&self) -> Result<[u64; LOST_PLACES.len()], ProbeError> {
        let map = self.map("lost")?;
        let _unpreempted = PreemptionGuard::begin();
        let mut counts = [0; LOST_PLACES.len()];
        for (place, count) in counts.iter_mut().enumerate() {
            let per_processor = map
                .lookup_percpu(&(place as u32).to_ne_bytes(), MapFlags::ANY)
                .map_err(ProbeError::refused("reading what was lost"))?
                .unwrap_or_default();
            *count = per_processor
                .iter()
                .filter_map(|bytes| bytes.as_slice().try_into().ok().map(u64::from_ne_bytes))
                .sum();
            if LOST_PLACES[place] == "map thread" {
                *count += u64::from(self.variable(WITHOUT_STATE)?);
            }
        }
        Ok(counts)
    }
}
