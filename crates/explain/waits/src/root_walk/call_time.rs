//! Time of a call: on its way, in a queue, served, on its way back.

use std::mem;

use super::own_request::{OwnRequest, OwnWindow};
use super::walk_context::WalkContext;
use super::{MAX_DEPTH, RootWalk};
use crate::call_table::{FollowedCall, PlacedMessage};
use crate::graph_ids::{CallIndex, GraphMessageId, MessageIndex};
use crate::graph_rows::GraphMessage;
use crate::time_span::TimeSpan;
use crate::wait_root::{LinkReason, RootKind, UnknownReason};

/// Maximum number of messages of a reader that are looked at for one of another request.
const MAX_SCANNED_MESSAGES: usize = 1_000;

/// A message on its way, seen on the asker's clock.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    /// `None`: the sender has no trace.
    sent: Option<PlacedMessage>,
    received: PlacedMessage,
    /// Time that the sender's clock shows more than the asker's.
    sender_ahead_ns: i64,
    /// Time that the receiver's clock shows more than the asker's.
    receiver_ahead_ns: i64,
}

/// Both messages of a call at its server.
#[derive(Debug, Clone, Copy)]
struct ServedMessages {
    read: PlacedMessage,
    done: PlacedMessage,
}

/// Returns a time of a clock that is `ahead_ns` ahead of the asker's, on the asker's.
fn on_asker_clock(at_ns: u64, ahead_ns: i64) -> u64 {
    at_ns.saturating_add_signed(ahead_ns.saturating_neg())
}

