//! The paper's services (its sections 5.1 and 5.3): combinations of tasks.

use luc_stats::seeded_random;
use rand::RngExt as _;

use super::programs::{Program, SEVEN, Task};

/// Kind of a service of the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceKind {
    /// Copies of a program on the same data.
    Same,
    /// Copies of a program, each on data of its own.
    Different,
    Compounded,
    /// Programs drawn at random, 8 at a time.
    Batch,
    /// Threads of one program.
    Threads,
}

impl ServiceKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Compounded => "compounded",
            Self::Batch => "batch",
            Self::Threads => "threads",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) kind: ServiceKind,
    /// Numbers of its tasks among those of its guest, from 1.
    pub(super) tasks: Vec<usize>,
    /// Number of tasks at work at a time, if that is not all.
    pub(super) at_a_time: Option<usize>,
}

/// The tasks and services of one guest.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) tasks: Vec<Task>,
    pub(super) services: Vec<Service>,
}

impl Stage {
    /// Makes services of 4 and 8 copies of a program, on the same data and on different.
    pub(super) fn similar(program: Program) -> Self {
        let task = |data| Task { program, data };
        let service = |count: usize, kind, what: &str, tasks| Service {
            name: format!("{}-{count}, {what} data", program.name()),
            kind,
            tasks,
            at_a_time: None,
        };
        let same = |count: usize| std::iter::once(1).chain(9..8 + count).collect();
        Self {
            name: format!("similar {}", program.name()),
            tasks: (1..=8).map(task).chain((1..8).map(|_| task(1))).collect(),
            services: vec![
                service(8, ServiceKind::Different, "different", (1..=8).collect()),
                service(4, ServiceKind::Different, "different", (1..=4).collect()),
                service(8, ServiceKind::Same, "same", same(8)),
                service(4, ServiceKind::Same, "same", same(4)),
            ],
        }
    }

    /// Makes the mix `number` of 8 programs drawn at random, each on data of its own.
    pub(super) fn compounded(number: u64) -> Self {
        Self::draw(format!("C{number}"), ServiceKind::Compounded, 8, number)
    }

    /// Makes a batch of programs drawn at random, 8 of them at work at a time.
    pub(super) fn batch(count: usize) -> Self {
        Self::draw(format!("batch of {count}"), ServiceKind::Batch, count, count as u64)
    }

    fn draw(name: String, kind: ServiceKind, count: usize, stream: u64) -> Self {
        let mut random = seeded_random::stream(23, stream);
        let draw = |data| Task { program: SEVEN[random.random_range(0..SEVEN.len())], data };
        Self {
            tasks: (1..=count).map(draw).collect(),
            services: vec![Service {
                name: name.clone(),
                kind,
                tasks: (1..=count).collect(),
                at_a_time: (kind == ServiceKind::Batch).then_some(8),
            }],
            name,
        }
    }

    /// Makes a word count of this many threads.
    pub(super) fn threads(count: usize) -> Self {
        let name = format!("WD-{count}");
        Self {
            tasks: vec![Task { program: Program::Mappers(count), data: 1 }],
            services: vec![Service {
                name: name.clone(),
                kind: ServiceKind::Threads,
                tasks: vec![1],
                at_a_time: None,
            }],
            name,
        }
    }

    /// Numbers of the tasks that differ. Each is run alone once.
    pub(super) fn different(&self) -> Vec<usize> {
        let is_first = |number: &usize| {
            let task = self.tasks[number - 1];
            self.tasks.iter().position(|other| *other == task) == Some(number - 1)
        };
        (1..=self.tasks.len()).filter(is_first).collect()
    }

    /// Number of the task that is run alone for this one.
    pub(super) fn alone_of(&self, number: usize) -> usize {
        let task = self.tasks[number - 1];
        let first = self.tasks.iter().position(|other| *other == task);
        first.map_or(number, |index| index + 1)
    }

    pub(super) fn mib(&self) -> u64 {
        self.tasks.iter().map(|task| task.mib()).sum()
    }

    /// Lists its programs with their numbers: `2 KM, 1 PS`.
    pub(super) fn about(&self) -> String {
        let all = SEVEN.iter().filter_map(|program| {
            let count = self.tasks.iter().filter(|task| task.program == *program).count();
            (count > 0).then(|| format!("{count} {}", program.name()))
        });
        all.collect::<Vec<String>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_on_the_same_data_are_run_alone_once() {
        let stage = Stage::similar(Program::Kmeans);
        assert_eq!(stage.tasks.len(), 15);
        assert_eq!(stage.different(), (1..=8).collect::<Vec<usize>>());
        let same = &stage.services[2];
        assert_eq!((same.kind, same.tasks.len()), (ServiceKind::Same, 8));
        assert!(same.tasks.iter().all(|number| stage.alone_of(*number) == 1));
    }

    #[test]
    fn mixes_are_drawn_alike_each_time() {
        assert_eq!(Stage::compounded(1).tasks, Stage::compounded(1).tasks);
        assert_ne!(Stage::compounded(1).tasks, Stage::compounded(2).tasks);
        assert_eq!(Stage::batch(32).services[0].at_a_time, Some(8));
    }
}
