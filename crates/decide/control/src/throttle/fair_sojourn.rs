//! The fair sojourn protocol: runs first the task that would finish first under fair sharing.
//!
//! Friedman and Henderson, "Fairness and efficiency in web server protocols" (SIGMETRICS 2003). A lossless weighted
//! fair sharing of the disk is simulated beside the real disk. The task that finishes first there is served first here.
//! With known sizes no task finishes later than under fair sharing. The mean is near that of shortest remaining time
//! first. Work is counted in device time, so each task pays for the seeks that it causes.
//!
//! A task of unknown size is believed to need twice what it has received. So tasks that are known to be shorter pass
//! it. Among tasks of unknown size this is least attained service, in size classes that double. Within a class no task
//! passes another, so a long task is set back only log2(size / first class) times. A known size that proves wrong falls
//! back on the same rule.

use std::collections::BTreeMap;

use super::policy_input::TaskId;

/// Work below this counts as done, ns.
const DONE_BELOW_NS: f64 = 1.0;

/// A task in the simulated fair sharing.
#[derive(Clone, Copy, Debug, Default)]
struct FairJob {
    weight: f64,
    arrived_ns: u64,
    /// Device time that it is believed to need in all, ns.
    size_ns: f64,
    /// Device time that fair sharing has given it, ns.
    served_ns: f64,
    /// Time at which fair sharing finished it, ns.
    finished_ns: Option<u64>,
    /// Whether the real task has ended. The job stays until fair sharing has finished it, too.
    has_left: bool,
}

impl FairJob {
    fn left_ns(&self) -> f64 {
        (self.size_ns - self.served_ns).max(0.0)
    }

    fn is_finished(&self) -> bool {
        self.left_ns() < DONE_BELOW_NS
    }
}

/// Lossless weighted fair sharing of one disk, simulated in device time.
#[derive(Clone, Debug, Default)]
pub struct FairSharing {
    jobs: BTreeMap<TaskId, FairJob>,
}

impl FairSharing {
    /// Adds a task that is believed to need `size_ns` of device time in all.
    pub fn arrive(&mut self, task: TaskId, weight: u32, size_ns: u64, now_ns: u64) {
        let job = FairJob {
            weight: f64::from(weight.max(1)),
            arrived_ns: now_ns,
            size_ns: size_ns as f64,
            ..FairJob::default()
        };
        self.jobs.insert(task, job);
    }

    /// Whether a task takes part.
    #[must_use]
    pub fn has(&self, task: TaskId) -> bool {
        self.jobs.contains_key(&task)
    }

    /// Changes the belief about a task: `size_ns` is its device time in all, ns.
    pub fn believe(&mut self, task: TaskId, weight: u32, size_ns: u64) {
        if let Some(job) = self.jobs.get_mut(&task) {
            job.weight = f64::from(weight.max(1));
            job.size_ns = size_ns as f64;
            if !job.is_finished() {
                job.finished_ns = None;
            }
        }
    }

    /// Notes that a task has really ended, after `attained_ns` of device time. Under fair sharing it may still have
    /// work to do.
    pub fn leave(&mut self, task: TaskId, attained_ns: u64) {
        if let Some(job) = self.jobs.get_mut(&task) {
            job.size_ns = attained_ns as f64;
            job.has_left = true;
            if job.is_finished() {
                self.jobs.remove(&task);
            }
        }
    }

    /// Shares `work_ns` of device time, done until `now_ns`, among unfinished tasks that want the disk. A task that has
    /// really ended counts as wanting it until fair sharing has finished it.
    pub fn advance(&mut self, work_ns: u64, now_ns: u64, wants: impl Fn(TaskId) -> bool) {
        let mut sharers: Vec<&mut FairJob> = self
            .jobs
            .iter_mut()
            .filter(|(task, job)| !job.is_finished() && (job.has_left || wants(**task)))
            .map(|(_, job)| job)
            .collect();
        let mut left_ns = work_ns as f64;
        while left_ns > 0.0 && !sharers.is_empty() {
            let weights: f64 = sharers.iter().map(|job| job.weight).sum();
            let until_first_ns = sharers
                .iter()
                .map(|job| job.left_ns() / job.weight * weights)
                .fold(f64::INFINITY, f64::min);
            let step_ns = until_first_ns.min(left_ns);
            left_ns -= step_ns;
            for job in &mut sharers {
                job.served_ns += step_ns * job.weight / weights;
                if job.is_finished() {
                    job.finished_ns = Some(now_ns.saturating_sub(left_ns as u64));
                }
            }
            sharers.retain(|job| !job.is_finished());
        }
        self.jobs.retain(|_, job| !(job.has_left && job.is_finished()));
    }

