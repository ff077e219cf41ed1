//! The row of a trace that describes its host and its clocks.

use luc_events::store::SCHEMA_VERSION;
use luc_events::tables::TraceDescription;
use luc_host::kernel_clocks::{ClockId, now_ns, read_ns};

/// Describes a recording that begins now.
pub(crate) fn describe(command: String, filters: String, mode: &str) -> TraceDescription {
    let name = rustix::system::uname();
    let start_ns = now_ns();
    TraceDescription {
        at_ns: start_ns,
        schema_version: SCHEMA_VERSION,
        host: name.nodename().to_string_lossy().into_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        processors: processors_online(),
        boottime_offset_ns: read_ns(ClockId::Boottime).saturating_sub(now_ns()),
        realtime_offset_ns: read_ns(ClockId::Realtime).saturating_sub(now_ns()),
        command,
        filters,
        mode: mode.to_owned(),
        start_ns,
        end_ns: 0,
    }
}

/// Describes the same recording as if it began now.
pub(crate) fn anew(trace: &TraceDescription) -> TraceDescription {
    describe(trace.command.clone(), trace.filters.clone(), &trace.mode)
}

fn processors_online() -> u32 {
    // SAFETY: no pointers are involved.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(0)
}
