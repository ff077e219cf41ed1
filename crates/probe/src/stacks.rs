//! Kernel stacks: from the index that the kernel gave to symbol names and a cause.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags};
use luc_events::cause::classify;
use luc_events::tables::Stack;
use luc_events::{Cause, StackId};

use crate::record::STACK_DEPTH;
use crate::symbols::Symbols;

/// Frames of the recorder and the scheduler, between the program and what called `schedule`.
const OWN_FRAMES: usize = 12;

/// The stacks that were seen so far.
#[derive(Debug)]
pub(crate) struct Stacks {
    symbols: Symbols,
    /// By index + 1.
    known: HashMap<u32, (StackId, Cause)>,
}

impl Stacks {
    pub(crate) fn new(symbols: Symbols) -> Self {
        Self {
            symbols,
            known: HashMap::new(),
        }
    }

    /// The id and cause of the stack at `index` - 1 of `map`; and its row, if it is new. 0 is no stack.
    pub(crate) fn resolve(
        &mut self,
        map: &impl MapCore,
        index: u32,
        at_ns: u64,
    ) -> (StackId, Cause, Option<Stack>) {
        if let Some((id, cause)) = self.known.get(&index) {
            return (*id, *cause, None);
        }
        let mut bytes = [0; STACK_DEPTH * 8];
        let found = index.checked_sub(1).is_some_and(|index| {
            matches!(
                map.lookup_into(&index.to_ne_bytes(), &mut bytes, MapFlags::ANY),
                Ok(true)
            )
        });
        if !found {
            return (StackId(0), Cause::Other, None);
        }
        let addresses = bytes
            .chunks_exact(8)
            .map(|chunk| chunk.try_into().map_or(0, u64::from_ne_bytes))
            .take_while(|address| *address != 0);
        let names: Vec<&str> = addresses
            .map(|address| self.symbols.name(address).unwrap_or("?"))
            .collect();
        let names = without_own_frames(&names);
        let cause = classify(names.iter().copied());
        let id = StackId(self.known.len() as u32 + 1);
        self.known.insert(index, (id, cause));
        let row = Stack {
            at_ns,
            id,
            symbols: names.join(";"),
        };
        (id, cause, Some(row))
    }
}

/// Drops the frames of tracing: all before the caller of `__schedule`.
fn without_own_frames<'a, 'b>(names: &'a [&'b str]) -> &'a [&'b str] {
    let own = names
        .iter()
        .take(OWN_FRAMES)
        .position(|name| *name == "__schedule");
    own.map_or(names, |last| &names[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_s_own_frames_are_dropped() {
        let names = [
            "bpf_prog_1",
            "__traceiter_sched_switch",
            "__schedule",
            "schedule",
            "io_schedule",
        ];
        assert_eq!(without_own_frames(&names), ["schedule", "io_schedule"]);
        assert_eq!(without_own_frames(&["a", "b"]), ["a", "b"]);
    }
}