    /// Rank in the fair sojourn protocol: smaller is served first. Positive: device time that the task lacks in fair
    /// sharing, ns for a weight of 100. Negative: time since it finished there, ns.
    #[must_use]
    pub fn rank(&self, task: TaskId, now_ns: u64) -> f64 {
        let Some(job) = self.jobs.get(&task) else {
            return f64::INFINITY;
        };
        match job.finished_ns {
            Some(finished_ns) if job.is_finished() => -(now_ns.saturating_sub(finished_ns) as f64),
            _ => job.left_ns() / job.weight * 100.0,
        }
    }

    /// Device time that fair sharing has given a task, ns.
    #[must_use]
    pub fn served_ns(&self, task: TaskId) -> u64 {
        self.jobs.get(&task).map_or(0, |job| job.served_ns as u64)
    }

    /// Arrival of each task that has not ended, and its finish under fair sharing if no other task arrives, ns.
    #[must_use]
    pub fn finishes(&self, now_ns: u64) -> Vec<FairFinish> {
        let mut jobs: Vec<(TaskId, &FairJob)> =
            self.jobs.iter().map(|(task, job)| (*task, job)).collect();
        let key = |job: &FairJob| job.left_ns() / job.weight;
        jobs.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));
        let mut weights: f64 = jobs.iter().map(|(_, job)| job.weight).sum();
        let mut before_ns = 0.0;
        let mut finishes = Vec::with_capacity(jobs.len());
        for (task, job) in jobs {
            let work_ns = before_ns + job.left_ns() / job.weight * weights;
            before_ns += job.left_ns();
            weights -= job.weight;
            if !job.has_left {
                let projected_ns = now_ns.saturating_add(work_ns as u64);
                let finish_ns =
                    job.finished_ns.filter(|_| job.is_finished()).unwrap_or(projected_ns);
                finishes.push(FairFinish { task, arrived_ns: job.arrived_ns, finish_ns });
            }
        }
        finishes
    }
}

/// Finish of a task under fair sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairFinish {
    /// The task that finishes.
    pub task: TaskId,
    /// Time of its arrival, ns.
    pub arrived_ns: u64,
    /// Past or expected time of its finish, ns.
    pub finish_ns: u64,
}

/// Smallest size that a task of unknown size is believed to have, ns. Most tasks are short.
const MIN_BELIEVED_SIZE_NS: u64 = 500_000_000;

/// Device time that a task of unknown size is believed to need in all, ns: twice what it has received.
#[must_use]
pub fn believed_size_ns(attained_ns: u64) -> u64 {
    attained_ns.saturating_mul(2).max(MIN_BELIEVED_SIZE_NS)
}

