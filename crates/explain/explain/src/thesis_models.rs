//! Algorithms 4.1 and 4.2 of the thesis as published, compared with measurements.
//!
//! **4.1** predicts an fsync's time: it ends with the first commit that begins after the fsync. Commits that began
//! before the earliest remaining fsync are taken out, since they serve no fsync any more.
//!
//! **4.2** classes writes by the commit that they meet. X ends before the commit begins. Y is in progress when it
//! begins, and is blocked for the whole commit. Z begins during it, and is blocked for its rest. The thesis' sums for
//! `T_write` in Y and Z are `r_write - q_write` in other letters. So each class's measured blocking can be compared
//! with the predicted one: 0, `T_JC`, `r_JC - q_write`.

use serde::Serialize;

use luc_events::tables::JournalCommit;

/// Algorithm 4.1 over a file system's fsyncs, and LUC's own prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FsyncModel {
    /// Number of fsyncs that both predict.
    pub count: u64,
    /// fsyncs after which no recorded commit began: Algorithm 4.1 has no prediction.
    pub without_commit: u64,
    /// Commits waited for, on average: the thesis' key figure.
    pub commits_waited: f64,
    pub measured_ns: f64,
    /// Mean time by Algorithm 4.1.
    pub predicted_ns: f64,
    /// Mean of |predicted - measured| / measured.
    pub error: f64,
    /// Mean time by LUC: until the end of the commit that the transaction id names, and any flush after it.
    pub ours_ns: f64,
    pub our_error: f64,
}

/// Running sums of [`FsyncModel`].
#[derive(Debug, Default)]
pub(crate) struct FsyncSums {
    model: FsyncModel,
    waited: u64,
    syncs: u64,
}

impl FsyncSums {
    /// Counts how many commits one fsync waited for.
    pub(crate) fn waited(&mut self, commits: usize) {
        self.waited += commits as u64;
        self.syncs += 1;
    }

    /// Compares one fsync's time with the commit that Algorithm 4.1 assigns and with our prediction.
    pub(crate) fn compare(
        &mut self,
        enter_ns: u64,
        exit_ns: u64,
        next: Option<&JournalCommit>,
        ours_ns: u64,
    ) {
        let Some(next) = next else {
            self.model.without_commit += 1;
            return;
        };
        let measured = exit_ns.saturating_sub(enter_ns).max(1) as f64;
        let predicted = next.end_ns.saturating_sub(enter_ns) as f64;
        let ours = ours_ns as f64;
        self.model.count += 1;
        self.model.measured_ns += measured;
        self.model.predicted_ns += predicted;
        self.model.error += (predicted - measured).abs() / measured;
        self.model.ours_ns += ours;
        self.model.our_error += (ours - measured).abs() / measured;
    }

    pub(crate) fn model(&self) -> FsyncModel {
        let count = (self.model.count.max(1)) as f64;
        let mean = |sum: f64| sum / count;
        FsyncModel {
            commits_waited: self.waited as f64 / self.syncs.max(1) as f64,
            measured_ns: mean(self.model.measured_ns),
            predicted_ns: mean(self.model.predicted_ns),
            error: mean(self.model.error),
            ours_ns: mean(self.model.ours_ns),
            our_error: mean(self.model.our_error),
            ..self.model.clone()
        }
    }
}

/// Class of a write by the commit that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteClassId {
    X,
    Y,
    Z,
}

/// Returns the class of a write and the time that Algorithm 4.2 predicts it to be blocked. `commit` is the first that
/// ended after the write began.
pub(crate) fn classify(
    enter_ns: u64,
    exit_ns: u64,
    commit: Option<&JournalCommit>,
) -> (WriteClassId, u64) {
    match commit {
        Some(commit) if commit.start_ns >= exit_ns => (WriteClassId::X, 0),
        Some(commit) if enter_ns < commit.start_ns => {
            (WriteClassId::Y, commit.end_ns - commit.start_ns)
        }
        Some(commit) => (WriteClassId::Z, commit.end_ns.saturating_sub(enter_ns)),
        None => (WriteClassId::X, 0),
    }
}

/// A class of Algorithm 4.2.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WriteClass {
    pub writes: u64,
    /// Predicted time that they are blocked in all, in nanoseconds.
    pub predicted_blocked_ns: u64,
    /// Measured time that a commit blocked them in all (write delay and lock-up), in nanoseconds.
    pub measured_blocked_ns: u64,
    /// Number of writes that were blocked at all.
    pub blocked: u64,
    /// Number of writes that returned before the commit ended, which the algorithm does not foresee.
    pub returned_early: u64,
}

/// Algorithm 4.2 over a file system's writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WriteModel {
    pub x: WriteClass,
    pub y: WriteClass,
    pub z: WriteClass,
    /// Writes in Y or Z per commit: the thesis' key figure.
    pub blocked_per_commit: f64,
}

impl WriteModel {
    pub(crate) fn add(
        &mut self,
        class: WriteClassId,
        predicted_ns: u64,
        measured_ns: u64,
        early: bool,
    ) {
        let counts = match class {
            WriteClassId::X => &mut self.x,
            WriteClassId::Y => &mut self.y,
            WriteClassId::Z => &mut self.z,
        };
        counts.writes += 1;
        counts.predicted_blocked_ns += predicted_ns;
        counts.measured_blocked_ns += measured_ns;
        counts.blocked += u64::from(measured_ns > 0);
        counts.returned_early += u64::from(early);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(start_ns: u64, end_ns: u64) -> JournalCommit {
        JournalCommit { start_ns, end_ns, ..JournalCommit::default() }
    }

    #[test]
    fn classes_are_told_as_in_the_thesis() {
        let commit = commit(100, 200);
        assert_eq!(classify(10, 90, Some(&commit)), (WriteClassId::X, 0));
        assert_eq!(classify(90, 210, Some(&commit)), (WriteClassId::Y, 100));
        assert_eq!(classify(150, 210, Some(&commit)), (WriteClassId::Z, 50));
        assert_eq!(classify(150, 210, None), (WriteClassId::X, 0));
    }

    #[test]
    fn means_are_over_the_predicted_ones() {
        let mut sums = FsyncSums::default();
        sums.waited(2);
        sums.waited(1);
        sums.compare(0, 200, Some(&commit(100, 190)), 198);
        sums.compare(0, 100, None, 0);
        let model = sums.model();
        assert_eq!((model.count, model.without_commit), (1, 1));
        assert!((model.commits_waited - 1.5).abs() < 1e-9);
        assert!((model.error - 0.05).abs() < 1e-9 && (model.our_error - 0.01).abs() < 1e-9);
    }
}
