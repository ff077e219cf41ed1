//! Sums that are read from the shared memory.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use luc_host::kernel_clocks::now_ns;

use super::shared_memory::{DiskMemory, TaskMemory};

/// A task's use of one disk since it has been watched. Each member is exact, but they are read one after the other:
/// a request may be in some already and not yet in others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSums {
    /// Bytes read by its completed requests.
    pub bytes_read: u64,
    /// Bytes written by them.
    pub bytes_written: u64,
    /// Completed requests, including those without data, such as discards.
    pub requests: u64,
    /// Completed requests that began where the disk's previous request ended.
    pub sequential: u64,
    /// Time of its completed requests from submission to the driver, ns.
    pub queue_ns: u64,
    /// Device time of its completed requests, ns: from the driver, or from the previous completion if that is later, to
    /// the completion.
    pub device_ns: u64,
    /// Number of its uncompleted requests, and of its running calls of fsync and the like.
    pub outstanding: u32,
    /// Time when it last submitted a request or entered an fsync, ns of CLOCK_MONOTONIC; 0 if never.
    pub last_submit_ns: u64,
    /// Time when the last of its requests was completed, ns of CLOCK_MONOTONIC; 0 if never.
    pub last_complete_ns: u64,
    /// Completed requests that began where the task's own previous request ended, with or without requests of others
    /// between them.
    pub continued: u64,
    /// Reads among `sequential`; it wraps at 2^32.
    pub sequential_reads: u32,
    /// End of its last issued request on the disk, in sectors of 512 bytes.
    pub next_sector: u64,
    pub sequential_bytes: u64,
    /// Device time of these, ns.
    pub sequential_ns: u64,
    /// Time from the previous completion to that of each of them, ns: it includes the gaps in which a disk reads ahead.
    pub sequential_apart_ns: u64,
    /// Completed requests that were no reads.
    pub writes: u64,
    /// Device time of these, ns.
    pub write_ns: u64,
    /// Time in which it had something outstanding, ns, until now; 0 if it changed during all attempts to read it.
    pub active_ns: u64,
}

impl TaskSums {
    pub(super) fn read(memory: &TaskMemory) -> Self {
        Self {
            bytes_read: memory.bytes_read.load(Relaxed),
            bytes_written: memory.bytes_written.load(Relaxed),
            requests: memory.requests.load(Relaxed),
            sequential: memory.sequential.load(Relaxed),
            queue_ns: memory.queue_ns.load(Relaxed),
            device_ns: memory.device_ns.load(Relaxed),
            outstanding: memory.outstanding.load(Relaxed),
            last_submit_ns: memory.last_submit_ns.load(Relaxed),
            last_complete_ns: memory.last_complete_ns.load(Relaxed),
            continued: memory.continued.load(Relaxed),
            next_sector: memory.next_sector.load(Relaxed),
            sequential_reads: memory.sequential_reads.load(Relaxed),
            sequential_bytes: memory.sequential_bytes.load(Relaxed),
            sequential_ns: memory.sequential_ns.load(Relaxed),
            sequential_apart_ns: memory.sequential_apart_ns.load(Relaxed),
            writes: memory.writes.load(Relaxed),
            write_ns: memory.write_ns.load(Relaxed),
            active_ns: busy_now(&memory.active_ns).unwrap_or(0),
        }
    }
}

/// Gives a task's place to another. The programs no longer add to it, or not yet.
pub(super) fn clear(memory: &TaskMemory) {
    for sum in [
        &memory.bytes_read,
        &memory.bytes_written,
        &memory.requests,
        &memory.sequential,
        &memory.queue_ns,
        &memory.device_ns,
        &memory.last_submit_ns,
        &memory.last_complete_ns,
        &memory.continued,
        &memory.next_sector,
        &memory.sequential_bytes,
        &memory.sequential_ns,
        &memory.sequential_apart_ns,
        &memory.writes,
        &memory.write_ns,
        &memory.active_ns,
    ] {
        sum.store(0, Relaxed);
    }
    memory.outstanding.store(0, Relaxed);
    memory.sequential_reads.store(0, Relaxed);
}

