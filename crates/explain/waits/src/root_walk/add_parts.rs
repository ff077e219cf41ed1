//! Parts and links that a walk adds. Empty parts are left out.

use luc_events::WaitCause;

use super::RootWalk;
use super::own_request::{MessageOwner, OwnRequest, message_id};
use super::walk_context::WalkContext;
use crate::call_table::PlacedMessage;
use crate::graph_ids::GraphThread;
use crate::graph_rows::GraphWait;
use crate::own_root::kept_from_running;
use crate::time_span::TimeSpan;
use crate::trace_graph::TraceGraph;
use crate::wait_labels::LabelIndex;
use crate::wait_root::{
    LinkIndex, LinkReason, RootKind, RootPart, UnknownReason, WaitLink, WaitRoot,
};

impl RootWalk<'_> {
    /// Adds time in which a thread ran. Some of it may be in fsync or a similar call.
    pub(super) fn add_run(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        span: TimeSpan,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) {
        let mut rest = span;
        while !rest.is_empty() && self.take_step() {
            let Some(call) = trace.sync_before(thread.thread, rest.to_ns()) else {
                break;
            };
            let cut = rest.split(call.to_ns());
            self.add_computing(trace, thread, cut.after, at, own);
            let cut = cut.before.split(call.from_ns());
            self.add_part(cut.after, RootKind::Fsync, thread, at);
            rest = cut.before;
        }
        self.add_computing(trace, thread, rest, at, own);
    }

    /// Adds time in which a thread computed. A stretch that ends with a message of another request was for that one.
    fn add_computing(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        span: TimeSpan,
        at: WalkContext,
        own: Option<&OwnRequest<'_>>,
    ) {
        if span.is_empty() {
            return;
        }
        let mut rest = span;
        let mut is_own = true;
        let of_part = |is_own| if is_own { at } else { at.in_queue_of(thread) };
        if let Some(own) = own.filter(|_| at.queue.is_none()) {
            let inside = [span.from_ns().saturating_add(1), span.to_ns().saturating_sub(1)];
            for (index, message) in trace.messages_of(thread.thread, inside).rev() {
                if !self.take_step() {
                    break;
                }
                let cut = rest.split(message.at_ns);
                self.add_part(cut.after, RootKind::Computes, thread, of_part(is_own));
                let owner = own.owner_of(self.tables, message_id(thread, index), message);
                is_own = owner != MessageOwner::Other;
                rest = cut.before;
            }
        }
        self.add_part(rest, RootKind::Computes, thread, of_part(is_own));
    }

    /// Adds time in which a thread could run: it is that of the threads that had the processor.
    pub(super) fn add_ready(
        &mut self,
        trace: &TraceGraph,
        thread: GraphThread,
        span: TimeSpan,
        at: WalkContext,
        wait: &GraphWait,
    ) {
        if let Some(kind) = kept_from_running(wait.cause) {
            self.add_wait(span, kind, thread, at, wait);
            return;
        }
        for piece in trace.runs_on(wait.processor, span).into_iter().rev() {
            match piece.thread.filter(|&runner| runner != thread.thread) {
                Some(runner) => {
                    let runner = GraphThread { thread: runner, ..thread };
                    let root = self.tables.root_at(RootKind::Processor, runner);
                    let part = self.new_part(root, piece.span, Some(runner), at);
                    self.push(RootPart { other: Some(thread), ..part });
                }
                None => self.add_part(piece.span, RootKind::NoProcessor, thread, at),
            }
        }
    }

    /// Adds time in which a thread waited.
    pub(super) fn add_wait(
        &mut self,
        span: TimeSpan,
        kind: RootKind,
        thread: GraphThread,
        at: WalkContext,
        wait: &GraphWait,
    ) {
        let root = self.tables.root_at(kind, thread);
        let part = self.new_part(root, span, Some(thread), at);
        let other = wait.waker.map(|waker| GraphThread { thread: waker, ..thread });
        self.push(RootPart { cause: Some(wait.cause), other, ..part });
    }

    /// Adds time in which a thread waited for a message that answers nothing.
    pub(super) fn add_input(
        &mut self,
        span: TimeSpan,
        sender: GraphThread,
        waiter: GraphThread,
        at: WalkContext,
    ) {
        let root = self.tables.root_at(RootKind::Input, sender);
        let part = self.new_part(root, span, Some(sender), at);
        self.push(RootPart { other: Some(waiter), ..part });
    }

    /// Adds time in which a message was on its way.
    pub(super) fn add_way(
        &mut self,
        span: TimeSpan,
        kind: RootKind,
        received: &PlacedMessage,
        sender: Option<GraphThread>,
        at: WalkContext,
    ) {
        let reader = received.graph_thread();
        let root = self.tables.root_at(kind, reader);
        let part = self.new_part(root, span, Some(reader), at);
        self.push(RootPart { other: sender, end: Some(received.row.end), ..part });
    }

    /// Adds time of unknown root, with the reason why it is unknown.
    pub(super) fn add_unknown(
        &mut self,
        span: TimeSpan,
        reason: UnknownReason,
        thread: Option<GraphThread>,
        at: WalkContext,
    ) {
        let kind = RootKind::Unknown(reason);
        let nowhere = WaitRoot { kind, service: None, name: None };
        let root = thread.map_or(nowhere, |thread| self.tables.root_at(kind, thread));
        let part = self.new_part(root, span, thread, at);
        self.push(part);
    }

    /// Adds time of a server that no trace has.
    pub(super) fn add_outside(
        &mut self,
        span: TimeSpan,
        address: Option<LabelIndex>,
        at: WalkContext,
    ) {
        let root = WaitRoot { kind: RootKind::Outside, service: address, name: None };
        let part = self.new_part(root, span, None, at);
        self.push(part);
    }

    /// Adds time of a thread.
    pub(super) fn add_part(
        &mut self,
        span: TimeSpan,
        kind: RootKind,
        thread: GraphThread,
        at: WalkContext,
    ) {
        let part = self.new_part(self.tables.root_at(kind, thread), span, Some(thread), at);
        self.push(part);
    }

    /// Makes a part. While a request lies in a queue, the work for others is theirs: what threads compute, and what the
    /// queue's thread sleeps. But another service that has the processor keeps all from their work.
    fn new_part(
        &self,
        root: WaitRoot,
        span: TimeSpan,
        thread: Option<GraphThread>,
        at: WalkContext,
    ) -> RootPart {
        let owner = at.queue.map(|owner| self.tables.root_at(RootKind::BusyWithOthers, owner));
        let busy = owner.filter(|owner| match root.kind {
            RootKind::Computes => true,
            RootKind::Processor => root.service == owner.service,
            RootKind::Timer => !at.is_behind_lock,
            _ => false,
        });
        RootPart {
            root: busy.unwrap_or(root),
            span,
            clock: at.clock,
            thread,
            cause: None,
            other: None,
            end: None,
            queue: busy.and(at.queue),
            busy: busy.map(|_| root),
            link: at.link,
        }
    }

    fn push(&mut self, part: RootPart) {
        if !part.span.is_empty() {
            self.found.parts.push(part);
        }
    }

    /// Adds a link from a thread that waited to the one that it waited for.
    pub(super) fn add_link(
        &mut self,
        waiter: Option<GraphThread>,
        cause: Option<WaitCause>,
        other: GraphThread,
        reason: LinkReason,
        at: WalkContext,
    ) -> LinkIndex {
        // There are no more links than steps.
        let index = LinkIndex(self.found.links.len() as u32);
        self.found.links.push(WaitLink { waiter, cause, other, reason, above: at.link });
        index
    }
}
