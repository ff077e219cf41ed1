//! The recorder's thread: it takes records out of the kernel, makes rows of them, and passes them to the sink.

mod row_output;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::{RingBuffer, RingBufferBuilder};
use luc_events::Dev;
use luc_events::tables::{LostEvents, TraceDescription};
use luc_host::kernel_clocks::now_ns;

use crate::clock_sample::{self, ClockSampler};
use crate::exchange_sums::ExchangeSums;
use crate::kernel_stacks::Stacks;
use crate::load_programs::{RecorderPrograms, TracepointLinks};
use crate::map_pairs::{self, FilledMap, SummaryRows};
use crate::open_counters::OpenCounters;
use crate::recording_capability::NetworkRecording;
use crate::ring_records::{
    DataKey, DataSum, HandleKey, HandleSum, LOST_PLACES, SummaryKey, SummarySum,
};
use crate::thread_starts::ThreadStarts;
use crate::{
    ProbeError, RecordingOutcome, RowSink, decode, describe_trace, mounted_file_systems,
    sleeping_threads,
};
use row_output::RowOutput;

/// Time that records stay in the ring buffer. Nothing wakes the thread: a wake-up per record would be most of the cost.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two looks at losses and mounts. Also the maximum time until sums are taken and processors hand over
/// their batches.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Number of entries in the maps at which sums are taken out: a part of the smallest of these maps. Reading a larger
/// map costs more, so it is not done more often than needed.
const MAX_SUMS: u32 = 4096;

/// Time without use of files by recorded threads after which system calls are no longer traced.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// Data is summed per slot of this length.
pub(crate) const SLOT_NS: u64 = 10_000_000;

/// Time at which sums of exchanges are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    IfDue,
    Now,
}

/// State of the recorder's thread.
pub(crate) struct RecorderThread {
    pub(crate) programs: RecorderPrograms,
    pub(crate) links: TracepointLinks,
    pub(crate) stacks: Stacks,
    pub(crate) trace: TraceDescription,
    pub(crate) summary: bool,
    pub(crate) network: NetworkRecording,
    pub(crate) counters: OpenCounters,
}

/// Records until `stop` is set, then ends the trace.
pub(crate) fn run(
    session: RecorderThread,
    sink: Box<dyn RowSink>,
    stop: &AtomicBool,
) -> Result<RecordingOutcome, ProbeError> {
    let RecorderThread { programs, mut links, stacks, trace, summary, network, counters } = session;
    // Only traces with messages are joined with those of other hosts.
    let messages = network == NetworkRecording::Messages;
    // 1. The way out, and the state at the beginning.
    let output = RefCell::new(RowOutput {
        sink,
        stacks,
        starts: messages.then(ThreadStarts::default),
        new_tasks: Vec::new(),
        numbers: sleeping_threads::ThreadNumbers::default(),
        outcome: RecordingOutcome::default(),
        alike: ("", 0),
        counted: counters.events.iter().map(decode::CountedEvent::of).collect(),
        failed: None,
    });
    let records = programs.map("records")?;
    let stack_map = programs.map("stacks")?;
    let mut ring = RingBufferBuilder::new();
    ring.add(&records, |bytes| output.borrow_mut().record_or_fail(&stack_map, bytes))
        .map_err(ProbeError::refused("its ring buffer"))?;
    let ring = ring.build().map_err(ProbeError::refused("its ring buffer"))?;
    let mut state = State {
        epoch: FilledMap::default(),
        turned: false,
        inserted: 0,
        last_turn: Instant::now(),
        interval_begin_ns: trace.start_ns,
        lost: [0; LOST_PLACES.len()],
        missed: BTreeMap::new(),
        file_systems: Vec::new(),
        summary,
        exchanges: (network == NetworkRecording::Exchanges)
            .then(|| ExchangeSums::since(trace.start_ns)),
    };
    // At once: the causes of sleeps from before are read from the threads' memory.
    consume(&ring, &output)?;
    state.look_at_mounts(&output)?;
    let mut calls = Calls { attached: true, activity: 0, last_active: Instant::now() };
    let mut sampler = messages.then(ClockSampler::default);
    if let Some(row) = sampler.as_mut().and_then(ClockSampler::sample_if_due) {
        output.borrow_mut().send(row)?;
    }
    // 2. Records and sums, until the end.
    let mut slow_due = Instant::now();
    while !stop.load(Ordering::Acquire) {
        std::thread::park_timeout(POLL_INTERVAL);
        programs.count_running();
        consume(&ring, &output)?;
        if let Some(row) = sampler.as_mut().and_then(ClockSampler::sample_if_due) {
            output.borrow_mut().send(row)?;
        }
        calls.look(&programs, &mut links)?;
        state.look_at_sums(&programs, &output)?;
        if slow_due.elapsed() >= SLOW_INTERVAL {
            slow_due = Instant::now();
            programs.hand_over();
            state.look_at_exchanges(&programs, &output, Look::IfDue)?;
            state.look_at_losses(&programs, &output)?;
            state.look_at_mounts(&output)?;
        }
        output.borrow_mut().sink.tick()?;
        if output.borrow().sink.cut_is_due() {
            cut(&programs, &ring, &output, &trace)?;
        }
    }
    // 3. The state at the end, and the rest of the maps.
    programs.count_running();
    programs.detach(links)?;
    programs.visit_all(|| consume(&ring, &output))?;
    for record in programs.held_batches()? {
        output.borrow_mut().record(&stack_map, &record)?;
    }
    for _both in 0..2 {
        state.take(&programs, &output)?;
        state.epoch.turn(&programs)?;
    }
    state.look_at_exchanges(&programs, &output, Look::Now)?;
    state.look_at_losses(&programs, &output)?;
    state.look_at_mounts(&output)?;
    if messages {
        output.borrow_mut().send(clock_sample::read())?;
    }
    drop(ring);
    let mut output = output.into_inner();
    output.count_alike();
    let end_ns = now_ns();
    output.sink.finish(TraceDescription { at_ns: end_ns, end_ns, ..trace })?;
    Ok(output.outcome)
}

