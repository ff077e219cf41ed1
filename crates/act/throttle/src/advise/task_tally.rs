//! Adds up the activity of one task on one disk between looks.

use luc_control::throttle::forecast::fit_model::TaskActivity;
use luc_probe::disk_contention::TaskSums;

/// Part of the reads after which writes count as coming last.
const MIN_READ_BEFORE: f64 = 0.9;
/// Mean size from which requests were written back from the page cache.
const MIN_WRITTEN_BACK_BYTES: f64 = 262_144.0;
/// Largest ratio of reads to writes, in bytes, for which a task is a writer.
const MAX_WRITER_READS: f64 = 0.05;

/// Sums of a task on a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTally {
    pub(super) seen: TaskActivity,
    /// Time that its completed requests waited for the disk, ns.
    pub(super) queue_ns: u64,
    /// Time for which it had a request outstanding, ns.
    pub(super) active_ns: u64,
    last: TaskSums,
    /// Sum of the sectors of its requests, each weighted with its bytes.
    weighted_sectors: f64,
    moved_bytes: f64,
    /// Bytes written, weighted with the bytes that had been read by then.
    written_after: f64,
    /// Whether it was observed in a call that writes many requests.
    has_call: bool,
}

/// Activity of a task on a disk between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ActivityStep {
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) device_ns: u64,
    /// Time with a request outstanding, ns.
    pub(super) active_ns: u64,
    /// Time for which it waited for any disk, ns.
    pub(super) waited_ns: u64,
    pub(super) has_written: bool,
    /// Whether it only wrote, or waited for what it had written.
    pub(super) is_writing: bool,
}

impl TaskTally {
    /// Takes the sums so far. Returns the activity since the last call.
    pub(super) fn look(&mut self, now: TaskSums) -> ActivityStep {
        let last = self.last;
        let since = |now: u64, last: u64| now.saturating_sub(last);
        let read = since(now.bytes_read, last.bytes_read);
        let written = since(now.bytes_written, last.bytes_written);
        let requests = since(now.requests, last.requests);
        let writes = since(now.writes, last.writes).min(requests);
        let device_ns = since(now.device_ns, last.device_ns);
        let write_ns = since(now.write_ns, last.write_ns).min(device_ns);
        let active_ns = since(now.active_ns, last.active_ns);
        let seen = &mut self.seen;
        seen.bytes_read += read;
        seen.bytes_written += written;
        seen.reads += requests - writes;
        seen.writes += writes;
        seen.continued += since(now.continued, last.continued);
        let sequential = now.sequential_reads.wrapping_sub(last.sequential_reads);
        seen.sequential_reads += u64::from(sequential);
        seen.sequential_bytes += since(now.sequential_bytes, last.sequential_bytes);
        seen.sequential_ns += since(now.sequential_ns, last.sequential_ns);
        seen.sequential_apart_ns += since(now.sequential_apart_ns, last.sequential_apart_ns);
        seen.read_ns += device_ns - write_ns;
        seen.write_ns += write_ns;
        self.queue_ns += since(now.queue_ns, last.queue_ns);
        self.active_ns += active_ns;
        self.weighted_sectors += now.next_sector as f64 * (read + written) as f64;
        self.moved_bytes += (read + written) as f64;
        self.written_after += written as f64 * seen.bytes_read as f64;
        let is_writing = requests == writes && (writes > 0 || now.outstanding > 0);
        self.has_call |= is_writing && now.outstanding >= 2;
        self.last = now;
        ActivityStep {
            requests,
            bytes: read + written,
            device_ns,
            active_ns,
            waited_ns: 0,
            has_written: writes > 0,
            is_writing,
        }
    }

    /// Notes that the task had the disk to itself since the previous look. `before` is its activity by then.
    pub(super) fn note_alone(&mut self, before: &TaskActivity) {
        let (seen, alone) = (self.seen, &mut self.seen.alone);
        if seen.writes == before.writes {
            alone.bytes += seen.bytes_read - before.bytes_read;
            alone.requests += seen.reads - before.reads;
            alone.continued += seen.continued - before.continued;
            alone.device_ns += seen.read_ns - before.read_ns;
        }
    }

    /// Time of its last completion, ns; 0: never.
    pub(super) fn last_complete_ns(&self) -> u64 {
        self.last.last_complete_ns
    }

    /// Mean position of its data, in sectors; `None` if it moved none.
    pub(super) fn sector(&self) -> Option<f64> {
        (self.moved_bytes > 0.0).then(|| self.weighted_sectors / self.moved_bytes)
    }

    /// Whether it wrote in a call at its end.
    pub(super) fn writes_last(&self) -> bool {
        let (read, written) = (self.seen.bytes_read as f64, self.seen.bytes_written as f64);
        let is_writer = read < MAX_WRITER_READS * written;
        let request_bytes = written / self.seen.writes.max(1) as f64;
        let has_call = self.has_call || request_bytes >= MIN_WRITTEN_BACK_BYTES;
        has_call && (is_writer || self.written_after > MIN_READ_BEFORE * read * written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_synced_writes_last_and_a_database_does_not() {
        let mut copy = TaskTally::default();
        let mut sums = TaskSums::default();
        for _ in 0..10 {
            sums.bytes_read += 1000;
            sums.requests += 1;
            copy.look(sums);
        }
        let mut database = copy.clone();
        let mut both = sums;
        for _ in 0..10 {
            sums.outstanding = 2;
            sums.bytes_written += 1000;
            sums.requests += 1;
            sums.writes += 1;
            copy.look(sums);
            both.bytes_read += 1000;
            both.bytes_written += 1000;
            both.requests += 2;
            both.writes += 1;
            database.look(both);
        }
        assert!(copy.writes_last());
        assert!(!database.writes_last());
        assert_eq!(copy.seen.writes, 10);
    }
}
