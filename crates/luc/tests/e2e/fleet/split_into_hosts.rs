//! One kernel's trace as those of several hosts: each has the sockets of its network namespaces, and a clock of its
//! own. What others on the machine do meanwhile is in none.

use std::collections::BTreeSet;
use std::path::Path;

use luc_events::store::{TraceReader, TraceWriter};
use luc_events::tables::{
    BriefWait, ClockSample, ConnectionMessage, OffCpuWait, SocketConnection, TableRow, TcpPacket,
    ThreadInfo, TraceDescription,
};
use luc_events::{ConnectionId, Inode, Pid, Tgid, TraceEvent};

/// Difference between a host's clocks and the kernel's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClockWarp {
    /// Offset at the kernel's time `since_ns`.
    pub(crate) offset_ns: i64,
    /// Growth of the offset, in parts per billion.
    pub(crate) drift_ppb: i64,
    pub(crate) since_ns: u64,
}

impl ClockWarp {
    /// Returns the host's time for the kernel's time `at_ns`; 0 stays "not known".
    pub(crate) fn time(&self, at_ns: u64) -> u64 {
        if at_ns == 0 {
            return 0;
        }
        let since = i128::from(at_ns) - i128::from(self.since_ns);
        let drift = since * i128::from(self.drift_ppb) / 1_000_000_000;
        let warped = i128::from(at_ns) + i128::from(self.offset_ns) + drift;
        u64::try_from(warped).expect("a time")
    }
}

/// Writes the trace of the host `name`, whose sockets are in `namespaces`, to `to`.
pub(crate) fn write(from: &Path, namespaces: &[Inode], name: &str, warp: ClockWarp, to: &Path) {
    let reader = TraceReader::open(from).expect("a trace");
    let trace = TraceDescription {
        host: name.to_owned(),
        start_ns: warp.time(reader.trace().start_ns),
        ..reader.trace().clone()
    };
    let begin = TraceDescription { at_ns: trace.start_ns, end_ns: 0, ..trace.clone() };
    let mut writer = TraceWriter::create(to, begin).expect("created");
    let mut sockets: BTreeSet<ConnectionId> = BTreeSet::new();
    let mut threads: BTreeSet<Pid> = BTreeSet::new();
    let mut processes: BTreeSet<Tgid> = BTreeSet::new();
    for mut row in rows::<SocketConnection>(&reader) {
        if !namespaces.contains(&row.namespace) {
            continue;
        }
        sockets.insert(row.connection);
        for time in [&mut row.at_ns, &mut row.opened_ns, &mut row.closed_ns] {
            *time = warp.time(*time);
        }
        add(&mut writer, row);
    }
    for mut row in rows::<ConnectionMessage>(&reader) {
        if sockets.contains(&row.connection) {
            threads.insert(row.thread);
            processes.insert(row.process);
            row.at_ns = warp.time(row.at_ns);
            add(&mut writer, row);
        }
    }
    for mut row in rows::<TcpPacket>(&reader) {
        if sockets.contains(&row.connection) {
            row.at_ns = warp.time(row.at_ns);
            add(&mut writer, row);
        }
    }
    for mut row in rows::<ClockSample>(&reader) {
        // Both clocks are off by the same, so that their rates stay as NTP has them.
        let off_ns = warp.time(row.at_ns).wrapping_sub(row.at_ns);
        row.at_ns = row.at_ns.wrapping_add(off_ns);
        row.raw_ns = row.raw_ns.wrapping_add(off_ns);
        add(&mut writer, row);
    }
    for mut row in rows::<ThreadInfo>(&reader) {
        if processes.contains(&row.process) {
            for time in [&mut row.at_ns, &mut row.start_ns, &mut row.exit_ns] {
                *time = warp.time(*time);
            }
            add(&mut writer, row);
        }
    }
    for mut row in rows::<OffCpuWait>(&reader) {
        if threads.contains(&row.thread) {
            for time in [&mut row.off_ns, &mut row.woken_ns, &mut row.on_ns] {
                *time = warp.time(*time);
            }
            add(&mut writer, row);
        }
    }
    for mut row in rows::<BriefWait>(&reader) {
        if threads.contains(&row.thread) {
            for time in [&mut row.since_ns, &mut row.until_ns] {
                *time = warp.time(*time);
            }
            add(&mut writer, row);
        }
    }
    let end = TraceDescription {
        at_ns: warp.time(reader.trace().end_ns),
        end_ns: warp.time(reader.trace().end_ns),
        ..trace
    };
    writer.finish(end).expect("written");
}

fn rows<T: TableRow>(reader: &TraceReader) -> Vec<T> {
    crate::common::rows(reader)
}

fn add(writer: &mut TraceWriter, row: impl Into<TraceEvent>) {
    writer.add(row).expect("written");
}
