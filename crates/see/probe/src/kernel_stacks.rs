//! Kernel stacks: from the index that the kernel gave to symbol names and a cause.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags};
use luc_events::tables::KernelStack;
use luc_events::wait_cause::classify;
use luc_events::{StackId, WaitCause};

use crate::kernel_symbols::KernelSymbols;
use crate::preemption_guard::PreemptionGuard;
use crate::ring_records::STACK_DEPTH;

/// Frames of the recorder and the scheduler, between the program and what called `schedule`.
const OWN_FRAMES: usize = 12;
/// Maximum number of stacks of sleeping threads: as many as the kernel's map has of others.
const MAX_ASLEEP: usize = 16384;

/// Stacks that were seen so far.
#[derive(Debug)]
pub(crate) struct Stacks {
    symbols: KernelSymbols,
    /// Stacks by index + 1.
    known: HashMap<u32, (StackId, WaitCause)>,
    /// Stacks of sleeping threads, by their addresses.
    asleep: HashMap<[u64; STACK_DEPTH], (StackId, WaitCause)>,
}

impl Stacks {
    pub(crate) fn new(symbols: KernelSymbols) -> Self {
        Self { symbols, known: HashMap::new(), asleep: HashMap::new() }
    }

    /// Returns the id and cause of the stack at `index` - 1 of `map`. Its row comes with them if it is new. An
    /// `index` of 0 is no stack.
    pub(crate) fn resolve(
        &mut self,
        map: &impl MapCore,
        index: u32,
        at_ns: u64,
    ) -> (StackId, WaitCause, Option<KernelStack>) {
        if let Some((id, cause)) = self.known.get(&index) {
            return (*id, *cause, None);
        }
        let mut bytes = [0; STACK_DEPTH * 8];
        let unpreempted = PreemptionGuard::begin();
        let found = index.checked_sub(1).is_some_and(|index| {
            matches!(map.lookup_into(&index.to_ne_bytes(), &mut bytes, MapFlags::ANY), Ok(true))
        });
        drop(unpreempted);
        if !found {
            return (StackId(0), WaitCause::Other, None);
        }
        let addresses =
            bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, u64::from_ne_bytes));
        let (row, cause) = self.row(addresses, at_ns);
        self.known.insert(index, (row.id, cause));
        (row.id, cause, Some(row))
    }

    /// Returns the same for return addresses, up to a 0. No addresses are no stack. New stacks get no number if there
    /// are too many.
    pub(crate) fn resolve_addresses(
        &mut self,
        addresses: &[u64; STACK_DEPTH],
        at_ns: u64,
    ) -> (StackId, WaitCause, Option<KernelStack>) {
        if addresses[0] == 0 {
            return (StackId(0), WaitCause::Other, None);
        }
        if let Some((id, cause)) = self.asleep.get(addresses) {
            return (*id, *cause, None);
        }
        let (row, cause) = self.row(addresses.iter().copied(), at_ns);
        if self.asleep.len() >= MAX_ASLEEP {
            return (StackId(0), cause, None);
        }
        self.asleep.insert(*addresses, (row.id, cause));
        (row.id, cause, Some(row))
    }

    /// Makes the row of a new stack.
    fn row(&self, addresses: impl Iterator<Item = u64>, at_ns: u64) -> (KernelStack, WaitCause) {
        let names: Vec<&str> = addresses
            .take_while(|address| *address != 0)
            .map(|address| self.symbols.name(address).unwrap_or("?"))
            .collect();
        let names = without_own_frames(&names);
        let row = KernelStack {
            at_ns,
            id: StackId((self.known.len() + self.asleep.len()) as u32 + 1),
            symbols: names.join(";"),
        };
        (row, classify(names.iter().copied()))
    }
}

/// Drops the frames of tracing: all before the caller of `__schedule`.
fn without_own_frames<'a, 'b>(names: &'a [&'b str]) -> &'a [&'b str] {
    let own = names.iter().take(OWN_FRAMES).position(|name| *name == "__schedule");
    own.map_or(names, |last| &names[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_s_own_frames_are_dropped() {
        let names =
            ["bpf_prog_1", "__traceiter_sched_switch", "__schedule", "schedule", "io_schedule"];
        assert_eq!(without_own_frames(&names), ["schedule", "io_schedule"]);
        assert_eq!(without_own_frames(&["a", "b"]), ["a", "b"]);
    }

    #[test]
    fn stacks_of_sleeping_threads_are_bounded() {
        let mut stacks = Stacks::new(KernelSymbols::default());
        let mut resolve = |address: usize| {
            let mut addresses = [0; STACK_DEPTH];
            addresses[0] = address as u64;
            let (id, _, row) = stacks.resolve_addresses(&addresses, 1);
            assert_eq!(row.is_some(), (1..=MAX_ASLEEP).contains(&address));
            id
        };
        let last = (0..=MAX_ASLEEP).map(&mut resolve).last();
        assert_eq!(last, Some(StackId(MAX_ASLEEP as u32)));
        assert_eq!(resolve(MAX_ASLEEP + 1), StackId(0));
    }
}
