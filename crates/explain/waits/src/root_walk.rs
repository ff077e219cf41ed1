//! Walk backward over a thread's time, from a wait to who ended it.

mod add_parts;
mod call_time;
mod own_request;
mod walk_context;

use luc_events::WaitCause;

use crate::call_table::{FollowedCall, PlacedMessage};
use crate::graph_ids::{GraphMessageId, GraphThread, TraceIndex};
use crate::graph_rows::{GraphWait, WaitEnd};
use crate::graph_tables::GraphTables;
use crate::own_root::own_root;
use crate::time_span::TimeSpan;
use crate::trace_graph::TraceGraph;
use crate::wait_ender::{WaitEnder, find_wait_ender, may_have_timer};
use crate::wait_root::{FoundRoots, LinkIndex, LinkReason, RootKind, UnknownReason};
use own_request::OwnRequest;
use walk_context::WalkContext;

/// Maximum number of threads and calls that wait, each for the next. A service takes about four. Longer chains are of
/// forged rows.
const MAX_DEPTH: u32 = 64;
/// Maximum number of steps for a wait of the thread that was asked about, or for a call. More are of forged rows.
const MAX_STEPS: u32 = 1_000_000;

/// A walk for one question.
#[derive(Debug)]
pub(crate) struct RootWalk<'g> {
    tables: &'g GraphTables<'g>,
    steps: u32,
    /// Threads that wait, each for the next.
    waiting: Vec<GraphThread>,
    /// Calls that are waited for, each for the next, by their first messages.
    calls: Vec<GraphMessageId>,
    /// Parts in the order of the walk, which is from the latest to the earliest.
    found: FoundRoots,
}

/// Next step of the walk over a span.
#[derive(Debug, Clone, Copy)]
enum NextStep {
    /// All of the span has its roots.
    Done,
    /// The rest is the time of a thread.
    Follow { thread: GraphThread, rest: TimeSpan, link: Option<LinkIndex> },
}

/// A wait, and where it lies in the span of a walk.
#[derive(Debug, Clone, Copy)]
struct CrossedWait {
    row: GraphWait,
    /// Part of the span before the wait.
    before: TimeSpan,
    /// Part of the span in which the thread waited.
    blocked: TimeSpan,
}

impl CrossedWait {
    /// Returns the span up to the end of the wait.
    fn whole(&self) -> TimeSpan {
        TimeSpan::new(self.before.from_ns(), self.blocked.to_ns())
    }
}

impl<'g> RootWalk<'g> {
    pub(crate) fn new(tables: &'g GraphTables<'g>) -> Self {
        Self {
            tables,
            steps: 0,
            waiting: Vec::new(),
            calls: Vec::new(),
            found: FoundRoots::default(),
        }
    }

    /// Returns the roots of a thread's time.
    pub(crate) fn of_thread(mut self, thread: GraphThread, span: TimeSpan) -> FoundRoots {
        self.follow(thread, span, WalkContext::new(thread.trace), None);
        self.finish()
    }

    /// Returns the roots of a call's time, which is on the asker's clock.
    pub(crate) fn of_call(mut self, call: &FollowedCall, span: TimeSpan) -> FoundRoots {
        let asker = call.sent.or(call.read).map_or(TraceIndex(0), |message| message.id.trace);
        self.add_call(call, span, WalkContext::new(asker));
        self.finish()
    }

    fn finish(mut self) -> FoundRoots {
        self.found.parts.reverse();
        self.found
    }

    /// Adds the roots of a thread's time. `own` is the request that the thread works for, if that is known. Of a thread
    /// that another one waited for, rows that are not kept may be missing.
    fn follow(
        &mut self,
        thread: GraphThread,
        span: TimeSpan,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) {
        let trace = self.tables.trace(thread.trace);
        let facts = trace.and_then(|trace| trace.facts(thread.thread));
        let cut = span.split(facts.and_then(|facts| facts.ended_ns).unwrap_or(u64::MAX));
        self.add_unknown(cut.after, UnknownReason::Ended, Some(thread), at);
        let trace = trace.filter(|_| at.depth > 0);
        let cut = cut.before.split(trace.map_or(0, |trace| trace.known_since_ns));
        self.follow_known(thread, cut.after, at, own);
        self.add_unknown(cut.before, UnknownReason::Forgotten, Some(thread), at);
    }

