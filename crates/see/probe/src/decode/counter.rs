//! Counts of a thread's events.

use luc_counters::{CountMode, HardwareEvent};
use luc_events::event_kinds::CounterMode;
use luc_events::tables::HardwareCount;
use luc_events::{Cgroup, Pid, Tgid};

use crate::ring_records::{self, Plain as _};

/// An event as the table names it.
#[derive(Clone, Debug)]
pub(crate) struct CountedEvent {
    event: String,
    mode: CounterMode,
}

impl CountedEvent {
    pub(crate) fn of(event: &HardwareEvent) -> Self {
        Self {
            event: event.name.clone(),
            mode: match event.mode {
                CountMode::Total => CounterMode::Total,
                CountMode::User => CounterMode::User,
                CountMode::Kernel => CounterMode::Kernel,
            },
        }
    }
}

/// Makes a row of each event for which the thread's time is known.
pub(crate) fn counters(bytes: &[u8], counted: &[CountedEvent]) -> Vec<HardwareCount> {
    let Some(head) = ring_records::Counts::read(bytes) else {
        return Vec::new();
    };
    ring_records::read_rows::<ring_records::Count>(&bytes[size_of::<ring_records::Counts>()..])
        .zip(counted)
        .filter(|(count, _)| count.enabled_ns > 0)
        .map(|(count, counted)| HardwareCount {
            at_ns: head.at_ns,
            since_ns: head.since_ns,
            thread: Pid(head.thread),
            process: Tgid(head.process),
            cgroup: Cgroup(head.cgroup),
            event: counted.event.clone(),
            mode: counted.mode,
            value: count.value,
            enabled_ns: count.enabled_ns,
            // Both are sums of the kernel's readings. Each reading may be off by one.
            running_ns: count.running_ns.min(count.enabled_ns),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_row_of_each_event_that_was_on_a_processor() {
        let head = ring_records::Counts {
            kind: ring_records::kind::COUNTS,
            thread: 7,
            process: 6,
            reserved: 0,
            cgroup: 5,
            since_ns: 100,
            at_ns: 200,
        };
        let count =
            |value, enabled_ns, running_ns| ring_records::Count { value, enabled_ns, running_ns };
        let counts = [count(9, 50, 25), count(0, 0, 0), count(4, 50, 51)];
        let mut bytes = head.bytes().to_vec();
        counts.iter().for_each(|count| bytes.extend(count.bytes()));
        // What a ring buffer adds for alignment is no count.
        bytes.extend([0; 4]);
        let events = ["cycles:u", "instructions", "page-faults:k"];
        let counted = events.map(|name| CountedEvent::of(&HardwareEvent::of_perf(name)));
        let rows = counters(&bytes, &counted);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.event.as_str(), row.mode, row.value, row.running_ns))
            .collect();
        assert_eq!(
            seen,
            [("cycles", CounterMode::User, 9, 25), ("page-faults", CounterMode::Kernel, 4, 50)]
        );
        assert!(rows.iter().all(|row| (row.since_ns, row.at_ns) == (100, 200)));
        assert!(counters(&bytes[..16], &counted).is_empty());
    }
}
