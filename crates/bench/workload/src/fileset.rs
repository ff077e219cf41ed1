//! State of a Filebench fileset: existing, busy and open files.
//!
//! A pick takes the first file of the wanted kind at or after a rotor that all clients share. It skips busy files,
//! and moves the rotor past the picked one. So picks are cyclic, not random (Filebench `fileset_pick`). Filebench
//! keeps trees under a lock. Here each file is one atomic word, so a pick takes no lock and works across processes.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::shared_memory::SharedSlice;

const EXISTS: u32 = 1 << 31;
const BUSY: u32 = 1 << 30;

/// State that a file must have to be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedFile {
    /// A file that exists.
    Existing,
    /// A file that exists and that no client has open.
    Closed,
    /// A name without a file.
    Missing,
}

/// The state of the files, shared with forked processes.
#[derive(Debug)]
pub struct Fileset {
    /// Per file: exists, busy, and the number of opens in the low bits.
    files: SharedSlice<AtomicU32>,
    /// Start of the next pick of an existing, and of a missing, file.
    rotors: SharedSlice<AtomicU32>,
}

impl Fileset {
    /// Creates names for which no file exists yet.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(entries: usize) -> io::Result<Self> {
        Ok(Self { files: SharedSlice::new(entries)?, rotors: SharedSlice::new(2)? })
    }

    /// Marks file `index` as made in advance.
    pub fn set_existing(&self, index: usize) {
        self.files[index].store(EXISTS, Ordering::Relaxed);
    }

    /// Picks a file and makes it busy; the caller then ends with one of the methods below. Waits
    /// while all candidates are busy, which lasts for one call; `None` if there is no candidate.
    pub fn pick(&self, wanted: WantedFile) -> Option<usize> {
        let rotor = &self.rotors[usize::from(wanted == WantedFile::Missing)];
        loop {
            let start = rotor.load(Ordering::Relaxed) as usize;
            let mut busy = false;
            for step in 0..self.files.len() {
                let index = (start + step) % self.files.len();
                let file = &self.files[index];
                let state = file.load(Ordering::Relaxed);
                if !matches(state, wanted) {
                    continue;
                }
                let taken = state & BUSY == 0
                    && file
                        .compare_exchange(state, state | BUSY, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok();
                if taken {
                    rotor.store((index + 1) as u32, Ordering::Relaxed);
                    return Some(index);
                }
                busy = true;
            }
            if !busy {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Picks as [`Fileset::pick`] does, but from `start` on and without the rotor.
    pub fn pick_from(&self, wanted: WantedFile, start: usize) -> Option<usize> {
        loop {
            let count = self.files.len();
            let mut candidates = (0..count)
                .map(|step| (start + step) % count)
                .filter(|&index| matches(self.files[index].load(Ordering::Relaxed), wanted))
                .peekable();
            candidates.peek()?;
            if let Some(index) = candidates.find(|&index| self.claim(index, wanted)) {
                return Some(index);
            }
            std::thread::yield_now();
        }
    }

    /// Makes file `index` busy if it is of the wanted kind and not busy; whether it was.
    pub fn claim(&self, index: usize, wanted: WantedFile) -> bool {
        let claimed = |state| (matches(state, wanted) && state & BUSY == 0).then_some(state | BUSY);
        self.files[index].fetch_update(Ordering::Acquire, Ordering::Relaxed, claimed).is_ok()
    }

    /// Releases a picked file that was neither opened nor changed.
    pub fn release(&self, index: usize) {
        self.files[index].fetch_and(!BUSY, Ordering::Release);
    }

    /// Returns whether a client has file `index` open.
    pub fn is_open(&self, index: usize) -> bool {
        self.files[index].load(Ordering::Relaxed) & !(EXISTS | BUSY) != 0
    }

    /// Marks a picked file as opened or created: it exists, is open once more, no longer busy.
    pub fn opened(&self, index: usize) {
        let opens = self.files[index].load(Ordering::Relaxed) & !(EXISTS | BUSY);
        self.files[index].store(EXISTS | (opens + 1), Ordering::Release);
    }

    /// Marks the picked file as existing and open for nobody.
    pub fn made(&self, index: usize) {
        self.files[index].store(EXISTS, Ordering::Release);
    }

    /// Marks a picked file as deleted.
    pub fn deleted(&self, index: usize) {
        self.files[index].store(0, Ordering::Release);
    }

    /// Marks a file as closed once, after [`Fileset::opened`].
    pub fn closed(&self, index: usize) {
        // Another client may open the file meanwhile and makes it busy for that.
        let busy = |state: u32| state & BUSY != 0;
        while self.files[index]
            .fetch_update(Ordering::Release, Ordering::Relaxed, |state| {
                (!busy(state)).then(|| state - 1)
            })
            .is_err()
        {
            std::thread::yield_now();
        }
    }
}

fn matches(state: u32, wanted: WantedFile) -> bool {
    let exists = state & EXISTS != 0;
    match wanted {
        WantedFile::Existing => exists,
        WantedFile::Closed => exists && state & !(EXISTS | BUSY) == 0,
        WantedFile::Missing => !exists,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn picks_go_round() {
        let set = Fileset::new(4).expect("memory");
        for index in [0, 1, 3] {
            set.set_existing(index);
        }
        let picks: Vec<Option<usize>> = (0..4)
            .map(|_| {
                let index = set.pick(WantedFile::Existing)?;
                set.opened(index);
                set.closed(index);
                Some(index)
            })
            .collect();
        assert_eq!(picks, [Some(0), Some(1), Some(3), Some(0)]);
        assert_eq!(set.pick(WantedFile::Missing), Some(2));
        set.opened(2);
        assert_eq!(set.pick(WantedFile::Missing), None);
    }

    #[test]
    fn an_open_file_can_be_opened_again_but_not_deleted() {
        let set = Fileset::new(1).expect("memory");
        set.set_existing(0);
        for _ in 0..2 {
            assert_eq!(set.pick(WantedFile::Existing), Some(0));
            set.opened(0);
        }
        assert_eq!(set.pick(WantedFile::Closed), None);
        set.closed(0);
        assert_eq!(set.pick(WantedFile::Closed), None);
        set.closed(0);
        assert_eq!(set.pick(WantedFile::Closed), Some(0));
        set.deleted(0);
        assert_eq!(set.pick(WantedFile::Existing), None);
        assert_eq!(set.pick(WantedFile::Missing), Some(0));
    }

    proptest! {
        #[test]
        fn a_lone_client_sees_a_model(actions in prop::collection::vec(0_u8..3, 0..200)) {
            let set = Fileset::new(7).expect("memory");
            let mut exists = [false; 7];
            for action in actions {
                match action {
                    0 => match set.pick(WantedFile::Missing) {
                        Some(index) => {
                            prop_assert!(!exists[index]);
                            set.opened(index);
                            set.closed(index);
                            exists[index] = true;
                        }
                        None => prop_assert!(exists.iter().all(|&exists| exists)),
                    },
                    1 => match set.pick(WantedFile::Closed) {
                        Some(index) => {
                            prop_assert!(exists[index]);
                            set.deleted(index);
                            exists[index] = false;
                        }
                        None => prop_assert!(!exists.iter().any(|&exists| exists)),
                    },
                    _ => match set.pick(WantedFile::Existing) {
                        Some(index) => {
                            prop_assert!(exists[index]);
                            set.opened(index);
                            set.closed(index);
                        }
                        None => prop_assert!(!exists.iter().any(|&exists| exists)),
                    },
                }
            }
        }
    }

    #[test]
    fn clients_never_share_a_busy_file() {
        let set = Fileset::new(8).expect("memory");
        let owners: Vec<AtomicU32> = (0..8).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..2000 {
                        let wanted =
                            if round % 2 == 0 { WantedFile::Missing } else { WantedFile::Closed };
                        let Some(index) = set.pick(wanted) else {
                            continue;
                        };
                        assert_eq!(owners[index].fetch_add(1, Ordering::Relaxed), 0);
                        owners[index].fetch_sub(1, Ordering::Relaxed);
                        if wanted == WantedFile::Missing {
                            set.opened(index);
                            set.closed(index);
                        } else {
                            set.deleted(index);
                        }
                    }
                });
            }
        });
    }
}
