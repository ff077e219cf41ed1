//! Loads the programs, sets their constants, attaches them.

mod iterator_programs;
mod missed_events;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::thread;
use std::time::Duration;

use libbpf_rs::{Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, OpenObject};

pub(crate) use self::missed_events::misses_of;
use crate::open_counters::OpenCounters;
use crate::preemption_guard::PreemptionGuard;
use crate::recording_capability::{NetworkRecording, RecordingCapability};
use crate::ring_records::{Config, Plain};
use crate::tracepoints::{calls_are_perf_events, program_of};
use crate::{ProbeError, libbpf_messages};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o"));

/// Names of the iterators over all threads: `begin` runs before recording, `end` after it and at a cut.
const BEGIN_PROGRAM: &str = "begin";
const END_PROGRAM: &str = "end";

/// Iterator over all files that finds the connections that are open when recording begins.
const NETWORK_BEGIN: &str = "net_begin";
/// Maps of TCP connections and of unix sockets.
const CONNECTIONS: &str = "connections";
const LOCAL_ENDS: &str = "local_ends";
/// Programs on pipes, the map of pipes, and the program that reports their state.
const PIPES: [&str; 2] = ["pipe_enter", "pipe_exit"];
const PIPE_STATES: &str = "pipes";
const PIPE_END: &str = "pipe_end";
/// Count of visits of all files at the beginning of a recording.
const LOCAL_VISIT: &str = ".data.visit";
/// Iterator over all files that reports connections and their files when recording ends, and the count of its visits.
const FILES_END: &str = "files_end";
const END_VISIT: &str = ".data.end_visit";
/// Map of the files that it finds.
const FILES: &str = "descriptors";
/// Iterators over sleeping threads, which run after those over files.
const ASLEEP_BEGIN: &str = "asleep_begin";
const ASLEEP_END: &str = "asleep_end";
/// Flag: the second of them runs after the recording, not at a cut.
const DETACHED: &str = ".data.detached";

/// Maps of the programs that see the network, which are not made without them.
const NETWORK_MAPS: [&str; 9] = [
    CONNECTIONS,
    LOCAL_ENDS,
    PIPE_STATES,
    "inbounds",
    "places",
    "talkers",
    "peers",
    MESSAGES,
    WAITS,
];
/// Maps of the programs that sum exchanges, which are not made without them.
const EXCHANGE_MAPS: [&str; 3] = ["exchanges", EXCHANGE_SLOTS, EXCHANGE_SUMS];
/// Map of slots by service and peer, and array of their sums.
pub(crate) const EXCHANGE_SLOTS: &str = "exchange_slots";
pub(crate) const EXCHANGE_SUMS: &str = "exchange_sums";
/// Maps in which processors gather rows, and the program that hands them over.
const MESSAGES: &str = "message_batches";
const WAITS: &str = "wait_batches";
const HAND_OVER: &str = "hand_over";
/// Map for bytes that are searched for names of requests.
const TOKENS: &str = "token_scans";
/// Maps of the threads' counts and of the processors' counters, which are not made without counters.
const COUNTER_MAPS: [&str; 3] = [COUNTER_EVENTS, "counter_places", "counted_threads"];
const COUNTER_EVENTS: &str = "counter_events";
/// Program that reads counters when threads switch, and the one for a thread that stays on its processor.
const COUNT_SWITCH: &str = "count_switch";
const COUNT_RUNNING: &str = "count_running";
/// Maps for sends that are seen as system calls only, and the program that then reports unix sockets.
const SENDERS: &str = "senders";
const LOCAL_INODES: &str = "local_inodes";
const LOCAL_PLACES: &str = "local_places";
const PLACE_END: &str = "place_end";

/// Maximum number of visits before recording. After them, threads without a state are lost.
const MAX_VISITS: u32 = 50;
const VISIT_INTERVAL: Duration = Duration::from_millis(2);

/// Counter of threads for which the last visit found no memory.
const WITHOUT_STATE: &str = ".data.without";

/// Loaded programs. Nothing is pinned: when the process ends, the kernel frees everything.
#[derive(Debug)]
pub(crate) struct RecorderPrograms {
    object: Object,
    hooks: Vec<&'static str>,
    /// Whether programs on system calls are perf events.
    calls_are_perf_events: bool,
    /// Whether connections and messages are recorded.
    network: bool,
    /// Whether threads that still sleep in the end have rows.
    sleepers: bool,
    /// Whether sends and receives are seen as system calls only.
    by_calls: bool,
    /// Number of processors with room in the maps.
    processors: u32,
    /// Whether counters are read.
    counts: bool,
}

/// Attachments to tracepoints. Dropping them ends the recording.
#[derive(Debug, Default)]
pub(crate) struct TracepointLinks {
    always: Vec<Link>,
    /// Attachments of [`CALLS`], which exist only while recorded threads use files.
    calls: Vec<Link>,
}

/// Names of the programs on wake-ups.
const WAKE_UPS: [&str; 5] = [
    "sched_waking",
    "local_timer_entry",
    "local_timer_exit",
    "irq_handler_entry",
    "irq_handler_exit",
];