/// Everybody's use of a disk since it has been watched. As with [`TaskSums`], members are read one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSums {
    /// Time in which the driver had at least one request, ns, until now.
    pub busy_ns: u64,
    /// Bytes read and written by completed requests.
    pub bytes: u64,
    pub requests: u64,
    /// Requests that the driver has now.
    pub in_flight: u32,
    /// Time when the last request was completed, ns of CLOCK_MONOTONIC; 0 if never.
    pub last_complete_ns: u64,
    /// Part of `bytes` that no watched task owns.
    pub unowned_bytes: u64,
    /// Device time of requests that no watched task owns, ns.
    pub unowned_device_ns: u64,
}

/// Maximum number of attempts to read a busy time that changes.
const MAX_ATTEMPTS: usize = 32;

impl DiskSums {
    /// Reads them; `busy_ns` is `None` if it changed all the time.
    pub(super) fn read(memory: &DiskMemory) -> (Self, Option<u64>) {
        let busy_ns = busy_now(&memory.busy_ns);
        let sums = Self {
            busy_ns: busy_ns.unwrap_or(0),
            bytes: memory.bytes.load(Relaxed),
            requests: memory.requests.load(Relaxed),
            in_flight: memory.in_flight.load(Relaxed),
            last_complete_ns: memory.last_complete_ns.load(Relaxed),
            unowned_bytes: memory.unowned_bytes.load(Relaxed),
            unowned_device_ns: memory.unowned_device_ns.load(Relaxed),
        };
        (sums, busy_ns)
    }
}

/// Returns the busy time until now, ns; `None` if it changed during all attempts.
fn busy_now(sum: &AtomicU64) -> Option<u64> {
    (0..MAX_ATTEMPTS).find_map(|_| busy_until(sum.load(Relaxed), now_ns()))
}

/// Computes the busy time until `now_ns` from the sum of the times of becoming idle, minus those of becoming busy.
///
/// While the disk is busy, one more time was subtracted than added. That makes the sum negative, because no disk was
/// busy for longer than the clock has run. Two processors may add in the wrong order. An impossible sum gives `None`,
/// and is right nanoseconds later.
fn busy_until(sum: u64, now_ns: u64) -> Option<u64> {
    let is_busy = sum.cast_signed() < 0;
    let busy_ns = if is_busy { sum.wrapping_add(now_ns) } else { sum };
    (busy_ns < now_ns).then_some(busy_ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Busy and idle in turn, from any time on.
        #[test]
        fn busy_time_is_what_was_busy(
            boot in 1_u64..1 << 50,
            stretches in prop::collection::vec((1_u64..1 << 40, 1_u64..1 << 40), 0..50),
            open in any::<bool>(),
        ) {
            let (mut sum, mut now, mut busy) = (0_u64, boot, 0);
            for (idle_ns, busy_ns) in &stretches {
                now += idle_ns;
                sum = sum.wrapping_sub(now);
                prop_assert_eq!(busy_until(sum, now), Some(busy));
                now += busy_ns;
                busy += busy_ns;
                prop_assert_eq!(busy_until(sum, now), Some(busy));
                sum = sum.wrapping_add(now);
                prop_assert_eq!(busy_until(sum, now), Some(busy));
            }
            if open {
                sum = sum.wrapping_sub(now);
                prop_assert_eq!(busy_until(sum, now + 5), Some(busy + 5));
            } else {
                prop_assert_eq!(busy_until(sum, now + 5), Some(busy));
            }
        }

        /// A processor ends a busy stretch while another begins the next, and adds first.
        #[test]
        fn what_is_half_written_is_not_taken(
            start in 1_u64..1 << 50, busy in 1_u64..1 << 40, before in 0_u64..1 << 40,
        ) {
            let first = start + before;
            let turn = first + busy;
            // Busy for `before` until `first`, which is the begin of a stretch that ends at `turn`.
            let sum = before.wrapping_sub(first);
            let both_begun = sum.wrapping_sub(turn);
            prop_assert_eq!(busy_until(both_begun, turn + 100), None);
            let right = both_begun.wrapping_add(turn);
            prop_assert_eq!(busy_until(right, turn + 100), Some(before + busy + 100));
        }
    }
}
