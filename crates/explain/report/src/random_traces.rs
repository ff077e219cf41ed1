//! Random traces for tests, and their exports.

use luc_events::TraceEvent;
use luc_events::tables::TraceDescription;
use luc_explain::{Analysis, TraceReport};
use luc_testkit::events::NAMES;
pub(crate) use luc_testkit::events::events;

use crate::ReportExport;

/// Describes a trace with harmful names.
pub(crate) fn description() -> TraceDescription {
    TraceDescription {
        host: NAMES[2].to_owned(),
        kernel: NAMES[3].to_owned(),
        command: NAMES[2].to_owned(),
        mode: "events".to_owned(),
        processors: 2,
        start_ns: 1_000,
        end_ns: 2_000_000_000,
        realtime_offset_ns: 1_795_294_296_000_000_000,
        boottime_offset_ns: 5_000_000_000,
        ..TraceDescription::default()
    }
}

/// Exports events. Returns the file and the report.
pub(crate) fn exported<E: ReportExport + 'static>(
    events: Vec<TraceEvent>,
    begin: impl FnOnce(&TraceDescription, SharedBuffer) -> E,
) -> (Vec<u8>, TraceReport) {
    let out = SharedBuffer::default();
    let mut export = Box::new(begin(&description(), out.clone()));
    let mut analysis = Analysis::with_observer(description(), &mut *export);
    for event in events {
        analysis.add(event);
    }
    let report = analysis.finish();
    export.finish(&report).unwrap();
    (out.0.take(), report)
}

/// A writer whose bytes can be read afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBuffer(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl std::io::Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