/// Begins a new trace: the present state is visited as at the end.
fn cut(
    programs: &RecorderPrograms,
    ring: &RingBuffer<'_>,
    output: &RefCell<RowOutput>,
    trace: &TraceDescription,
) -> Result<(), ProbeError> {
    programs.hand_over();
    programs.count_running();
    consume(ring, output)?;
    output.borrow_mut().sink.visit_begins(now_ns());
    programs.visit_all(|| consume(ring, output))?;
    let mut output = output.borrow_mut();
    output.send(clock_sample::read())?;
    output.sink.cut(describe_trace::anew(trace))
}

/// Takes all records out of the ring buffer.
fn consume(ring: &RingBuffer<'_>, output: &RefCell<RowOutput>) -> Result<(), ProbeError> {
    let result = ring.consume();
    if let Some(error) = output.borrow_mut().failed.take() {
        return Err(error);
    }
    result.map_err(ProbeError::refused("reading its ring buffer"))?;
    let mut output = output.borrow_mut();
    output.numbers.clear();
    output.send_starts()
}

/// Attachment to system calls, which lasts only while recorded threads use files. It makes every system call of the
/// machine slower. A program that does 100,000 a second would be slowed down for nothing.
struct Calls {
    attached: bool,
    activity: u32,
    last_active: Instant,
}

impl Calls {
    fn look(
        &mut self,
        programs: &RecorderPrograms,
        links: &mut TracepointLinks,
    ) -> Result<(), ProbeError> {
        let activity = programs.file_activity()?;
        let active = activity != self.activity;
        self.activity = activity;
        if active {
            self.last_active = Instant::now();
        }
        if active && !self.attached {
            programs.attach_calls(links)?;
            self.attached = true;
        } else if self.attached && self.last_active.elapsed() >= QUIET_TIME {
            programs.detach_calls(links)?;
            self.attached = false;
        }
        Ok(())
    }
}

/// Data that is taken out of the kernel from time to time.
struct State {
    epoch: FilledMap,
    /// Whether the programs have filled the other maps since the last look, so that the former ones must be emptied.
    turned: bool,
    inserted: u32,
    last_turn: Instant,
    interval_begin_ns: u64,
    lost: [u64; LOST_PLACES.len()],
    missed: BTreeMap<&'static str, u64>,
    file_systems: Vec<Dev>,
    summary: bool,
    /// Set if exchanges are summed.
    exchanges: Option<ExchangeSums>,
}

