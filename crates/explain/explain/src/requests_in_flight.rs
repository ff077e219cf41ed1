//! Times in which disks had requests, by disk and by process.
//!
//! A thread may wait for completions of its own requests and of other things alike. Then its wait is for the disk as far
//! as its process had requests there. And a wait for a request counts for the disk only if some disk had one: else a
//! limit or a scheduler holds the request back.

use std::collections::VecDeque;

use luc_events::tables::{BlockRequest, OffCpuWait};
use luc_events::{Dev, Tgid, WaitCause};

use crate::fast_hash::FastMap;
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum number of times that are kept of a disk or a process. A wait is seldom longer than these.
const MAX_SPANS: usize = 4_096;
/// Minimum share of a wait for completions in which the process has requests at a disk.
const MIN_OWN_SHARE: f64 = 0.5;
/// Maximum share of a wait in which disks have requests, if the awaited one is held back.
const MAX_HELD_BACK_SHARE: f64 = 0.2;
/// Minimum length of a wait that can be held back. Briefer ones may be off by as much as the clocks are.
const MIN_HELD_BACK_NS: u64 = 1_000_000;

/// Times with a request, in order and apart from each other.
#[derive(Debug, Default)]
struct BusySpans(VecDeque<[u64; 2]>);

impl BusySpans {
    /// Adds the time of a request. Requests come in the order of their ends.
    fn add(&mut self, mut from_ns: u64, to_ns: u64) {
        while let Some(&[begin_ns, end_ns]) = self.0.back() {
            if end_ns < from_ns {
                break;
            }
            from_ns = from_ns.min(begin_ns);
            self.0.pop_back();
        }
        self.0.push_back([from_ns, to_ns]);
        if self.0.len() > MAX_SPANS {
            self.0.pop_front();
        }
    }

    /// Returns how much of a time had a request.
    fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let mut sum_ns = 0_u64;
        for &[begin_ns, end_ns] in self.0.iter().rev().take_while(|[_, end_ns]| *end_ns > from_ns) {
            sum_ns.grow(end_ns.min(to_ns).saturating_sub(begin_ns.max(from_ns)));
        }
        sum_ns
    }
}

/// Requests at the disks so far.
#[derive(Debug, Default)]
pub(crate) struct RequestsInFlight {
    all: BusySpans,
    disks: FastMap<Dev, BusySpans>,
    processes: FastMap<Tgid, BusySpans>,
}

impl RequestsInFlight {
    pub(crate) fn add(&mut self, row: &BlockRequest) {
        let begins = [row.insert_ns, row.issue_ns].into_iter().filter(|&at_ns| at_ns > 0);
        let Some(from_ns) = begins.min().filter(|&from_ns| from_ns < row.complete_ns) else {
            return;
        };
        let of_process = self.processes.entry(row.issuer_process).or_default();
        for spans in [&mut self.all, self.disks.entry(row.dev).or_default(), of_process] {
            spans.add(from_ns, row.complete_ns);
        }
    }

    /// Returns the cause of a wait, where requests tell more than the thread's stack. `disk` is that of the file system
    /// that the thread used, if it is known.
    pub(crate) fn find_cause(&self, row: &OffCpuWait, disk: Option<Dev>) -> WaitCause {
        let to_ns = row.woken_ns.max(row.off_ns);
        let length_ns = to_ns - row.off_ns;
        let share = |spans: &BusySpans| {
            spans.overlap_ns(row.off_ns, to_ns) as f64 / length_ns.max(1) as f64
        };
        match row.cause {
            WaitCause::AsyncIo => match self.processes.get(&row.process) {
                Some(own) if share(own) >= MIN_OWN_SHARE => WaitCause::Device,
                _ => row.cause,
            },
            WaitCause::Device if length_ns >= MIN_HELD_BACK_NS => {
                // Of a disk without any request there may be no rows, as of memory.
                let known = match disk {
                    Some(disk) => self.disks.get(&disk),
                    None => self.processes.get(&row.process).map(|_| &self.all),
                };
                match known {
                    Some(spans) if share(spans) <= MAX_HELD_BACK_SHARE => WaitCause::HeldBack,
                    _ => row.cause,
                }
            }
            cause => cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(process: u32, from_ns: u64, to_ns: u64) -> BlockRequest {
        BlockRequest {
            dev: Dev(7),
            insert_ns: from_ns,
            issue_ns: from_ns,
            complete_ns: to_ns,
            issuer_process: Tgid(process),
            ..BlockRequest::default()
        }
    }

    fn wait(cause: WaitCause, off_ns: u64, woken_ns: u64) -> OffCpuWait {
        OffCpuWait {
            process: Tgid(1),
            off_ns,
            woken_ns,
            on_ns: woken_ns,
            cause,
            ..OffCpuWait::default()
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn completions_of_own_requests_are_waits_for_the_disk() {
        let mut requests = RequestsInFlight::default();
        requests.add(&request(1, 10 * MS, 15 * MS));
        requests.add(&request(2, 20 * MS, 30 * MS));
        let cause =
            |from, to| requests.find_cause(&wait(WaitCause::AsyncIo, from * MS, to * MS), None);
        assert_eq!(cause(10, 15), WaitCause::Device);
        assert_eq!(cause(9, 19), WaitCause::Device);
        // For the most part nothing of its own was under way.
        assert_eq!(cause(9, 20), WaitCause::AsyncIo);
        assert_eq!(cause(20, 30), WaitCause::AsyncIo);
    }

    #[test]
    fn a_request_that_no_disk_has_is_held_back() {
        let mut requests = RequestsInFlight::default();
        let device = |from, to| wait(WaitCause::Device, from * MS, to * MS);
        // Nothing is known of any disk.
        assert_eq!(requests.find_cause(&device(0, 50), None), WaitCause::Device);
        requests.add(&request(1, 49 * MS, 50 * MS));
        for disk in [None, Some(Dev(7))] {
            assert_eq!(requests.find_cause(&device(0, 50), disk), WaitCause::HeldBack);
            assert_eq!(requests.find_cause(&device(48, 50), disk), WaitCause::Device);
        }
        assert_eq!(requests.find_cause(&device(0, 50), Some(Dev(8))), WaitCause::Device);
    }

    #[test]
    fn requests_that_overlap_count_once() {
        let mut spans = BusySpans::default();
        for [from, to] in [[10, 20], [15, 30], [12, 40], [50, 60], [55, 61]] {
            spans.add(from, to);
        }
        assert_eq!(spans.0, [[10, 40], [50, 61]]);
        assert_eq!(spans.overlap_ns(0, 100), 41);
        assert_eq!(spans.overlap_ns(35, 52), 7);
        assert_eq!(spans.overlap_ns(41, 49), 0);
    }
}
