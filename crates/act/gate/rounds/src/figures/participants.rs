//! Who takes part in a run: each process says so itself.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Processes that are told apart; further ones are only counted.
pub const PARTICIPANTS: usize = 1024;

/// Whether a process takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Participation {
    /// Its calls go through the gate.
    TakesPart = 1,
    /// It left: a filter of system calls may kill for the gate's own.
    Filtered = 2,
    /// It stays outside: its clock is another time namespace's.
    OtherClock = 3,
}

impl Participation {
    fn of(number: u32) -> Option<Self> {
        [Self::TakesPart, Self::Filtered, Self::OtherClock]
            .into_iter()
            .find(|&state| state as u32 == number)
    }
}

/// A process' own entry.
#[repr(C)]
#[derive(Debug)]
struct Entry {
    /// 0 while free; then its number in its own namespace, plus one.
    process: AtomicU64,
    namespace: AtomicU64,
    /// Its first thread's name, in two halves.
    name: [AtomicU64; 2],
    calls: AtomicU64,
    /// Written last; 0 before.
    state: AtomicU32,
}

/// A process, as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Its number in its own namespace of processes.
    pub process: u32,
    /// That namespace's inode; 0 if unknown.
    pub namespace: u64,
    /// Its name when it first synchronized, padded with zeros.
    pub name: [u8; 16],
    /// Calls that it made through the library.
    pub calls: u64,
    /// Whether it takes part.
    pub state: Participation,
}

/// All of a run's processes that have synchronized.
#[repr(C)]
#[derive(Debug)]
pub struct Participants {
    entries: [Entry; PARTICIPANTS],
    /// Processes that found no place, and their calls.
    others: AtomicU64,
    calls_of_others: AtomicU64,
}

/// The place of a process in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticipantId(u32);

impl ParticipantId {
    /// The place of processes that found none.
    const OTHERS: Self = Self(PARTICIPANTS as u32);

    /// The place as a number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The place that [`number`](Self::number) gave.
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl Participants {
    pub fn enter(&self, participant: &Participant) -> ParticipantId {
        let key = u64::from(participant.process) + 1;
        let first = participant.process as usize % PARTICIPANTS;
        let (low, high) = self.entries.split_at(first);
        let free = high.iter().chain(low).position(|entry| {
            let found = entry.process.load(Relaxed);
            found == 0 && entry.process.compare_exchange(0, key, AcqRel, Relaxed).is_ok()
        });
        let Some(place) = free.map(|place| (place + first) % PARTICIPANTS) else {
            self.others.fetch_add(1, Relaxed);
            return ParticipantId::OTHERS;
        };
        if let Some(entry) = self.entries.get(place) {
            let [low, high] = halves(participant.name);
            entry.namespace.store(participant.namespace, Relaxed);
            entry.name[0].store(low, Relaxed);
            entry.name[1].store(high, Relaxed);
            entry.calls.store(participant.calls, Relaxed);
            entry.state.store(participant.state as u32, Release);
        }
        ParticipantId(place as u32)
    }

    /// Counts calls of the process at `id`.
    pub fn count(&self, id: ParticipantId, calls: u64) {
        match self.entries.get(id.0 as usize) {
            Some(entry) => entry.calls.fetch_add(calls, Relaxed),
            None => self.calls_of_others.fetch_add(calls, Relaxed),
        };
    }

    /// Notes that the process at `id` does not take part any more.
    pub fn leave(&self, id: ParticipantId, why: Participation) {
        if let Some(entry) = self.entries.get(id.0 as usize) {
            entry.state.store(why as u32, Release);
        }
    }

    /// All that have entered. A number may come again: of a later process, or in another namespace.
    pub fn all(&self) -> impl Iterator<Item = Participant> + '_ {
        self.entries.iter().filter_map(|entry| {
            let state = Participation::of(entry.state.load(Acquire))?;
            Some(Participant {
                process: entry.process.load(Relaxed).wrapping_sub(1) as u32,
                namespace: entry.namespace.load(Relaxed),
                name: bytes([entry.name[0].load(Relaxed), entry.name[1].load(Relaxed)]),
                calls: entry.calls.load(Relaxed),
                state,
            })
        })
    }

    /// Takes over the entries of `other`, which begins anew.
    pub(super) fn take_over(&self, other: &Self) {
        for participant in other.all() {
            self.enter(&participant);
        }
        for entry in &other.entries {
            entry.state.store(0, Relaxed);
            entry.process.store(0, Release);
        }
        for (ours, theirs) in
            [(&self.others, &other.others), (&self.calls_of_others, &other.calls_of_others)]
        {
            ours.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
    }

    /// Processes that found no place in the table, and their calls.
    pub fn others(&self) -> (u64, u64) {
        (self.others.load(Relaxed), self.calls_of_others.load(Relaxed))
    }
}

fn halves(name: [u8; 16]) -> [u64; 2] {
    let both = u128::from_ne_bytes(name);
    [both as u64, (both >> 64) as u64]
}

fn bytes([low, high]: [u64; 2]) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_as_it_described_itself_and_a_full_table_counts() {
        // SAFETY: all zeros is the valid initial state.
        let table: Box<Participants> = unsafe { Box::new_zeroed().assume_init() };
        let participant = |process| Participant {
            process,
            namespace: 4_026_531_836,
            name: *b"postgres\0\0\0\0\0\0\0\0",
            calls: 0,
            state: Participation::TakesPart,
        };
        let first = table.enter(&participant(7));
        table.count(first, 1);
        table.leave(first, Participation::Filtered);
        let expected = Participant { calls: 1, state: Participation::Filtered, ..participant(7) };
        assert!(table.all().eq([expected]));
        // The same number again is another process.
        for _ in 1..PARTICIPANTS {
            table.enter(&participant(7));
        }
        table.count(table.enter(&participant(8)), 1);
        assert_eq!(table.all().count(), PARTICIPANTS);
        assert_eq!(table.others(), (1, 1));
    }
}
