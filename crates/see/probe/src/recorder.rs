//! A recording, from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use libbpf_rs::num_possible_cpus;
use luc_events::tables::Trace;
use luc_units::OnPath as _;

use crate::counters::Counters;
use crate::load::Programs;
use crate::record::{COMM, Config, DEVICES, SYSCALLS};
use crate::signals::spawn_without_signals;
use crate::stacks::Stacks;
use crate::symbols::Symbols;
use crate::{
    Capability, CounterList, Filter, Network, Outcome, ProbeError, Sink, clock, drain, messages,
    starts, syscalls,
};

/// Minimum length of a wait with a row. Shorter waits are summed, unless they matter.
const BRIEF_NS: u64 = 1_000_000;
/// A thread's sums of brief waits are sent when they span this time.
const BRIEF_FLUSH_NS: u64 = 100_000_000;
/// Default size of the ring buffer.
const RING_BYTES: u32 = 32 << 20;

/// Granularity of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A row per sync, commit, wait, call and request.
    #[default]
    Events,
    /// Counts once a second, made in the kernel.
    Summary,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Summary => "summary",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub mode: Mode,
    pub filter: Filter,
    /// Whether system calls are traced while recorded threads use files. Without this there are no rows of `call`. A
    /// sync on ext4 then begins and ends with the file system's own part. But every system call of the machine is
    /// some 0.1 us faster. With `network` in the summary mode they are never traced.
    pub calls: bool,
    /// Whether the network is recorded as well: connections and packets of everybody, messages of recorded threads, and
    /// samples of the clocks. In the summary mode: times of requests.
    pub network: bool,
    /// Whether names of requests are searched in the first bytes of messages: the trace id of a `traceparent` header or
    /// an `X-Request-Id`, in HTTP/1 without encryption. Only hashes of them leave the kernel.
    pub tokens: bool,
    /// Whether pipes are recorded together with the network. Each system call of the machine is then traced.
    pub pipes: bool,
    /// Events that are counted while recorded threads run, in the mode of events.
    pub counters: Option<CounterList>,
    /// Size of the ring buffer, a power of two of at least a page.
    pub ring_bytes: u32,
    /// Recorded command, for the trace's description.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            filter: Filter::default(),
            calls: true,
            network: false,
            tokens: false,
            pipes: false,
            counters: None,
            ring_bytes: RING_BYTES,
            command: String::new(),
        }
    }
}

impl Options {
    fn of_network(&self) -> Network {
        match (self.network, self.mode) {
            (false, _) => Network::Nothing,
            (true, Mode::Events) => Network::Messages,
            (true, Mode::Summary) => Network::Exchanges,
        }
    }
}

/// A recording in progress. Dropped without [`stop`](Self::stop), it is stopped as well, and errors are lost.
#[derive(Debug)]
pub struct Recorder {
    /// Events that this kernel cannot give, one line each.
    pub missing: Vec<String>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Outcome, ProbeError>>>,
}

impl Recorder {
    /// Begins to record; `open` makes the sink, once it is known that recording is possible. When this
    /// returns, everything is attached: children of this process that are started from now on are in
    /// [`Filter::children`].
    ///
    /// # Errors
    /// When nothing can be recorded here, a filter cannot be applied or the sink cannot be made.
    pub fn start<S: Sink + 'static>(
        options: Options,
        open: impl FnOnce(Trace) -> Result<S, ProbeError>,
    ) -> Result<Self, ProbeError> {
        let mut capability = Capability::detect(options.of_network())?;
        let symbols = Symbols::read()?;
        let counters = match &options.counters {
            Some(list) => Counters::open(list)?,
            None => Counters::default(),
        };
        // A process that is not there is refused before anything is loaded.
        options.filter.tree_now()?;
        let programs = loop {
            let config = Config {
                counters: counters.events.len() as u32,
                ..config(&options, &capability, &symbols)?
            };
            let loaded = Programs::load(
                &capability,
                &config,
                options.ring_bytes,
                options.calls && capability.network != Network::Exchanges,
            );
            // One that the kernel refuses is left out alone.
            let error = match loaded {
                Ok(programs) => break programs,
                Err(error) => error,
            };
            let refused = messages::refused_program();
            capability = refused.and_then(|name| capability.without(&name)).ok_or(error)?;
        };
        capability.missing.extend(counters.missing.iter().cloned());
        let stacks = Stacks::new(symbols);
        programs.count(&counters)?;
        let trace =
            clock::describe(options.command, options.filter.to_string(), options.mode.name());
        // What goes through all rows is compiled once, here, and not in the crate that chooses the sink.
        let sink: Box<dyn Sink> = Box::new(open(trace.clone())?);
        let filter = &options.filter;
        let links = programs.attach(&|| filter.tree_now().unwrap_or_default())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let session = drain::Session {
            programs,
            links,
            stacks,
            trace,
            summary: options.mode == Mode::Summary,
            network: capability.network,
            counters,
        };
        // None ends the recorder in the middle of a row.
        let thread =
            spawn_without_signals("luc-record", move || drain::run(session, sink, &stopped))
                .map_err(ProbeError::io("start", "the recorder's thread"))?;
        Ok(Self { missing: capability.missing, stop, thread: Some(thread) })
    }

    /// Returns whether it has ended by itself, because of an error that [`stop`](Self::stop) will return.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the recording and waits until the sink has all of it.
    ///
    /// # Errors
    /// Whatever went wrong since the start.
    pub fn stop(mut self) -> Result<Outcome, ProbeError> {
        self.end().unwrap_or(Err(ProbeError::Ended))
    }

    fn end(&mut self) -> Option<Result<Outcome, ProbeError>> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        Some(thread.join().unwrap_or(Err(ProbeError::Ended)))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