impl State {
    /// Makes the programs fill the other maps when it is time, and empties the former ones at the next look.
    fn look_at_sums(
        &mut self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
    ) -> Result<(), ProbeError> {
        if self.turned {
            self.turned = false;
            return self.take(programs, output);
        }
        let inserted = programs.inserted()?;
        let new = inserted.wrapping_sub(self.inserted);
        if new >= MAX_SUMS || new > 0 && self.last_turn.elapsed() >= SLOW_INTERVAL {
            self.epoch.turn(programs)?;
            self.turned = true;
            self.inserted = inserted;
            self.last_turn = Instant::now();
        }
        Ok(())
    }

    /// Empties the maps that are not being filled.
    fn take(
        &mut self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
    ) -> Result<(), ProbeError> {
        if self.summary {
            self.take_summary(programs, output)
        } else {
            self.take_sums(programs, output)
        }
    }

    fn take_sums(
        &self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
    ) -> Result<(), ProbeError> {
        let mut output = output.borrow_mut();
        let map = programs.map(self.epoch.idle(map_pairs::HANDLES))?;
        map_pairs::drain(&map, |key: HandleKey, sum: HandleSum| {
            output.send(map_pairs::handle(&key, &sum))
        })?;
        let map = programs.map(self.epoch.idle(map_pairs::DATA))?;
        let mut rows = Vec::new();
        map_pairs::drain(&map, |key: DataKey, sum: DataSum| {
            rows.push(map_pairs::data(&key, &sum, SLOT_NS));
            Ok(())
        })?;
        map_pairs::dirtied_first(&mut rows);
        rows.into_iter().try_for_each(|row| output.send(row))
    }

    fn take_summary(
        &mut self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
    ) -> Result<(), ProbeError> {
        let now = now_ns();
        let mut output = output.borrow_mut();
        let stacks = programs.map("stacks")?;
        let map = programs.map(self.epoch.idle(map_pairs::SUMMARY))?;
        let mut all = SummaryRows::default();
        map_pairs::drain(&map, |key: SummaryKey, sum: SummarySum| {
            let (_, cause) = output.resolve(&stacks, key.stack, key.brief, now)?;
            all.add(&key, &sum, cause);
            Ok(())
        })?;
        for row in all.rows(now, now - self.interval_begin_ns) {
            output.send(row)?;
        }
        self.interval_begin_ns = now;
        Ok(())
    }

    /// Sends the sums of exchanges since the last time.
    fn look_at_exchanges(
        &mut self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
        look: Look,
    ) -> Result<(), ProbeError> {
        let Some(exchanges) = &mut self.exchanges else {
            return Ok(());
        };
        let now = now_ns();
        if look == Look::IfDue && !exchanges.is_due(now) {
            return Ok(());
        }
        let mut output = output.borrow_mut();
        for row in exchanges.rows(programs, now)? {
            output.send(row)?;
        }
        Ok(())
    }

    fn look_at_losses(
        &mut self,
        programs: &RecorderPrograms,
        output: &RefCell<RowOutput>,
    ) -> Result<(), ProbeError> {
        let at_ns = now_ns();
        let mut output = output.borrow_mut();
        let row = |place: &str, count| LostEvents { at_ns, count, place: place.to_owned() };
        let counts = programs.lost()?;
        for ((place, now), before) in LOST_PLACES.iter().zip(counts).zip(&mut self.lost) {
            let count = now - *before;
            *before = now;
            if count > 0 {
                output.outcome.lose(place, count);
                output.send(row(place, count))?;
            }
        }
        for (table, now) in programs.missed()? {
            let before = self.missed.insert(table, now).unwrap_or_default();
            let count = now.saturating_sub(before);
            if count > 0 {
                output.outcome.miss(table, count);
                output.send(row(table, count))?;
            }
        }
        Ok(())
    }

    fn look_at_mounts(&mut self, output: &RefCell<RowOutput>) -> Result<(), ProbeError> {
        for row in mounted_file_systems::new_file_systems(now_ns(), &self.file_systems) {
            self.file_systems.push(row.dev);
            output.borrow_mut().send(row)?;
        }
        Ok(())
    }
}
