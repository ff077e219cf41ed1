//! The module's counters per journal.

use std::fs;
use std::path::Path;

use luc_units::OnPath as _;
use serde::Serialize;

use crate::Error;

/// A journal's figures since the module was loaded or the file system mounted, for all programs.
///
/// Each is the file of its name below `stats/`; docs/how/kernel.md defines them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JournalStats {
    pub commits: u64,
    /// Commits that at least one fsync asked for.
    pub commits_by_fsync: u64,
    pub fsyncs: u64,
    /// fsyncs that the last commit served.
    pub fsyncs_last_commit: u64,
    /// fsyncs that came while another commit was under way, and waited for it and their own.
    pub fsyncs_waited_two: u64,
    pub holds: u64,
    /// Total time of these holds, in nanoseconds.
    pub hold_ns: u64,
    /// Holds that ended because another caller than an fsync waited for the commit: sync(2), syncfs, a synchronous
    /// handle.
    pub holds_awaited: u64,
    /// The controller's set point: fsyncs per commit.
    pub set_point: u64,
    /// The controller's error, in thousandths of an fsync.
    pub error_milli: i64,
    /// The controller's output: time that the next commit may be held, in microseconds.
    pub output_us: i64,
    /// Phase of policy `auto`: `learning`, `trial`, `engaged` or `aside`.
    pub state: String,
    pub writes: u64,
    /// Writes that waited for a commit to write the block.
    pub writes_delayed: u64,
    /// Total time that these writes waited, in nanoseconds.
    pub write_delay_ns: u64,
    /// Blocks copied, so that nobody has to wait for them.
    pub copies: u64,
    pub copy_bytes: u64,
    /// Copies that were not made for want of memory.
    pub copies_failed: u64,
    /// Memory that copies take now, in bytes.
    pub copy_bytes_in_use: u64,
}

impl JournalStats {
    /// Reads the figures from a journal's `stats` directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let text = |name: &str| {
            let path = dir.join(name);
            let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            Ok::<_, Error>((text.trim().to_owned(), path))
        };
        let count = |name| {
            let (text, path) = text(name)?;
            text.parse::<u64>().map_err(|_| no_number(&path))
        };
        let signed = |name| {
            let (text, path) = text(name)?;
            text.parse::<i64>().map_err(|_| no_number(&path))
        };
        Ok(Self {
            commits: count("commits")?,
            commits_by_fsync: count("commits_by_fsync")?,
            fsyncs: count("fsyncs")?,
            fsyncs_last_commit: count("fsyncs_last_commit")?,
            fsyncs_waited_two: count("fsyncs_waited_two")?,
            holds: count("holds")?,
            hold_ns: count("hold_ns")?,
            holds_awaited: count("holds_awaited")?,
            set_point: count("set_point")?,
            error_milli: signed("error_milli")?,
            output_us: signed("output_us")?,
            state: text("state")?.0,
            writes: count("writes")?,
            writes_delayed: count("writes_delayed")?,
            write_delay_ns: count("write_delay_ns")?,
            copies: count("copies")?,
            copy_bytes: count("copy_bytes")?,
            copies_failed: count("copies_failed")?,
            copy_bytes_in_use: count("copy_bytes_in_use")?,
        })
    }

    /// The figures with counts since `earlier`; gauges keep their current value.
    pub fn since(&self, earlier: &Self) -> Self {
        let now = self.clone();
        Self {
            commits: now.commits.saturating_sub(earlier.commits),
            commits_by_fsync: now.commits_by_fsync.saturating_sub(earlier.commits_by_fsync),
            fsyncs: now.fsyncs.saturating_sub(earlier.fsyncs),
            fsyncs_waited_two: now.fsyncs_waited_two.saturating_sub(earlier.fsyncs_waited_two),
            holds: now.holds.saturating_sub(earlier.holds),
            hold_ns: now.hold_ns.saturating_sub(earlier.hold_ns),
            holds_awaited: now.holds_awaited.saturating_sub(earlier.holds_awaited),
            writes: now.writes.saturating_sub(earlier.writes),
            writes_delayed: now.writes_delayed.saturating_sub(earlier.writes_delayed),
            write_delay_ns: now.write_delay_ns.saturating_sub(earlier.write_delay_ns),
            copies: now.copies.saturating_sub(earlier.copies),
            copy_bytes: now.copy_bytes.saturating_sub(earlier.copy_bytes),
            copies_failed: now.copies_failed.saturating_sub(earlier.copies_failed),
            ..now
        }
    }

    /// fsyncs per commit that an fsync asked for; `None` before the first.
    pub fn fsyncs_per_commit(&self) -> Option<f64> {
        ratio(self.fsyncs, self.commits_by_fsync)
    }

    /// Mean time that a held commit was held, in nanoseconds; `None` before the first.
    pub fn mean_hold_ns(&self) -> Option<f64> {
        ratio(self.hold_ns, self.holds)
    }

    /// Share of the writes that waited for a commit; `None` before the first.
    pub fn delayed_share(&self) -> Option<f64> {
        ratio(self.writes_delayed, self.writes)
    }

    /// Mean wait of the writes that waited, in nanoseconds; `None` before the first.
    pub fn mean_write_delay_ns(&self) -> Option<f64> {
        ratio(self.write_delay_ns, self.writes_delayed)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn no_number(path: &Path) -> Error {
    Error::io("understand", path)(std::io::Error::other("it is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_subtracted_and_states_are_not() {
        let earlier = JournalStats {
            fsyncs: 100,
            commits_by_fsync: 50,
            set_point: 4,
            ..JournalStats::default()
        };
        let now = JournalStats {
            fsyncs: 180,
            commits_by_fsync: 60,
            set_point: 8,
            state: "engaged".into(),
            ..JournalStats::default()
        };
        let since = now.since(&earlier);
        assert_eq!(since.fsyncs_per_commit(), Some(8.0));
        assert_eq!((since.set_point, since.state.as_str()), (8, "engaged"));
        assert_eq!(since.mean_hold_ns(), None);
        // Mounted anew in between: counts begin again.
        assert_eq!(earlier.since(&now).fsyncs, 0);
    }
}
