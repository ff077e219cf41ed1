//! Search for the one that ended a wait.

use luc_events::WaitCause;

use crate::call_table::{PlacedMessage, placed};
use crate::graph_ids::{GraphMessageId, GraphThread, MessageIndex, TraceThread};
use crate::graph_rows::{GraphMessage, GraphWait, WaitEnd};
use crate::trace_graph::TraceGraph;
use crate::wait_root::UnknownReason;

/// Maximum error of a wake-up's time. On sockets the recorder takes it from the scheduler's counts. These are some
/// microseconds later than the packet's own time.
const WAKE_TIME_ERROR_NS: u64 = 20_000;
/// Maximum time from a message's arrival at a socket until a thread that polls for its process is woken. A loaded
/// kernel processes packets late; with up to 0.5 ms of delay all results were the same, with 2 ms some were not.
const POLL_WAKE_LAG_NS: u64 = 300_000;
/// Maximum number of messages that a thread reads after a wait, up to the one that may have ended it. A thread that
/// reads more has worked on others before.
const MAX_TURN_MESSAGES: usize = 64;

/// End of a wait: a message, a thread, a timer, or a reason why it is unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitEnder {
    /// A message that the thread, or another one of its process, then received.
    Message(PlacedMessage),
    Thread(TraceThread),
    Timer,
    Unknown(UnknownReason),
}

/// Finds who or what ended a wait of a thread: a message before a waker, as an interrupt has the name of the thread
/// that it met.
pub(crate) fn find_wait_ender(
    traces: &[TraceGraph],
    thread: GraphThread,
    wait: &GraphWait,
) -> WaitEnder {
    let Some(trace) = traces.get(thread.trace.0 as usize) else {
        return WaitEnder::Unknown(UnknownReason::NoRows);
    };
    // 1. A timer, where the recorder says so.
    if wait.end == WaitEnd::Timer {
        return WaitEnder::Timer;
    }
    // 2. A message.
    if wait.end != WaitEnd::Unfinished {
        let message = own_message(trace, thread.thread, wait)
            .or_else(|| message_of_process(trace, thread.thread, wait));
        let id = message.map(|message| GraphMessageId { trace: thread.trace, message });
        if let Some(message) = id.and_then(|id| placed(id, traces)) {
            return WaitEnder::Message(message);
        }
    }
    // 3. A thread, or an interrupt that has a thread's name.
    let waker = wait.waker.filter(|&waker| {
        waker != thread.thread && !is_of_interrupt(trace, thread.thread, waker, wait)
    });
    match (wait.end, waker) {
        (WaitEnd::Interrupt, _) => WaitEnder::Unknown(UnknownReason::Interrupt),
        (_, Some(waker)) => WaitEnder::Thread(waker),
        (WaitEnd::Unfinished, None) => WaitEnder::Unknown(UnknownReason::Unfinished),
        // Where the recorder does not tell, a wake-up by nobody is a timer's: messages have been asked for before.
        (WaitEnd::NotKnown, None) if may_have_timer(wait.cause) => WaitEnder::Timer,
        _ => WaitEnder::Unknown(UnknownReason::NoWaker),
    }
}

/// Returns whether a waker is the thread that an interrupt met. Processes of one service share futexes, those of others
/// do not: a futex that one of them seems to wake was given up at its time.
fn is_of_interrupt(
    trace: &TraceGraph,
    thread: TraceThread,
    waker: TraceThread,
    wait: &GraphWait,
) -> bool {
    wait.end == WaitEnd::NotKnown
        && wait.cause == WaitCause::Futex
        && trace.is_recorded(waker)
        && !trace.is_same_service(waker, thread)
}

/// Returns whether a thread that waits for a cause may have set itself a time.
pub(crate) fn may_have_timer(cause: WaitCause) -> bool {
    matches!(cause, WaitCause::Sleep | WaitCause::Poll | WaitCause::Futex | WaitCause::AsyncIo)
}

/// Returns whether a message may end a wait with a cause.
fn may_have_message(cause: WaitCause) -> bool {
    matches!(cause, WaitCause::Poll | WaitCause::PipeSocket | WaitCause::AsyncIo | WaitCause::Other)
}

/// Finds the message that a thread read next, if it came in the wait. The thread read it before it waited for a message
/// again. Between, it may wait for other things: a thread of Python that was woken by a message waits for the
/// interpreter's lock first.
///
/// Without a packet, a message may have come long after its send: TCP holds a small second write back until the first
/// one is acknowledged. It came in the wait if the thread reads it first and no thread of its own process woke it.
fn own_message(trace: &TraceGraph, thread: TraceThread, wait: &GraphWait) -> Option<MessageIndex> {
    if !may_have_message(wait.cause) {
        return None;
    }
    let next_ns = trace.waits.next_off_ns(thread, wait.off_ns, may_have_message);
    let turn = trace.messages_of(thread, [wait.on_ns, next_ns.unwrap_or(u64::MAX)]);
    let mut received = turn.take(MAX_TURN_MESSAGES).filter(|(_, message)| message.is_received);
    let first = received.next()?;
    let is_held_back = !first.1.has_packet
        && first.1.moved_ns < wait.off_ns
        && !is_woken_inside(trace, thread, wait);
    if is_held_back || is_in_wait(first.1, wait) {
        return Some(first.0);
    }
    received.find(|(_, message)| is_in_wait(message, wait)).map(|(index, _)| index)
}

/// Finds a message that came for the thread's process just before it was woken. Another thread may read it: runtimes
/// such as Go's and Java's have threads that only poll.
fn message_of_process(
    trace: &TraceGraph,
    thread: TraceThread,
    wait: &GraphWait,
) -> Option<MessageIndex> {
    let polls = matches!(wait.cause, WaitCause::Poll | WaitCause::PipeSocket | WaitCause::AsyncIo);
    if !polls || is_woken_inside(trace, thread, wait) {
        return None;
    }
    let by_ns = woken_ns(wait).saturating_add(WAKE_TIME_ERROR_NS);
    let last = trace.last_arrival(thread, by_ns)?;
    let message = trace.message(last)?;
    let is_near = message.moved_ns.saturating_add(POLL_WAKE_LAG_NS) >= woken_ns(wait);
    (is_near && is_in_wait(message, wait)).then_some(last)
}

/// Returns whether a thread of the waiter's own process woke it.
fn is_woken_inside(trace: &TraceGraph, thread: TraceThread, wait: &GraphWait) -> bool {
    wait.waker.is_some_and(|waker| trace.is_same_process(waker, thread))
}

/// Returns whether a message arrived during a wait: one that was there before does not let a thread sleep.
fn is_in_wait(message: &GraphMessage, wait: &GraphWait) -> bool {
    let from_ns = wait.off_ns.saturating_sub(WAKE_TIME_ERROR_NS);
    let to_ns = woken_ns(wait).saturating_add(WAKE_TIME_ERROR_NS);
    from_ns <= message.moved_ns && message.moved_ns <= to_ns
}

fn woken_ns(wait: &GraphWait) -> u64 {
    wait.woken_ns.unwrap_or(wait.on_ns)
}