/// Names of the programs on system calls.
const CALLS: [&str; 2] = ["sys_enter", "sys_exit"];

/// Returns the map of this name, before it is loaded.
fn open_map<'o>(open: &'o mut OpenObject, name: &str) -> Result<OpenMapMut<'o>, ProbeError> {
    open.maps_mut().find(|map| map.name() == OsStr::new(name)).ok_or_else(|| no_map(name))
}

pub(crate) fn no_map(name: &str) -> ProbeError {
    ProbeError::Refused {
        what: format!("map {name}"),
        reason: "it is not in the programs".to_owned(),
    }
}

impl RecorderPrograms {
    /// Loads the programs that `capability` allows.
    pub(crate) fn load(
        capability: &RecordingCapability,
        config: &Config,
        ring_bytes: u32,
        calls: bool,
    ) -> Result<Self, ProbeError> {
        libbpf_messages::keep();
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(ProbeError::refused("its own programs"))?;
        // 1. Programs.
        let hooks: Vec<&'static str> = capability
            .hooks
            .iter()
            .filter(|hook| calls || !CALLS.contains(&hook.name))
            .filter(|hook| config.pipes != 0 || !PIPES.contains(&hook.name))
            .filter(|hook| config.summary == 0 || !WAKE_UPS.contains(&hook.name))
            .map(|hook| hook.name)
            .chain((config.counters > 0).then_some(COUNT_SWITCH))
            .collect();
        let network = capability.network == NetworkRecording::Messages;
        let exchanges = capability.network == NetworkRecording::Exchanges;
        let by_calls = network && config.send_ends == 0;
        let calls_are_perf_events = calls_are_perf_events() && !capability.refuses_perf_events();
        let hooked: Vec<String> =
            hooks.iter().map(|hook| program_of(hook, calls_are_perf_events)).collect();
        for mut program in open.progs_mut() {
            let name = program.name().to_os_string();
            let wanted = name == BEGIN_PROGRAM
                || name == END_PROGRAM
                || name == ASLEEP_END && config.summary == 0
                || network
                    && [NETWORK_BEGIN, PIPE_END, FILES_END, ASLEEP_BEGIN, HAND_OVER]
                        .iter()
                        .any(|own| name == *own)
                || by_calls && name == PLACE_END
                || config.counters > 0 && name == COUNT_RUNNING
                || hooked.iter().any(|hook| OsStr::new(hook) == name);
            program.set_autoload(wanted);
        }
        // 2. Maps.
        for (name, wanted) in NETWORK_MAPS
            .map(|name| (name, network))
            .into_iter()
            .chain([
                (SENDERS, by_calls),
                (LOCAL_INODES, by_calls),
                (LOCAL_PLACES, by_calls),
                (TOKENS, network && config.tokens != 0),
            ])
            .chain(EXCHANGE_MAPS.map(|name| (name, exchanges)))
            .chain(COUNTER_MAPS.map(|name| (name, config.counters > 0)))
        {
            open_map(&mut open, name)?
                .set_autocreate(wanted)
                .map_err(ProbeError::refused("leaving out a map"))?;
        }
        // 3. Constants and sizes.
        open_map(&mut open, ".rodata.config")?
            .set_initial_value(config.bytes())
            .map_err(ProbeError::refused("the programs' constants"))?;
        open_map(&mut open, "records")?
            .set_max_entries(ring_bytes)
            .map_err(ProbeError::refused("the size of the buffer"))?;
        for name in ["hot_threads", "places"] {
            open_map(&mut open, name)?
                .set_max_entries(config.hot_mask + 1)
                .map_err(ProbeError::refused("the number of threads"))?;
        }
        if !network {
            open_map(&mut open, FILES)?
                .set_max_entries(1)
                .map_err(ProbeError::refused("the number of files"))?;
        }
        open_map(&mut open, COUNTER_EVENTS)?
            .set_max_entries((config.counters * config.processors).max(1))
            .map_err(ProbeError::refused("the number of counters"))?;
        let object = open.load().map_err(|error| ProbeError::Refused {
            what: "the recorder's programs".to_owned(),
            reason: libbpf_messages::reason(&error),
        })?;
        let programs = Self {
            object,
            hooks,
            calls_are_perf_events,
            network,
            sleepers: config.summary == 0,
            by_calls,
            processors: config.processors,
            counts: config.counters > 0,
        };
        Ok(programs)
    }

    /// Gives the programs the counters that they read.
    pub(crate) fn count(&self, counters: &OpenCounters) -> Result<(), ProbeError> {
        if self.counts {
            counters.hand_to(&self.map(COUNTER_EVENTS)?, self.processors)?;
        }
        Ok(())
    }