/// Size class of a task of unknown size. Classes double, and the first ends at `first_class_ns`.
#[must_use]
pub fn size_class(attained_ns: u64, first_class_ns: u64) -> u32 {
    let past_first = (attained_ns / first_class_ns.max(1)).checked_ilog2();
    past_first.map_or(0, |doublings| doublings + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP_NS: u64 = 1_000_000;

    #[derive(Clone, Copy, Debug)]
    struct Arrival {
        at_ns: u64,
        size_ns: u64,
        weight: u32,
    }

    /// Finishes under fair sharing itself, and on a lossless server that serves the smallest rank first.
    fn run(arrivals: &[Arrival], believes: impl Fn(u64, Arrival) -> u64) -> (Vec<u64>, Vec<u64>) {
        let mut reference = FairSharing::default();
        let mut guide = FairSharing::default();
        let mut attained = vec![0_u64; arrivals.len()];
        let mut fair = vec![0; arrivals.len()];
        let mut real = vec![0; arrivals.len()];
        let mut now_ns = 0;
        while real.contains(&0) || fair.contains(&0) {
            for (i, arrival) in arrivals.iter().enumerate() {
                let task = TaskId(i as u32);
                if arrival.at_ns == now_ns {
                    reference.arrive(task, arrival.weight, arrival.size_ns, now_ns);
                    guide.arrive(task, arrival.weight, believes(0, *arrival), now_ns);
                }
            }
            let present = |i: usize| arrivals[i].at_ns <= now_ns;
            let next =
                (0..arrivals.len()).filter(|i| present(*i) && real[*i] == 0).min_by(|a, b| {
                    let rank = |i: usize| guide.rank(TaskId(i as u32), now_ns);
                    rank(*a).total_cmp(&rank(*b))
                });
            now_ns += STEP_NS;
            reference.advance(STEP_NS, now_ns, |_| true);
            guide.advance(STEP_NS, now_ns, |_| true);
            if let Some(i) = next {
                attained[i] += STEP_NS;
                let task = TaskId(i as u32);
                if attained[i] == arrivals[i].size_ns {
                    real[i] = now_ns;
                    guide.leave(task, attained[i]);
                } else {
                    guide.believe(task, arrivals[i].weight, believes(attained[i], arrivals[i]));
                }
            }
            for finish in reference.finishes(now_ns) {
                if finish.finish_ns <= now_ns {
                    fair[finish.task.0 as usize] = finish.finish_ns;
                    reference.leave(finish.task, arrivals[finish.task.0 as usize].size_ns);
                }
            }
        }
        (real, fair)
    }

    fn known_size(_: u64, arrival: Arrival) -> u64 {
        arrival.size_ns
    }

    #[test]
    fn equal_tasks_run_one_after_the_other() {
        let arrival = Arrival { at_ns: 0, size_ns: 100 * STEP_NS, weight: 100 };
        let (real, fair) = run(&[arrival; 4], known_size);
        assert_eq!(real, [100, 200, 300, 400].map(|steps: u64| steps * STEP_NS));
        assert!(fair.iter().all(|finish| finish.abs_diff(400 * STEP_NS) <= 2));
    }

    #[test]
    fn a_short_task_that_comes_late_passes_a_long_one() {
        let long = Arrival { at_ns: 0, size_ns: 500 * STEP_NS, weight: 100 };
        let short = Arrival { at_ns: 50 * STEP_NS, size_ns: 20 * STEP_NS, weight: 100 };
        let (real, _) = run(&[long, short], known_size);
        assert_eq!(real, [520 * STEP_NS, 70 * STEP_NS]);
        // The same without sizes: the long one has left the first class of 32 steps behind.
        let (real, _) = run(&[long, short], |attained_ns, _| (2 * attained_ns).max(32 * STEP_NS));
        assert!(real[1] <= 110 * STEP_NS, "{real:?}");
    }

    #[test]
    fn weights_count() {
        let heavy = Arrival { at_ns: 0, size_ns: 200 * STEP_NS, weight: 300 };
        let light = Arrival { weight: 100, size_ns: 100 * STEP_NS, ..heavy };
        let (real, _) = run(&[light, heavy], known_size);
        assert_eq!(real, [300 * STEP_NS, 200 * STEP_NS]);
    }

    #[test]
    fn a_task_of_unknown_size_needs_twice_what_it_has_had() {
        assert_eq!(believed_size_ns(0), MIN_BELIEVED_SIZE_NS);
        assert_eq!(believed_size_ns(3 * MIN_BELIEVED_SIZE_NS), 6 * MIN_BELIEVED_SIZE_NS);
    }

    #[test]
    fn classes_double() {
        let class = |attained_ns| size_class(attained_ns, 1_000);
        assert_eq!([0, 999, 1_000, 1_999, 2_000, 4_000].map(class), [0, 0, 1, 1, 2, 3]);
        assert_eq!(size_class(u64::MAX, 0), 64);
    }

    #[test]
    fn finishes_are_projected_as_if_nobody_else_came() {
        let mut fair = FairSharing::default();
        fair.arrive(TaskId(0), 100, 300, 0);
        fair.arrive(TaskId(1), 200, 200, 0);
        // Until 300: task 1 gets 200 and is done, task 0 gets 100; then 200 more alone.
        let finishes = fair.finishes(0);
        let of = |task| finishes.iter().find(|f| f.task == TaskId(task)).unwrap().finish_ns;
        assert_eq!((of(0), of(1)), (500, 300));
    }

    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        let one = (0_u64..300, 1_u64..200, 1_u32..5).prop_map(|(at, size, weight)| Arrival {
            at_ns: at * STEP_NS,
            size_ns: size * STEP_NS,
            weight: weight * 100,
        });
        prop::collection::vec(one, 1..8)
    }

    proptest! {
        #[test]
        fn nobody_finishes_later_than_under_fair_sharing(arrivals in arrivals()) {
            let (real, fair) = run(&arrivals, known_size);
            let slack_ns = STEP_NS * arrivals.len() as u64;
            for (real_ns, fair_ns) in real.iter().zip(&fair) {
                prop_assert!(*real_ns <= fair_ns + slack_ns, "{:?} against {:?}", real, fair);
            }
            prop_assert!(real.iter().sum::<u64>() <= fair.iter().sum::<u64>() + slack_ns);
        }

        #[test]
        fn all_work_is_done_in_the_same_time_whatever_is_believed(arrivals in arrivals()) {
            let (real, fair) = run(&arrivals, |attained_ns, _| {
                (2 * attained_ns).max(10 * STEP_NS)
            });
            prop_assert!(real.iter().max().unwrap().abs_diff(*fair.iter().max().unwrap()) <= STEP_NS);
        }
    }
}
