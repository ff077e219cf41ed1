//! Turns events of the recorder's thread into intervals.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use luc_events::TraceEvent;
use luc_events::tables::LostEvents;
use luc_probe::{ForwardingSink, Recorder, RecorderOptions, RecordingFilter};

use crate::error::TopError;
use crate::kernel_figures::{self, DiskBusyTimes};
use crate::{MachineFigures, SlidingAnalysis, ThrottleState, TopInterval};

/// Time between two reads of the recorder's events.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time until all that is analysed happened after the recorder began.
const WARM_UP_TIME: Duration = Duration::from_millis(1_500);

/// A recorder and the analysis of what it records.
#[derive(Debug)]
pub struct LiveAnalysis {
    /// Events that cannot be recorded here.
    pub missing: Vec<String>,
    recorder: Recorder,
    batches: Receiver<Vec<TraceEvent>>,
    window: SlidingAnalysis,
    disks: DiskBusyTimes,
    lost: u64,
    /// Start of the recording, by both clocks.
    began: Instant,
    began_ns: u64,
    looked: Instant,
}

impl LiveAnalysis {
    /// Begins to record the events that `filter` selects. `ring_bytes`, a power of two, is the size of the buffer in
    /// the kernel.
    ///
    /// # Errors
    /// [`TopError::Probe`]: this machine or this user cannot record.
    pub fn start(filter: RecordingFilter, ring_bytes: u32) -> Result<Self, TopError> {
        let options = RecorderOptions { filter, ring_bytes, ..RecorderOptions::default() };
        let (sink, batches) = ForwardingSink::new();
        let mut opened = None;
        let recorder = Recorder::start(options, |trace| {
            opened = Some((trace, Instant::now()));
            Ok(sink)
        })?;
        let (trace, began) = opened.ok_or(TopError::RecorderEnded)?;
        Ok(Self {
            missing: recorder.missing.clone(),
            recorder,
            batches,
            began_ns: trace.start_ns,
            window: SlidingAnalysis::new(trace),
            disks: DiskBusyTimes::new(),
            lost: 0,
            began,
            looked: began,
        })
    }

    /// Takes in events until the first interval can begin or `ended` returns true.
    pub(crate) fn warm_up(&mut self, ended: impl Fn() -> bool) -> Result<(), TopError> {
        while !self.is_warm() && !ended() {
            std::thread::sleep(POLL_INTERVAL);
            self.take_in()?;
        }
        self.look()?;
        Ok(())
    }

    /// Returns whether the first interval can begin.
    pub(crate) fn is_warm(&self) -> bool {
        self.began.elapsed() >= WARM_UP_TIME
    }

    /// Takes in the events that the recorder has sent.
    pub(crate) fn take_in(&mut self) -> Result<(), TopError> {
        loop {
            match self.batches.try_recv() {
                Ok(batch) => {
                    self.lost += batch.iter().map(lost_count).sum::<u64>();
                    self.window.add(batch);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(TopError::RecorderEnded);
                }
            }
        }
        self.window.settle(self.now_ns());
        Ok(())
    }

    /// Returns the interval since the last call.
    pub(crate) fn look(&mut self) -> Result<TopInterval, TopError> {
        self.take_in()?;
        let (before, after) = self.window.turn(self.now_ns());
        let seconds = self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        let machine = MachineFigures {
            up_s: self.began.elapsed().as_secs_f64(),
            lost: self.lost,
            pressure: kernel_figures::pressure(),
            busy: self.disks.look(self.window.file_systems()),
            disk_names: kernel_figures::disk_names(&after),
            throttle: ThrottleState::read(),
        };
        Ok(TopInterval::between(&before, &after, seconds, machine))
    }

    pub(crate) fn stop(self) -> Result<(), TopError> {
        drop(self.batches);
        self.recorder.stop()?;
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        let elapsed_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.began_ns.saturating_add(elapsed_ns)
    }
}

fn lost_count(event: &TraceEvent) -> u64 {
    match event {
        TraceEvent::LostEvents(LostEvents { count, .. }) => *count,
        _ => 0,
    }
}