    /// Returns the map of this name.
    pub(crate) fn map(&self, name: &'static str) -> Result<Map<'_>, ProbeError> {
        self.object.maps().find(|map| map.name() == OsStr::new(name)).ok_or_else(|| no_map(name))
    }

    /// Begins to record. Births are traced before the existing threads are visited, so that no thread is missed.
    pub(crate) fn attach(
        &self,
        tree: &dyn Fn() -> Vec<u32>,
    ) -> Result<TracepointLinks, ProbeError> {
        let birth = |name: &str| name.starts_with("sched_process");
        let mut links = TracepointLinks { always: self.attach_those(birth)?, calls: Vec::new() };
        self.give_threads_state(tree)?;
        let others = self.attach_those(|name| !birth(name) && !CALLS.contains(&name))?;
        links.always.extend(others);
        if self.network {
            self.find_connections()?;
        }
        self.attach_calls(&mut links)?;
        // The ends of their waits are seen from here on.
        if self.network {
            self.visit(ASLEEP_BEGIN)?;
        }
        Ok(links)
    }

    /// Runs [`BEGIN_PROGRAM`] until each thread has its state. At times the kernel has no memory for some of them at
    /// once: tracing programs may not wait for memory. Meanwhile `tree`, the processes that are recorded, may grow by
    /// children of one that had no state yet.
    fn give_threads_state(&self, tree: &dyn Fn() -> Vec<u32>) -> Result<(), ProbeError> {
        let mut known = HashSet::new();
        for visit in 0..MAX_VISITS {
            let new: Vec<u32> = tree().into_iter().filter(|root| known.insert(*root)).collect();
            let lacks_memory = visit > 0 && self.variable(WITHOUT_STATE)? > 0;
            if visit > 0 && new.is_empty() && !lacks_memory {
                break;
            }
            if lacks_memory {
                thread::sleep(VISIT_INTERVAL);
            }
            for root in new {
                self.map("roots")?
                    .update(&root.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                    .map_err(ProbeError::refused("the processes to be recorded"))?;
            }
            self.set(WITHOUT_STATE, 0)?;
            self.visit(BEGIN_PROGRAM)?;
        }
        Ok(())
    }

    /// Goes through all files twice: what lies unread at a unix socket counts if that is the same both times.
    fn find_connections(&self) -> Result<(), ProbeError> {
        for visit in 1..=2u32 {
            self.set(LOCAL_VISIT, visit)?;
            self.visit(NETWORK_BEGIN)?;
            thread::sleep(VISIT_INTERVAL);
        }
        self.set(LOCAL_VISIT, 3)
    }

    /// Attaches the programs on system calls, if they were loaded.
    pub(crate) fn attach_calls(&self, links: &mut TracepointLinks) -> Result<(), ProbeError> {
        links.calls = self.attach_those(|name| CALLS.contains(&name))?;
        self.tell_calls_attached(!links.calls.is_empty())
    }

    /// Detaches the programs on system calls. The other programs learn of it first, because the end of calls in
    /// progress will not be seen.
    pub(crate) fn detach_calls(&self, links: &mut TracepointLinks) -> Result<(), ProbeError> {
        self.tell_calls_attached(false)?;
        links.calls.clear();
        Ok(())
    }

    fn tell_calls_attached(&self, attached: bool) -> Result<(), ProbeError> {
        let _unpreempted = PreemptionGuard::begin();
        self.map(".data.calls")?
            .update(&0u32.to_ne_bytes(), &u32::from(attached).to_ne_bytes(), MapFlags::ANY)
            .map_err(ProbeError::refused("changing what is looked at"))
    }

    /// A counter that changes when recorded threads use files.
    pub(crate) fn file_activity(&self) -> Result<u32, ProbeError> {
        self.variable(".data.activity")
    }

    /// Number of entries inserted into the maps of sums since loading. It wraps around.
    pub(crate) fn inserted(&self) -> Result<u32, ProbeError> {
        self.variable(".data.inserted")
    }

    fn set(&self, section: &'static str, value: u32) -> Result<(), ProbeError> {
        let _unpreempted = PreemptionGuard::begin();
        self.map(section)?
            .update(&0u32.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY)
            .map_err(ProbeError::refused("changing its maps"))
    }

    fn variable(&self, section: &'static str) -> Result<u32, ProbeError> {
        let mut bytes = [0; 4];
        let _unpreempted = PreemptionGuard::begin();
        self.map(section)?
            .lookup_into(&0u32.to_ne_bytes(), &mut bytes, MapFlags::ANY)
            .map_err(ProbeError::refused("reading its maps"))?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Returns the hook whose program has this name, if it is loaded.
    fn hook_of(&self, program: &OsStr) -> Option<&'static str> {
        let mut hooks = self.hooks.iter().copied();
        hooks.find(|hook| program == OsStr::new(&program_of(hook, self.calls_are_perf_events)))
    }

    fn attach_those(&self, which: impl Fn(&str) -> bool) -> Result<Vec<Link>, ProbeError> {
        let mut links = Vec::new();
        for program in self.object.progs_mut() {
            let Some(name) = self.hook_of(program.name()) else {
                continue;
            };
            if !which(name) {
                continue;
            }
            let link =
                program.attach().map_err(ProbeError::refused(format!("the tracepoint {name}")))?;
            links.push(link);
        }
        Ok(links)
    }

    /// Ends the recording. What is looked at after it is the end of all waits.
    pub(crate) fn detach(&self, links: TracepointLinks) -> Result<(), ProbeError> {
        drop(links);
        self.set(DETACHED, 1)
    }
}