    fn follow_known(
        &mut self,
        thread: GraphThread,
        span: TimeSpan,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) {
        let (mut thread, mut rest, mut at) = (thread, span, at);
        // Threads that the request was handed back over without any time between.
        let mut handed: Vec<GraphThread> = Vec::new();
        while !rest.is_empty() {
            if at.depth == 0 {
                self.steps = 0;
            }
            if at.depth > MAX_DEPTH || !self.take_step() {
                self.add_unknown(rest, UnknownReason::TooLong, Some(thread), at);
                return;
            }
            let Some(trace) = self.tables.trace(thread.trace) else {
                self.add_unknown(rest, UnknownReason::NoRows, Some(thread), at);
                return;
            };
            match self.step_back(trace, thread, rest, at, own) {
                NextStep::Done => return,
                NextStep::Follow { thread: next, rest: left, link } => {
                    if left == rest {
                        handed.push(thread);
                    } else {
                        handed.clear();
                    }
                    if handed.contains(&next) {
                        self.add_unknown(left, UnknownReason::Circle, Some(next), at);
                        return;
                    }
                    (thread, rest, at) = (next, left, WalkContext { link, ..at });
                }
            }
        }
    }

    /// Goes back over the time since a thread's last wait, and over that wait.
    fn step_back(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        rest: TimeSpan,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) -> NextStep {
        let wait = trace.waits.last_before(thread.thread, rest.to_ns());
        // 1. Before a thread began, the thread that made it counts.
        if let Some(born_ns) = trace.born_within(thread.thread, rest)
            && wait.is_none_or(|wait| wait.on_ns <= born_ns)
        {
            return self.go_back_to_birth(trace, thread, rest, born_ns, at, own);
        }
        // 2. The thread ran since its last wait.
        let Some(row) = wait.filter(|wait| wait.on_ns > rest.from_ns()) else {
            if trace.is_recorded(thread.thread) {
                self.add_run(trace, thread, rest, at, own);
            } else {
                self.add_unknown(rest, UnknownReason::NoRows, Some(thread), at);
            }
            return NextStep::Done;
        };
        let cut = rest.split(row.on_ns);
        self.add_run(trace, thread, cut.after, at, own);
        // 3. It could run before, from its wake-up on.
        let cut = cut.before.split(row.woken_ns.unwrap_or(row.off_ns));
        self.add_ready(trace, thread, cut.after, at, &row);
        // 4. It waited before.
        let cut = cut.before.split(row.off_ns);
        let stay = NextStep::Follow { thread, rest: cut.before, link: at.link };
        if cut.after.is_empty() {
            return stay;
        }
        if let Some(kind) = own_root(row.cause, trace.is_in_sync(thread.thread, row.off_ns)) {
            self.add_wait(cut.after, kind, thread, at, &row);
            return stay;
        }
        let wait = CrossedWait { row, before: cut.before, blocked: cut.after };
        self.cross_wait(trace, thread, &wait, at, own)
    }

    fn go_back_to_birth(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        rest: TimeSpan,
        born_ns: u64,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) -> NextStep {
        let cut = rest.split(born_ns);
        self.add_run(trace, thread, cut.after, at, own);
        let creator = trace.facts(thread.thread).and_then(|facts| facts.creator);
        let Some(creator) = creator.filter(|&creator| creator != thread.thread) else {
            self.add_unknown(cut.before, UnknownReason::NotBorn, Some(thread), at);
            return NextStep::Done;
        };
        let creator = GraphThread { thread: creator, ..thread };
        let link = self.add_link(Some(thread), None, creator, LinkReason::Made, at);
        NextStep::Follow { thread: creator, rest: cut.before, link: Some(link) }
    }