impl RootWalk<'_> {
    /// Adds the roots of a call's time, which is on the asker's clock.
    pub(super) fn add_call(&mut self, call: &FollowedCall, span: TimeSpan, at: WalkContext) {
        if span.is_empty() {
            return;
        }
        let first = call.first_message().filter(|first| !self.calls.contains(first));
        let Some(first) = first.filter(|_| at.depth <= MAX_DEPTH && self.take_step()) else {
            self.add_unknown(span, UnknownReason::TooLong, None, at);
            return;
        };
        self.calls.push(first);
        // A thread that waits for the call may also serve it, unless it is a queue that holds all up.
        let waiting = at.queue.is_none().then(|| mem::take(&mut self.waiting));
        self.add_call_parts(call, span, at);
        if let Some(waiting) = waiting {
            self.waiting = waiting;
        }
        self.calls.pop();
    }

    fn add_call_parts(&mut self, call: &FollowedCall, span: TimeSpan, at: WalkContext) {
        // 1. The server's clock beside the asker's.
        let Some((read, done)) = call.read.zip(call.done) else {
            self.add_outside(span, call.address, at);
            return;
        };
        let asker = call.sent.map_or(read.id.trace, |sent| sent.id.trace);
        let ahead_ns = if asker == read.id.trace {
            Some(0)
        } else {
            self.tables.clocks.ahead_ns(asker, read.id.trace, span.from_ns())
        };
        let Some(ahead_ns) = ahead_ns else {
            self.add_unknown(span, UnknownReason::NoClock, None, at);
            return;
        };
        // 2. From the server's answer back to its arrival at the asker.
        let cut = span.split(on_asker_clock(done.row.at_ns, ahead_ns));
        match call.answer {
            Some(answer) => {
                let delivery = Delivery {
                    sent: Some(done),
                    received: answer,
                    sender_ahead_ns: ahead_ns,
                    receiver_ahead_ns: 0,
                };
                self.deliver(&delivery, cut.after, at);
            }
            None => self.add_unknown(cut.after, UnknownReason::NoRows, None, at),
        }
        // 3. The server's own time.
        let cut = cut.before.split(on_asker_clock(read.row.at_ns, ahead_ns));
        match cut.after.shifted(ahead_ns) {
            Some(span) => {
                let served = ServedMessages { read, done };
                self.serve(call, served, span, at.on_clock_of(read.id.trace));
            }
            None => self.add_unknown(cut.after, UnknownReason::NoClock, None, at),
        }
        // 4. From the asker's send until the server read it.
        let delivery = Delivery {
            sent: call.sent,
            received: read,
            sender_ahead_ns: 0,
            receiver_ahead_ns: ahead_ns,
        };
        self.deliver(&delivery, cut.before, at);
    }

    /// Adds the time of a message on its way, then in the queue of the thread that reads it.
    fn deliver(&mut self, delivery: &Delivery, span: TimeSpan, at: WalkContext) {
        let received = delivery.received.row;
        let reader = delivery.received.graph_thread();
        let sender = delivery.sent.map(|sent| sent.graph_thread());
        let arrived_ns = on_asker_clock(received.moved_ns, delivery.receiver_ahead_ns);
        let cut = span.split(arrived_ns);
        // 1. At the socket.
        if !cut.after.is_empty() {
            let link = self.add_link(sender, None, reader, LinkReason::Delivered, at);
            let at = WalkContext { delivered: Some(delivery.received.id), ..at.deeper(link) };
            let is_queue = self.works_for_others(&delivery.received);
            let at = if is_queue { at.in_queue_of(reader) } else { at };
            match cut.after.shifted(delivery.receiver_ahead_ns) {
                Some(queued) => self.follow(reader, queued, at.on_clock_of(reader.trace), None),
                None => self.add_unknown(cut.after, UnknownReason::NoClock, None, at),
            }
        }
        // 2. On its way.
        let left_ns = delivery
            .sent
            .map_or(arrived_ns, |sent| on_asker_clock(sent.row.moved_ns, delivery.sender_ahead_ns));
        let cut = cut.before.split(left_ns);
        self.add_way(cut.after, RootKind::Network, &delivery.received, sender, at);
        self.add_way(cut.before, RootKind::HeldBack, &delivery.received, sender, at);
    }

    /// Returns whether the reader of a message sent or received something for others after it had arrived. What it
    /// does for the same request counts for none of these: it may read the answers to other calls.
    fn works_for_others(&self, received: &PlacedMessage) -> bool {
        let row = received.row;
        let after_ns = [row.moved_ns.saturating_add(1), row.at_ns];
        self.tables.trace(received.id.trace).is_some_and(|trace| {
            let mut messages = trace.messages_of(row.thread, after_ns).take(MAX_SCANNED_MESSAGES);
            let own = self.request_of(received.id);
            let is_other = |index: MessageIndex, message: &GraphMessage| {
                let of = self.request_of(GraphMessageId { message: index, ..received.id });
                !(message.end == row.end && message.is_received || own.is_some() && of == own)
            };
            messages.any(|(index, message)| is_other(index, message))
        })
    }

    /// Returns the request that the thread of a message works for: the one that it serves, if that is known.
    fn request_of(&self, message: GraphMessageId) -> Option<CallIndex> {
        let role = self.tables.calls.role_of(message)?;
        if role.is_servers { Some(role.call) } else { self.tables.calls.parent_of(role.call) }
    }

    /// Adds the server's time between a request's receive and its answer: back over the calls that it made.
    fn serve(
        &mut self,
        call: &FollowedCall,
        served: ServedMessages,
        span: TimeSpan,
        at: WalkContext,
    ) {
        // 1. The calls made for it, between its receive and its answer.
        let known = call.known.map_or(&[][..], |known| self.tables.calls.made_for(known));
        let calls: Vec<FollowedCall> =
            known.iter().filter_map(|&index| self.tables.call(index)).collect();
        let windows = own_windows(&served, &calls);
        let own = OwnRequest {
            call: call.known,
            windows: &windows,
            from_ns: served.read.row.at_ns,
            until_ns: span.to_ns(),
        };
        // 2. Back over them; the thread that answered comes first.
        let mut thread = served.done.graph_thread();
        let mut rest = span;
        for call in calls.iter().rev() {
            let Some((sent, answer)) = call.sent.zip(call.answer) else {
                continue;
            };
            let is_inside = served.read.row.at_ns <= sent.row.at_ns
                && answer.row.at_ns <= rest.to_ns()
                && sent.row.at_ns < rest.to_ns();
            if !is_inside {
                continue;
            }
            let cut = rest.split(answer.row.at_ns);
            let since_answer = OwnRequest {
                from_ns: own.from_ns.max(answer.row.at_ns),
                until_ns: cut.after.to_ns(),
                ..own
            };
            self.follow(thread, cut.after, at.one_deeper(), Some(&since_answer));
            if cut.before.is_empty() {
                return;
            }
            let cut = cut.before.split(sent.row.at_ns);
            let nested = match call.done {
                Some(done) => {
                    let reason = LinkReason::Answered;
                    at.deeper(self.add_link(Some(thread), None, done.graph_thread(), reason, at))
                }
                None => at.one_deeper(),
            };
            self.add_call(call, cut.after, nested);
            (rest, thread) = (cut.before, sent.graph_thread());
        }
        // 3. Before the first of them.
        let until_first = OwnRequest { until_ns: rest.to_ns(), ..own };
        self.follow(thread, rest, at.one_deeper(), Some(&until_first));
    }
}

/// Returns the times of a request and of its calls on their ends.
fn own_windows(served: &ServedMessages, calls: &[FollowedCall]) -> Vec<OwnWindow> {
    let window = |first: &PlacedMessage, last: &PlacedMessage| OwnWindow {
        end: first.row.end,
        from_ns: first.row.at_ns,
        to_ns: last.row.at_ns,
    };
    let of_calls = calls.iter().filter_map(|call| Some(window(&call.sent?, &call.answer?)));
    [window(&served.read, &served.done)].into_iter().chain(of_calls).collect()
}
