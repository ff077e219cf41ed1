//! Places of tasks: free ones, and those of subjects.

use std::collections::{HashMap, VecDeque};

use super::shared_memory::MAX_TASKS;

/// A cgroup or thread that is watched as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WatchedSubject {
    /// A cgroup, by its id.
    Cgroup(u64),
    /// A thread, by its id.
    Thread(u32),
}

/// Places of tasks. A free place is reused as late as possible, because requests of its former task may be outstanding.
#[derive(Debug)]
pub(super) struct TaskSlots {
    free: VecDeque<u32>,
    taken: HashMap<WatchedSubject, u32>,
    subjects: Vec<Option<WatchedSubject>>,
}

impl TaskSlots {
    pub(super) fn new() -> Self {
        Self {
            free: (0..MAX_TASKS as u32).collect(),
            taken: HashMap::new(),
            subjects: vec![None; MAX_TASKS],
        }
    }

    /// Returns the place of a subject, if it has one.
    pub(super) fn of(&self, subject: WatchedSubject) -> Option<u32> {
        self.taken.get(&subject).copied()
    }

    /// Gives a subject that has no place one; `None` if all are taken.
    pub(super) fn take(&mut self, subject: WatchedSubject) -> Option<u32> {
        let place = self.free.pop_front()?;
        self.taken.insert(subject, place);
        self.subjects[place as usize] = Some(subject);
        Some(place)
    }

    /// Takes the place back; who had it.
    pub(super) fn free(&mut self, place: u32) -> Option<WatchedSubject> {
        let subject = self.subjects.get_mut(place as usize)?.take()?;
        self.taken.remove(&subject);
        self.free.push_back(place);
        Some(subject)
    }

    /// Returns the number of subjects with a place, and of threads among them.
    pub(super) fn counts(&self) -> (u32, u32) {
        let is_thread = |subject: &&WatchedSubject| matches!(subject, WatchedSubject::Thread(_));
        let threads = self.taken.keys().filter(is_thread).count();
        (self.taken.len() as u32, threads as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two that are watched never share a place, and all places can be had.
        #[test]
        fn places_are_not_shared(steps in prop::collection::vec((any::<bool>(), 0_u64..1500), 0..4000)) {
            let mut places = TaskSlots::new();
            let mut known: HashMap<u64, u32> = HashMap::new();
            for (watch, id) in steps {
                let subject = WatchedSubject::Cgroup(id);
                prop_assert_eq!(places.of(subject), known.get(&id).copied());
                match (watch, known.get(&id).copied()) {
                    (true, None) => match places.take(subject) {
                        Some(place) => {
                            prop_assert!(!known.values().any(|&other| other == place));
                            known.insert(id, place);
                        }
                        None => prop_assert_eq!(known.len(), MAX_TASKS),
                    },
                    (false, Some(place)) => {
                        prop_assert_eq!(places.free(place), Some(subject));
                        prop_assert_eq!(places.free(place), None);
                        known.remove(&id);
                    }
                    _ => {}
                }
                prop_assert_eq!(places.counts(), (known.len() as u32, 0));
            }
        }
    }
}
