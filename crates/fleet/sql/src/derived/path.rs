//! `fleet.path`: the parts of the critical paths of requests.

use super::columns::{Column, Columns, signed};

pub(super) fn columns() -> Vec<Column> {
    Columns::of(|found| &found.steps)
        .number("request", "The request's id: an answered one without a parent.", |step| {
            step.request
        })
        .number("step", "The part's place on the critical path, from 0.", |step| step.step)
        .text(
            "part",
            "What it was: running, runnable, blocked, network or contradictory.",
            |step| step.part,
        )
        .host("host", "Whose time it was: the host.", |step| step.host)
        .number_or_none("process", "The process' id.", |step| step.process)
        .number("thread", "The thread's id.", |step| step.thread)
        .text("name", "The thread's name.", |step| &step.name)
        .text_or_none("cause", "Of a wait: its cause, as the table wait names it.", |step| {
            step.cause
        })
        .host_or_none("from_host", "Of a message: the sender's host.", |step| step.from_host)
        .number_or_none("from_thread", "Of a message: the sender's thread.", |step| {
            step.from_thread
        })
        .time("start_ns", "When it began, on the clock of the host that has the request.", |step| {
            step.start_ns
        })
        .time("end_ns", "When it ended. The parts of a request sum to its time exactly.", |step| {
            step.end_ns
        })
        .time("time_ns", "From start to end.", |step| step.end_ns.saturating_sub(step.start_ns))
        .time_or_none(
            "error_ns",
            "By how much start and end may be off, as clocks are known to that only; \
             missing: not bounded.",
            |step| step.error_ns.map(signed),
        )
        .finish()
}
