//! A recording, from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use libbpf_rs::num_possible_cpus;
use luc_events::tables::TraceDescription;
use luc_units::OnPath as _;

use crate::block_signals::spawn_without_signals;
use crate::kernel_stacks::Stacks;
use crate::kernel_symbols::KernelSymbols;
use crate::load_programs::RecorderPrograms;
use crate::open_counters::OpenCounters;
use crate::ring_records::{COMM, Config, DEVICES, SYSCALLS};
use crate::{
    CounterList, NetworkRecording, ProbeError, RecordingCapability, RecordingFilter,
    RecordingOutcome, RowSink, describe_trace, libbpf_messages, recorder_thread, syscall_classes,
    thread_starts,
};

/// Minimum length of a wait with a row. Shorter waits are summed, unless they matter.
const BRIEF_NS: u64 = 1_000_000;
/// A thread's sums of brief waits are sent when they span this time.
const BRIEF_FLUSH_NS: u64 = 100_000_000;
/// Default size of the ring buffer.
const RING_BYTES: u32 = 32 << 20;

/// Granularity of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordingDetail {
    /// A row per sync, commit, wait, call and request.
    #[default]
    Events,
    /// Counts once a second, made in the kernel.
    Summary,
}

impl RecordingDetail {
    fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Summary => "summary",
        }
    }
}

/// Settings of a recording.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    pub mode: RecordingDetail,
    pub filter: RecordingFilter,
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

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            mode: RecordingDetail::default(),
            filter: RecordingFilter::default(),
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

impl RecorderOptions {
    fn of_network(&self) -> NetworkRecording {
        match (self.network, self.mode) {
            (false, _) => NetworkRecording::Nothing,
            (true, RecordingDetail::Events) => NetworkRecording::Messages,
            (true, RecordingDetail::Summary) => NetworkRecording::Exchanges,
        }
    }
}

/// A recording in progress. Dropped without [`stop`](Self::stop), it is stopped as well, and errors are lost.
#[derive(Debug)]
pub struct Recorder {
    /// Events that this kernel cannot give, one line each.
    pub missing: Vec<String>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<RecordingOutcome, ProbeError>>>,
}