    /// Goes back over a wait that somebody ended.
    fn cross_wait(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        wait: &CrossedWait,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) -> NextStep {
        let shared = own.filter(|own| own.is_beside_others(self.tables, trace, thread));
        let is_shared = shared.is_some();
        let stay = NextStep::Follow { thread, rest: wait.before, link: at.link };
        let cause = Some(wait.row.cause);
        let waker = match find_wait_ender(&self.tables.traces, thread, &wait.row) {
            WaitEnder::Message(message) => {
                return self.cross_message_wait(thread, wait, &message, at, shared);
            }
            WaitEnder::Timer if is_shared && may_have_timer(wait.row.cause) => {
                // The loop served others until the request's own time had come.
                self.add_wait(wait.whole(), RootKind::Timer, thread, at, &wait.row);
                return NextStep::Done;
            }
            WaitEnder::Timer => {
                self.add_wait(wait.blocked, RootKind::Timer, thread, at, &wait.row);
                return stay;
            }
            WaitEnder::Unknown(reason) => {
                self.add_wait(wait.blocked, RootKind::Unknown(reason), thread, at, &wait.row);
                return stay;
            }
            WaitEnder::Thread(waker) => GraphThread { thread: waker, ..thread },
        };
        if self.waiting.contains(&waker) {
            self.add_unknown(wait.blocked, UnknownReason::Circle, Some(thread), at);
            return stay;
        }
        let is_inside = self.tables.is_same_process(waker, thread);
        if is_shared && is_inside {
            let link = self.add_link(Some(thread), cause, waker, LinkReason::HandedOver, at);
            return NextStep::Follow { thread: waker, rest: wait.whole(), link: Some(link) };
        }
        let reason = match wait.row.end {
            WaitEnd::Unfinished => LinkReason::Holds,
            _ => LinkReason::Woke,
        };
        let link = self.add_link(Some(thread), cause, waker, reason, at);
        let at = at.deeper(link).behind_lock();
        let own = own.filter(|_| is_inside);
        // A worker of a pool may have worked for others before it took this request up.
        let busy_until_ns =
            own.and_then(|own| own.busy_until(self.tables, trace, waker, wait.blocked));
        let cut = wait.blocked.split(busy_until_ns.unwrap_or(wait.blocked.from_ns()));
        self.waiting.push(thread);
        self.follow(waker, cut.after, at, own);
        self.follow(waker, cut.before, at.in_queue_of(waker), None);
        self.waiting.pop();
        stay
    }

    /// Goes back over a wait that a message ended: over the call that it answers, if it answers one. `shared` is the
    /// request that the thread works for beside others.
    fn cross_message_wait(
        &mut self,
        thread: GraphThread,
        wait: &CrossedWait,
        message: &PlacedMessage,
        at: WalkContext,
        shared: Option<&OwnRequest<'_>>,
    ) -> NextStep {
        let is_shared = shared.is_some();
        let stay = NextStep::Follow { thread, rest: wait.before, link: at.link };
        // 1. The message that is being delivered was at the socket, and the thread had not been woken yet.
        if at.delivered == Some(message.id) {
            self.add_wait(wait.blocked, RootKind::Network, thread, at, &wait.row);
            return stay;
        }
        // 2. A message that answers nothing.
        let call = self.tables.calls.answered_by(message, &self.tables.traces);
        let call = call.filter(|call| !self.is_followed(call));
        let asked = call.and_then(|call| Some((call, call.sent?)));
        let asked = asked.filter(|(_, sent)| sent.row.at_ns < wait.blocked.to_ns());
        // 3. A call of another request: a thread that waits for one socket alone is busy with it. One that waits for
        // many would have gone on with this request.
        let is_others =
            asked.is_some_and(|(call, _)| shared.is_some_and(|own| !own.may_have_made(&call)));
        let is_busy = is_others && wait.row.cause == WaitCause::PipeSocket;
        let at_call = if is_busy { at.in_queue_of(thread) } else { at };
        let Some((call, sent)) = asked.filter(|_| is_busy || !is_others) else {
            if is_shared {
                self.add_unknown(wait.whole(), UnknownReason::EventLoop, Some(thread), at);
                return NextStep::Done;
            }
            let sender = self.tables.other_thread(message).unwrap_or(thread);
            self.add_input(wait.blocked, sender, thread, at);
            return stay;
        };
        // 4. The call's time.
        let link = call.done.map(|done| {
            let (server, cause) = (done.graph_thread(), Some(wait.row.cause));
            self.add_link(Some(thread), cause, server, LinkReason::Answered, at)
        });
        let nested = WalkContext { link: link.or(at.link), ..at_call.one_deeper() };
        let asked_ns = sent.row.at_ns.max(wait.before.from_ns());
        if is_busy || (!is_shared && asked_ns < wait.blocked.from_ns()) {
            // It did something else before it waited.
            self.add_call(&call, wait.blocked, nested);
            return stay;
        }
        let cut = wait.whole().split(asked_ns);
        self.add_call(&call, cut.after, nested);
        let asker = sent.graph_thread();
        let is_asker = self.tables.is_same_process(asker, thread) && !self.waiting.contains(&asker);
        let next = if is_asker { asker } else { thread };
        NextStep::Follow { thread: next, rest: cut.before, link: at.link }
    }

    /// Returns whether the walk may take one more step.
    fn take_step(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        self.steps <= MAX_STEPS
    }

    /// Returns whether a call is waited for already.
    fn is_followed(&self, call: &FollowedCall) -> bool {
        call.first_message().is_none_or(|message| self.calls.contains(&message))
    }
}
