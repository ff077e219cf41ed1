//! The counters of the processors: their events, and the opening of these on each processor.
//!
//! The kernel counts for the running thread. If there are more events than counters, it gives the counters to one group
//! of events after the other. `bpf/hardware_counts.h` reads them.

mod counter_list;
mod kernel_events;

use std::io;
use std::os::fd::AsRawFd as _;

use libbpf_rs::{Map, MapCore as _, MapFlags};
use luc_counters::HardwareEvent;
use luc_units::OnPath as _;
use perf_event::Counter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use counter_list::CounterList;
use kernel_events::KernelEvent;

use crate::ProbeError;

/// File of the online processors, a list of ranges.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Events that count, on each processor.
#[derive(Debug, Default)]
pub(crate) struct OpenCounters {
    /// Counted events, in the order of the programs.
    pub(crate) events: Vec<HardwareEvent>,
    /// Processors and counters by event.
    opened: Vec<Vec<(usize, Counter)>>,
    /// Events that cannot be counted, one line each.
    pub(crate) missing: Vec<String>,
}

impl OpenCounters {
    /// Opens the events. They count from now on.
    ///
    /// # Errors
    /// When an event has no meaning here, or the kernel has no room for all events.
    pub(crate) fn open(list: &CounterList) -> Result<Self, ProbeError> {
        let processors = online()?;
        // Each event is a file on each processor. The limit is for this moment: commands inherit it.
        let limit = getrlimit(Resource::Nofile);
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        let opened = Self::open_on(list, &processors);
        let _ = setrlimit(Resource::Nofile, limit);
        opened
    }

    fn open_on(list: &CounterList, processors: &[usize]) -> Result<Self, ProbeError> {
        let mut counters = Self::default();
        let mut refused: Vec<(&HardwareEvent, bool, io::Error)> = Vec::new();
        for group in list.groups() {
            // The places of the group's first event, by processor.
            let mut leader = None;
            for event in group {
                let named = KernelEvent::of(event).map_err(ProbeError::Counters)?;
                match counters.open_event(event, &named, leader, processors)? {
                    Ok(place) => leader = leader.or(Some(place)),
                    Err(error) => refused.push((event, named.is_hardware(), error)),
                }
            }
        }
        counters.missing = missing(&refused);
        Ok(counters)
    }

    /// Opens an event on all processors; its place, or why none of them has it. With a leader it belongs to that one's
    /// group.
    fn open_event(
        &mut self,
        event: &HardwareEvent,
        named: &KernelEvent,
        leader: Option<usize>,
        processors: &[usize],
    ) -> Result<Result<usize, io::Error>, ProbeError> {
        let mut opened = Vec::new();
        let mut refusal = io::Error::from(io::ErrorKind::NotFound);
        for &processor in processors {
            let Some(builder) = named.builder(event.mode, processor) else {
                continue;
            };
            let of_leader = leader.and_then(|place| {
                let all = self.opened[place].iter_mut();
                all.filter(|(at, _)| *at == processor).map(|(_, counter)| counter).next()
            });
            let result = match of_leader {
                Some(leader) => builder.build_with_group(leader),
                None => builder.build(),
            };
            match result {
                Ok(counter) => opened.push((processor, counter)),
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                    return Err(ProbeError::Counters(format!(
                        "{event}: too many open files: count fewer events, or raise the hard limit (ulimit -Hn)"
                    )));
                }
                Err(error) => refusal = error,
            }
        }
        if opened.is_empty() {
            return Ok(Err(refusal));
        }
        self.events.push(event.clone());
        self.opened.push(opened);
        Ok(Ok(self.opened.len() - 1))
    }

    /// Gives the programs their counters: `map` is by event and, of `processors`, processor.
    pub(crate) fn hand_to(&self, map: &Map<'_>, processors: u32) -> Result<(), ProbeError> {
        for (place, opened) in self.opened.iter().enumerate() {
            for (processor, counter) in opened {
                let key = place as u32 * processors + *processor as u32;
                map.update(&key.to_ne_bytes(), &counter.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
                    .map_err(ProbeError::refused("counters of processors"))?;
            }
        }
        Ok(())
    }
}

/// Makes one line for all hardware events, if none can be counted, and one for each other event.
fn missing(refused: &[(&HardwareEvent, bool, io::Error)]) -> Vec<String> {
    let of_hardware = refused.iter().filter(|(_, hardware, _)| *hardware);
    let absent = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound
            || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP))
    };
    let (none, others): (Vec<_>, Vec<_>) = of_hardware.partition(|(.., error)| absent(error));
    let mut lines = Vec::new();
    if !none.is_empty() {
        let names: Vec<String> = none.iter().map(|(event, ..)| event.to_string()).collect();
        lines.push(format!(
            "{} cannot be counted: no hardware counters for it here (virtual machine?)",
            names.join(", ")
        ));
    }
    let of_kernel = refused.iter().filter(|(_, hardware, _)| !hardware);
    lines.extend(
        others
            .into_iter()
            .chain(of_kernel)
            .map(|(event, _, error)| format!("{event} cannot be counted: {error}")),
    );
    lines
}

/// Returns the numbers of the online processors.
fn online() -> Result<Vec<usize>, ProbeError> {
    let text = std::fs::read_to_string(ONLINE).map_err(ProbeError::io("read", ONLINE))?;
    Ok(ranges(text.trim()))
}

/// Parses a list of numbers such as `0-3,8`.
fn ranges(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(ranges("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(ranges("0"), [0]);
        assert_eq!(ranges(""), [0; 0]);
    }

    #[test]
    fn what_no_processor_counts_is_said_once() {
        let events = ["cycles:u", "instructions:u", "msr/tsc/"].map(HardwareEvent::of_perf);
        let refused = [
            (&events[0], true, io::Error::from_raw_os_error(libc::ENOENT)),
            (&events[1], true, io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            (&events[2], false, io::Error::from_raw_os_error(libc::EINVAL)),
        ];
        let lines = missing(&refused);
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0]
                .starts_with("cycles:u, instructions:u cannot be counted: no hardware counters")
        );
        assert!(lines[1].starts_with("msr/tsc/ cannot be counted: Invalid argument"));
        assert!(missing(&[]).is_empty());
    }

    #[test]
    fn the_limit_of_open_files_is_what_it_was() {
        let list: CounterList = "page-faults,task-clock".parse().expect("two events");
        let before = getrlimit(Resource::Nofile);
        match OpenCounters::open(&list) {
            Ok(counters) => assert_eq!(counters.events.len(), 2, "{:?}", counters.missing),
            Err(error) => luc_testkit::skipped!("{error}"),
        }
        assert_eq!(getrlimit(Resource::Nofile), before);
    }
}
