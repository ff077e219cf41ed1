//! Writes one host: its processes and threads, and their waits.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{ThreadIdentity, ThreadWait};
use luc_report::perfetto::packets::{TracedMachine, TrackKind};

use super::TraceFile;
use super::write_slices::{TrackItem, write_slices};
use crate::explain::FleetRequests;
use crate::joined_traces::JoinedHost;

/// Wait, and its cause.
type WaitWithCause = (ThreadWait, WaitCause);

/// Writes a host as a machine.
pub(super) fn write<W: Write>(file: &mut TraceFile<'_, W>, found: &FleetRequests<'_>, id: HostId) {
    let host = found.joined.host(id);
    file.packets.machine(TracedMachine {
        // 0 is no host.
        id: id.0.saturating_add(1),
        name: &host.name,
        kernel: &host.summary.kernel,
        processors: host.summary.processors,
    });
    let mut threads: BTreeMap<(u32, ThreadIdentity), Vec<WaitWithCause>> = BTreeMap::new();
    for (wait, cause) in found.joined.waits_of(id) {
        let process = host.process_of(wait.thread).unwrap_or(wait.thread.id);
        threads.entry((process, wait.thread)).or_default().push((wait, cause));
    }
    let processes: BTreeSet<u32> = threads.keys().map(|(process, _)| *process).collect();
    for pid in processes {
        let name = host.process_name(pid, u64::MAX);
        file.track(TrackKind::Process { pid, name: &name });
    }
    for ((pid, thread), waits) in threads {
        let items = build_states(file, host, waits);
        if items.is_empty() {
            continue;
        }
        let name = host.thread_name(thread);
        let track = file.track(TrackKind::Thread { pid, tid: thread.id, name: &name });
        write_slices(file.packets, track, items);
    }
}

/// Turns a thread's waits into slices, with slices on a processor between them.
fn build_states<W: Write>(
    file: &TraceFile<'_, W>,
    host: &JoinedHost,
    mut waits: Vec<WaitWithCause>,
) -> Vec<TrackItem> {
    waits.sort_unstable_by_key(|(wait, _)| (wait.off_ns, wait.on_ns));
    let ran =
        if host.has_all_waits { "on a processor" } else { "on a processor or in brief waits" };
    let mut items = Vec::new();
    let mut running_since_ns: Option<u64> = None;
    for (wait, cause) in waits {
        let place = |at_ns| file.clock.place_ns(wait.host, at_ns);
        let (Some(off_ns), Some(on_ns)) = (place(wait.off_ns), place(wait.on_ns)) else {
            running_since_ns = None;
            continue;
        };
        // Neither errors of clocks nor damaged rows turn time around.
        let off_ns = running_since_ns.map_or(off_ns, |since_ns| off_ns.max(since_ns));
        let on_ns = on_ns.max(off_ns);
        if let Some(since_ns) = running_since_ns.filter(|since_ns| *since_ns < off_ns) {
            items.push(TrackItem {
                begin_ns: since_ns,
                end_ns: Some(off_ns),
                name: ran.to_owned(),
                category: "running",
                ..TrackItem::default()
            });
        }
        let waker = wait.waker.map(|waker| {
            let name = host.thread_name(waker);
            ("woken by", format!("{name} {}", waker.id))
        });
        items.push(TrackItem {
            begin_ns: off_ns,
            end_ns: Some(on_ns),
            name: match cause {
                WaitCause::Preempted => "waits for a processor".to_owned(),
                cause => format!("waits ({})", cause.name()),
            },
            category: "wait",
            words: waker.into_iter().collect(),
            ..TrackItem::default()
        });
        let is_preempted = cause == WaitCause::Preempted;
        let woken_ns = wait.woken_ns.filter(|_| !is_preempted).and_then(place);
        if let Some(woken_ns) = woken_ns.filter(|woken_ns| (off_ns..on_ns).contains(woken_ns)) {
            items.push(TrackItem {
                begin_ns: woken_ns,
                end_ns: Some(on_ns),
                name: "waits for a processor".to_owned(),
                category: "wait",
                ..TrackItem::default()
            });
        }
        running_since_ns = Some(on_ns);
    }
    items
}
