//! From the recorder's thread to intervals.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use luc_events::Event;
use luc_events::tables::Lost;
use luc_probe::{Filter, Options, Recorder};
use luc_report::top::{Interval, Machine, Window};

use super::STEP;
use super::machine::{self, Disks};
use crate::commands::forward::Forward;

/// Until then what is analysed is not from before the recorder was there.
const WARM_UP: Duration = Duration::from_millis(1_500);

/// A recorder and the analysis of what it records.
#[derive(Debug)]
pub(super) struct Live {
    /// What cannot be recorded here.
    pub(super) missing: Vec<String>,
    recorder: Recorder,
    batches: Receiver<Vec<Event>>,
    window: Window,
    disks: Disks,
    lost: u64,
    /// When recording began, by both clocks.
    began: Instant,
    began_ns: u64,
    looked: Instant,
}

impl Live {
    /// Begins to record.
    pub(super) fn start(filter: Filter, ring_bytes: u32) -> anyhow::Result<Self> {
        let options = Options {
            filter,
            ring_bytes,
            ..Options::default()
        };
        let (sink, batches) = Forward::new();
        let mut opened = None;
        let recorder = Recorder::start(options, |trace| {
            opened = Some((trace, Instant::now()));
            Ok(sink)
        })?;
        let (trace, began) = opened.context("the recorder did not begin")?;
        Ok(Self {
            missing: recorder.missing.clone(),
            recorder,
            batches,
            began_ns: trace.start_ns,
            window: Window::new(trace),
            disks: Disks::new(),
            lost: 0,
            began,
            looked: began,
        })
    }

    /// Takes in events until the first interval can begin, or `ended`.
    pub(super) fn warm_up(&mut self, ended: impl Fn() -> bool) -> anyhow::Result<()> {
        while !self.is_warm() && !ended() {
            std::thread::sleep(STEP);
            self.take_in()?;
        }
        self.look()?;
        Ok(())
    }

    /// Whether the first interval can begin.
    pub(super) fn is_warm(&self) -> bool {
        self.began.elapsed() >= WARM_UP
    }

    /// Takes in what the recorder has sent.
    pub(super) fn take_in(&mut self) -> anyhow::Result<()> {
        loop {
            match self.batches.try_recv() {
                Ok(batch) => {
                    self.lost += batch.iter().map(lost).sum::<u64>();
                    self.window.add(batch);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    anyhow::bail!("the recorder ended");
                }
            }
        }
        self.window.settle(self.now_ns());
        Ok(())
    }

    /// What happened since the last look.
    pub(super) fn look(&mut self) -> anyhow::Result<Interval> {
        self.take_in()?;
        let (before, after) = self.window.turn(self.now_ns());
        let seconds = self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        let machine = Machine {
            up_s: self.began.elapsed().as_secs_f64(),
            lost: self.lost,
            pressure: machine::pressure(),
            busy: self.disks.look(self.window.file_systems()),
        };
        Ok(Interval::between(&before, &after, seconds, machine))
    }

    /// Ends the recording.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        drop(self.batches);
        self.recorder.stop()?;
        Ok(())
    }

    /// CLOCK_MONOTONIC.
    fn now_ns(&self) -> u64 {
        let elapsed_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.began_ns.saturating_add(elapsed_ns)
    }
}

fn lost(event: &Event) -> u64 {
    match event {
        Event::Lost(Lost { count, .. }) => *count,
        _ => 0,
    }
}
