//! Writes rows into a ring: consecutive traces of some seconds, whose oldest are removed.
//!
//! A segment has all rows up to its end. Rows of that time arrive for a while longer: processors gather rows, and
//! sums are taken out once a second. So a segment is closed a little later than it ends. Every segment repeats the
//! rows that define threads, connections, stacks and the like, so that it can be read alone.

mod standing_rows;

use std::path::Path;
use std::time::{Duration, Instant};

use luc_events::TraceEvent;
use luc_events::ring::{OpenSegment, RingKeeper, RingLimits, SegmentName};
use luc_events::store::TraceWriter;
use luc_events::tables::{ConnectionMessage, KernelStack, OffCpuWait, TraceDescription};

use crate::{ProbeError, RowSink};
use standing_rows::StandingRows;

/// Time after the end of a segment in which its rows still arrive. Sums are turned once a second and taken out at the
/// look after that. Processors hand over rows once a second.
const MAX_ROW_DELAY: Duration = Duration::from_millis(2500);
/// Number of looks after that time: a recorder that had no processor for a while still has rows to take.
const MIN_LATE_LOOKS: u32 = 3;
/// Time between two looks at the size of the open segments.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Divisor of the ring's maximum size: a segment of this part is ended early.
const SEGMENT_SIZE_DIVISOR: u64 = 4;

/// Settings of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Maximum age and size.
    pub limits: RingLimits,
    /// Length of a segment.
    pub segment: Duration,
}

/// Writes rows into a ring.
#[derive(Debug)]
pub struct RingSink {
    keeper: RingKeeper,
    options: RingOptions,
    current: Segment,
    /// The segment before, while its last rows arrive.
    previous: Option<Ended>,
    standing: StandingRows,
    looked: Instant,
}

/// A segment that is being written.
#[derive(Debug)]
struct Segment {
    open: OpenSegment,
    writer: TraceWriter,
    trace: TraceDescription,
    begun: Instant,
    bytes: u64,
}

/// A segment that has ended and is not closed yet.
#[derive(Debug)]
struct Ended {
    segment: Segment,
    at: Instant,
    late_looks: u32,
}

impl Ended {
    /// Returns whether all of its rows have arrived.
    fn is_complete(&mut self) -> bool {
        self.late_looks += u32::from(self.at.elapsed() >= MAX_ROW_DELAY);
        self.late_looks >= MIN_LATE_LOOKS
    }
}

impl Segment {
    fn begin(keeper: &mut RingKeeper, trace: TraceDescription) -> Result<Self, ProbeError> {
        let open = keeper.begin();
        let writer = TraceWriter::create(&open.path, trace.clone())?;
        Ok(Self { open, writer, trace, begun: Instant::now(), bytes: 0 })
    }

    fn close(self, keeper: &mut RingKeeper) -> Result<(), ProbeError> {
        let end_ns = self.trace.end_ns;
        self.writer.finish(self.trace)?;
        keeper.close(&self.open, end_ns)?;
        Ok(())
    }
}

impl RingSink {
    /// Continues the ring in `directory`, or makes one. Also returns the segments that a killed recorder left
    /// incomplete.
    ///
    /// # Errors
    /// As [`RingKeeper::open`].
    pub fn create(
        directory: &Path,
        options: RingOptions,
        trace: TraceDescription,
    ) -> Result<(Self, Vec<SegmentName>), ProbeError> {
        let (mut keeper, torn) = RingKeeper::open(directory, options.limits, trace.start_ns)?;
        let sink = Self {
            current: Segment::begin(&mut keeper, trace)?,
            keeper,
            options,
            previous: None,
            standing: StandingRows::default(),
            looked: Instant::now(),
        };
        Ok((sink, torn))
    }

    /// Returns the segment of a row's time.
    fn of(&mut self, at_ns: u64) -> &mut TraceWriter {
        match &mut self.previous {
            Some(previous) if at_ns < self.current.trace.start_ns => &mut previous.segment.writer,
            _ => &mut self.current.writer,
        }
    }

    /// Removes segments beyond the limits.
    fn look(&mut self, now_ns: u64) -> Result<(), ProbeError> {
        self.current.bytes = self.current.open.bytes()?;
        let mut open_bytes = self.current.bytes;
        if let Some(previous) = &self.previous {
            open_bytes += previous.segment.open.bytes()?;
        }
        self.keeper.remove_old(open_bytes, now_ns)?;
        Ok(())
    }
}

impl RowSink for RingSink {
    fn take(&mut self, event: TraceEvent) -> Result<(), ProbeError> {
        let at_ns = event.time_ns();
        let is_late = self.previous.is_some() && at_ns < self.current.trace.start_ns;
        let stands = self.standing.see(&event);
        // The row defines something that exists when the segment begins.
        if stands && is_late {
            self.current.writer.add(event.clone())?;
        } else if let (TraceEvent::KernelStack(row), Some(previous)) = (&event, &mut self.previous)
        {
            // A late row of the segment before may refer to it, too.
            let at_ns = previous.segment.trace.end_ns;
            let row = row.clone();
            previous.segment.writer.add(KernelStack { at_ns, ..row })?;
        }
        Ok(self.of(at_ns).add(event)?)
    }