fn config(
    options: &Options,
    capability: &Capability,
    symbols: &Symbols,
) -> Result<Config, ProbeError> {
    // Other processors than x86-64's have no function of this name.
    let system_call = symbols.range("do_syscall_64").unwrap_or_default();
    let mut config = Config {
        cgroup: 0,
        brief_ns: BRIEF_NS,
        brief_flush_ns: BRIEF_FLUSH_NS,
        slot_ns: drain::SLOT_NS,
        routine_offset: routine_offset(capability.network == Network::Messages),
        system_call: system_call.start,
        system_call_bytes: system_call.end - system_call.start,
        own_process: 0,
        tree: 0,
        device_count: 0,
        devices: [0; DEVICES],
        comm_length: 0,
        comm: [0; COMM],
        summary: u32::from(options.mode == Mode::Summary),
        hot_mask: hot_places() - 1,
        run_delays: u32::from(counts_run_delays()),
        send_begins: u32::from(capability.has("tcp_sendmsg_locked")),
        send_ends: u32::from(capability.has("sock_send_length")),
        wake_ups: u32::from(capability.network == Network::Messages),
        tokens: u32::from(options.tokens),
        pipes: u32::from(
            options.pipes && capability.has("pipe_enter") && capability.has("pipe_exit"),
        ),
        counters: 0,
        processors: num_possible_cpus().unwrap_or(1) as u32,
        call_class: [0; SYSCALLS],
        call_test: [0; SYSCALLS],
        brief_class: [0; SYSCALLS],
        send_class: [0; SYSCALLS],
        buffer_class: [0; SYSCALLS],
        receive_class: [0; SYSCALLS],
        pipe_class: [0; SYSCALLS],
    };
    syscalls::fill(&mut config);
    options.filter.fill(&mut config)?;
    Ok(config)
}

/// Returns the offset of a thread's function in this machine's C library; 0 if unknown or not wanted.
fn routine_offset(wanted: bool) -> u64 {
    wanted.then(starts::own_routine_offset).flatten().unwrap_or_default()
}

/// Returns whether the scheduler counts waits for a processor (`sched_info_on`). Some kernels do so only while
/// `kernel.task_delayacct` is set. If it does, at least one wait of this thread has been counted.
fn counts_run_delays() -> bool {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(2).is_some_and(|turns| turns != "0")
}

/// Places in the array of recorded threads: one for each thread id if these are few.
fn hot_places() -> u32 {
    const MAX_PLACES: u32 = 1 << 16;
    std::fs::read_to_string("/proc/sys/kernel/pid_max")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .map_or(MAX_PLACES, |largest| largest.min(MAX_PLACES).next_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(network: Network) -> Result<(Capability, Symbols), ProbeError> {
        Ok((Capability::detect(network)?, Symbols::read()?))
    }

    #[test]
    fn the_programs_that_sum_exchanges_load() {
        let (all, symbols) = match detected(Network::Exchanges) {
            Ok(found) => found,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        let options = Options { mode: Mode::Summary, network: true, ..Options::default() };
        let without = Capability::detect_without(Network::Exchanges, &["tcp_sendmsg_locked"]);
        for capability in [all, without.expect("enough is left")] {
            let config = config(&options, &capability, &symbols).expect("no filter");
            let loaded = Programs::load(&capability, &config, 1 << 20, true);
            assert!(loaded.is_ok(), "{loaded:?}");
        }
    }

    #[test]
    fn the_programs_load_with_the_scheduler_s_counts_and_without() {
        let (capability, symbols) = match detected(Network::Messages) {
            Ok(found) => found,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        for mode in [Mode::Events, Mode::Summary] {
            for run_delays in [0, 1] {
                let options = Options { mode, ..Options::default() };
                let config = Config {
                    run_delays,
                    ..config(&options, &capability, &symbols).expect("no filter")
                };
                let loaded = Programs::load(&capability, &config, 1 << 20, true);
                assert!(loaded.is_ok(), "{mode:?} {run_delays}: {loaded:?}");
            }
        }
    }

    #[test]
    fn what_stands_in_for_tracepoints_loads_as_well() {
        let symbols = match detected(Network::Messages) {
            Ok((_, symbols)) => symbols,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        for missing in [&["tcp_sendmsg_locked"][..], &["tcp_sendmsg_locked", "sock_send_length"]] {
            let capability =
                Capability::detect_without(Network::Messages, missing).expect("enough is left");
            let options = Options::default();
            let config = config(&options, &capability, &symbols).expect("no filter");
            let loaded = Programs::load(&capability, &config, 1 << 20, true);
            assert!(loaded.is_ok(), "{missing:?}: {loaded:?}");
        }
    }
}