impl Recorder {
    /// Begins to record; `open` makes the sink, once it is known that recording is possible. When this
    /// returns, everything is attached: children of this process that are started from now on are in
    /// [`RecordingFilter::children`].
    ///
    /// # Errors
    /// When nothing can be recorded here, a filter cannot be applied or the sink cannot be made.
    pub fn start<S: RowSink + 'static>(
        options: RecorderOptions,
        open: impl FnOnce(TraceDescription) -> Result<S, ProbeError>,
    ) -> Result<Self, ProbeError> {
        let mut capability = RecordingCapability::detect(options.of_network())?;
        let symbols = KernelSymbols::read()?;
        let counters = match &options.counters {
            Some(list) => OpenCounters::open(list)?,
            None => OpenCounters::default(),
        };
        // A process that is not there is refused before anything is loaded.
        options.filter.tree_now()?;
        let programs = loop {
            let config = Config {
                counters: counters.events.len() as u32,
                ..config(&options, &capability, &symbols)?
            };
            let loaded = RecorderPrograms::load(
                &capability,
                &config,
                options.ring_bytes,
                options.calls && capability.network != NetworkRecording::Exchanges,
            );
            // One that the kernel refuses is left out alone.
            let error = match loaded {
                Ok(programs) => break programs,
                Err(error) => error,
            };
            let refused = libbpf_messages::refused_program();
            capability = refused.and_then(|name| capability.without(&name)).ok_or(error)?;
        };
        capability.missing.extend(counters.missing.iter().cloned());
        let stacks = Stacks::new(symbols);
        programs.count(&counters)?;
        let trace = describe_trace::describe(
            options.command,
            options.filter.to_string(),
            options.mode.name(),
        );
        // What goes through all rows is compiled once, here, and not in the crate that chooses the sink.
        let sink: Box<dyn RowSink> = Box::new(open(trace.clone())?);
        let filter = &options.filter;
        let links = programs.attach(&|| filter.tree_now().unwrap_or_default())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let session = recorder_thread::RecorderThread {
            programs,
            links,
            stacks,
            trace,
            summary: options.mode == RecordingDetail::Summary,
            network: capability.network,
            counters,
        };
        // None ends the recorder in the middle of a row.
        let thread = spawn_without_signals("luc-record", move || {
            recorder_thread::run(session, sink, &stopped)
        })
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
    pub fn stop(mut self) -> Result<RecordingOutcome, ProbeError> {
        self.end().unwrap_or(Err(ProbeError::Ended))
    }

    fn end(&mut self) -> Option<Result<RecordingOutcome, ProbeError>> {
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
    options: &RecorderOptions,
    capability: &RecordingCapability,
    symbols: &KernelSymbols,
) -> Result<Config, ProbeError> {
    // Other processors than x86-64's have no function of this name.
    let system_call = symbols.range("do_syscall_64").unwrap_or_default();
    let mut config = Config {
        cgroup: 0,
        brief_ns: BRIEF_NS,
        brief_flush_ns: BRIEF_FLUSH_NS,
        slot_ns: recorder_thread::SLOT_NS,
        routine_offset: routine_offset(capability.network == NetworkRecording::Messages),
        system_call: system_call.start,
        system_call_bytes: system_call.end - system_call.start,
        own_process: 0,
        tree: 0,
        device_count: 0,
        devices: [0; DEVICES],
        comm_length: 0,
        comm: [0; COMM],
        summary: u32::from(options.mode == RecordingDetail::Summary),
        hot_mask: hot_places() - 1,
        run_delays: u32::from(counts_run_delays()),
        send_begins: u32::from(capability.has("tcp_sendmsg_locked")),
        send_ends: u32::from(capability.has("sock_send_length")),
        wake_ups: u32::from(capability.network == NetworkRecording::Messages),
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
    syscall_classes::fill(&mut config);
    options.filter.fill(&mut config)?;
    Ok(config)
}

/// Returns the offset of a thread's function in this machine's C library; 0 if unknown or not wanted.
fn routine_offset(wanted: bool) -> u64 {
    wanted.then(thread_starts::own_routine_offset).flatten().unwrap_or_default()
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

    fn detected(
        network: NetworkRecording,
    ) -> Result<(RecordingCapability, KernelSymbols), ProbeError> {
        Ok((RecordingCapability::detect(network)?, KernelSymbols::read()?))
    }

    #[test]
    fn the_programs_that_sum_exchanges_load() {
        let (all, symbols) = match detected(NetworkRecording::Exchanges) {
            Ok(found) => found,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        let options = RecorderOptions {
            mode: RecordingDetail::Summary,
            network: true,
            ..RecorderOptions::default()
        };
        let without = RecordingCapability::detect_without(
            NetworkRecording::Exchanges,
            &["tcp_sendmsg_locked"],
        );
        for capability in [all, without.expect("enough is left")] {
            let config = config(&options, &capability, &symbols).expect("no filter");
            let loaded = RecorderPrograms::load(&capability, &config, 1 << 20, true);
            assert!(loaded.is_ok(), "{loaded:?}");
        }
    }

    #[test]
    fn the_programs_load_with_the_scheduler_s_counts_and_without() {
        let (capability, symbols) = match detected(NetworkRecording::Messages) {
            Ok(found) => found,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        for mode in [RecordingDetail::Events, RecordingDetail::Summary] {
            for run_delays in [0, 1] {
                let options = RecorderOptions { mode, ..RecorderOptions::default() };
                let config = Config {
                    run_delays,
                    ..config(&options, &capability, &symbols).expect("no filter")
                };
                let loaded = RecorderPrograms::load(&capability, &config, 1 << 20, true);
                assert!(loaded.is_ok(), "{mode:?} {run_delays}: {loaded:?}");
            }
        }
    }

    #[test]
    fn what_stands_in_for_tracepoints_loads_as_well() {
        let symbols = match detected(NetworkRecording::Messages) {
            Ok((_, symbols)) => symbols,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return;
            }
        };
        for missing in [&["tcp_sendmsg_locked"][..], &["tcp_sendmsg_locked", "sock_send_length"]] {
            let capability =
                RecordingCapability::detect_without(NetworkRecording::Messages, missing)
                    .expect("enough is left");
            let options = RecorderOptions::default();
            let config = config(&options, &capability, &symbols).expect("no filter");
            let loaded = RecorderPrograms::load(&capability, &config, 1 << 20, true);
            assert!(loaded.is_ok(), "{missing:?}: {loaded:?}");
        }
    }
}