    fn take_message(&mut self, row: ConnectionMessage) -> Result<(), ProbeError> {
        Ok(self.of(row.at_ns).add_message(row)?)
    }

    fn take_wait(&mut self, row: OffCpuWait) -> Result<(), ProbeError> {
        Ok(self.of(row.on_ns).add_wait(row)?)
    }

    fn tick(&mut self) -> Result<(), ProbeError> {
        self.current.writer.tick()?;
        if let Some(previous) = self.previous.take_if(Ended::is_complete) {
            previous.segment.close(&mut self.keeper)?;
        }
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.looked = Instant::now();
            self.look(luc_host::kernel_clocks::now_ns())?;
        }
        Ok(())
    }

    fn cut_is_due(&self) -> bool {
        let largest = self.options.limits.keep_bytes / SEGMENT_SIZE_DIVISOR;
        let is_full = self.current.bytes >= largest;
        self.previous.is_none() && (is_full || self.current.begun.elapsed() >= self.options.segment)
    }

    fn visit_begins(&mut self, at_ns: u64) {
        self.standing.visit_begins(at_ns);
    }

    fn cut(&mut self, trace: TraceDescription) -> Result<(), ProbeError> {
        let start_ns = trace.start_ns;
        let mut next = Segment::begin(&mut self.keeper, trace)?;
        for row in self.standing.rows(start_ns) {
            next.writer.add(row)?;
        }
        let mut ended = std::mem::replace(&mut self.current, next);
        ended.trace.at_ns = start_ns;
        ended.trace.end_ns = start_ns;
        self.previous = Some(Ended { segment: ended, at: Instant::now(), late_looks: 0 });
        Ok(())
    }

    fn finish(mut self: Box<Self>, trace: TraceDescription) -> Result<(), ProbeError> {
        if let Some(previous) = self.previous.take() {
            previous.segment.close(&mut self.keeper)?;
        }
        let Self { mut keeper, mut current, .. } = *self;
        current.trace.at_ns = trace.end_ns;
        current.trace.end_ns = trace.end_ns;
        current.close(&mut keeper)?;
        keeper.remove_old(0, trace.end_ns)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use luc_events::StackId;
    use luc_events::ring::segments;
    use luc_events::store::TraceReader;
    use luc_events::tables::TableRow;

    use super::*;

    /// Returns the times of a table's rows in each segment.
    fn times<T: TableRow>(directory: &Path) -> Vec<Vec<u64>> {
        let segments = segments(directory).expect("listed");
        let of_one = |path: &Path| {
            let rows =
                TraceReader::open(path).and_then(|reader| reader.rows::<T>()).expect("opened");
            rows.map(|row| row.expect("read").time_ns()).collect()
        };
        segments.iter().map(|one| of_one(&one.path)).collect()
    }

    fn stack(number: u32, at_ns: u64) -> TraceEvent {
        let row = KernelStack { at_ns, id: StackId(number), ..KernelStack::default() };
        row.into()
    }

    fn wait(on_ns: u64) -> OffCpuWait {
        OffCpuWait { on_ns, ..OffCpuWait::default() }
    }

    #[test]
    fn rows_stand_in_the_segment_of_their_time_and_stacks_wherever_rows_may_refer_to_them() {
        let folder = tempfile::tempdir().expect("made");
        let options = RingOptions {
            limits: RingLimits { keep_ns: u64::MAX, keep_bytes: u64::MAX },
            segment: Duration::MAX,
        };
        let begin = |start_ns| TraceDescription { start_ns, ..TraceDescription::default() };
        let (sink, _) = RingSink::create(folder.path(), options, begin(100)).expect("begun");
        let mut sink = Box::new(sink);
        sink.take(stack(1, 110)).expect("taken");
        sink.take_wait(wait(120)).expect("taken");
        sink.visit_begins(190);
        sink.cut(begin(200)).expect("cut");
        sink.take(stack(2, 210)).expect("taken");
        sink.take(stack(3, 150)).expect("taken");
        for on_ns in [199, 200] {
            sink.take_wait(wait(on_ns)).expect("taken");
        }
        let end = TraceDescription { end_ns: 300, ..begin(100) };
        sink.finish(end).expect("written");
        assert_eq!(times::<OffCpuWait>(folder.path()), [vec![120, 199], vec![200]]);
        assert_eq!(times::<KernelStack>(folder.path()), [vec![110, 150, 200], vec![150, 200, 210]]);
    }
}
