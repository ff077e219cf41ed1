//! Writes what one request waited for, on its own track.

use std::io::Write;

use luc_report::perfetto::packets::TrackKind;

use super::TraceFile;
use super::write_slices::{TrackItem, write_slices};
use crate::explain::{PathPart, RequestReport};
use crate::text::request::{label_part, what};

/// Writes the path of a request. `start_ns` is the begin of its host's trace.
pub(super) fn write<W: Write>(file: &mut TraceFile<'_, W>, report: &RequestReport, start_ns: u64) {
    let request = &report.request;
    let name = format!("what request {} waited for", request.number);
    let track = file.track(TrackKind::Named { parent: None, name: &name });
    let began_ns = start_ns.saturating_add(request.began_ns);
    let part = |part: &PathPart| {
        let begin_ns = began_ns.saturating_add(part.after_ns);
        let error = match part.error_ns {
            Some(error_ns) if part.is_between_hosts => vec![("clock error ns", error_ns)],
            _ => Vec::new(),
        };
        TrackItem {
            begin_ns,
            end_ns: Some(begin_ns.saturating_add(part.time_ns)),
            name: format!("{}: {}", label_part(part), what(part)),
            category: part.kind,
            numbers: part
                .thread
                .map(|id| ("thread", u64::from(id)))
                .into_iter()
                .chain(error)
                .collect(),
            words: vec![("host", part.host.clone())],
            ..TrackItem::default()
        }
    };
    let items = report.path.iter().map(part).collect();
    write_slices(file.packets, track, items);
}
