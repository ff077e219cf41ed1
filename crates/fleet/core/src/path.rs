//! What a request's time went into: its critical path, backward from its answer.

use std::collections::HashMap;

use crate::fleet::{Event, Placed};
use crate::host::HostId;
use crate::messages::{MessageEdge, Side};
use crate::rows::{EndId, Message, ThreadId, Wait, Way};

/// So many threads that wait for each other, one for the next, are of forged rows.
const MOST_WAITING: usize = 256;

/// What a part of a path was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The thread was on a processor.
    Running,
    /// The thread could run, and waited for a processor.
    Runnable,
    /// The thread waited, and for whom is not known.
    Blocked,
    /// A message was on its way to the thread.
    Network {
        /// Who sent it.
        from: ThreadId,
        /// By how much the part's two ends may be off, since the clocks of hosts are only known to that; `None`: not
        /// bounded. 0 within a host.
        error_ns: Option<u64>,
    },
    /// Rows contradict each other.
    Contradictory,
}

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Whose time it is.
    pub thread: ThreadId,
    /// Who waited for this thread meanwhile, if another one did.
    pub blocks: Option<ThreadId>,
    /// What it was.
    pub kind: PartKind,
    /// When it began, on the clock of the host that has the request.
    pub begin_ns: u64,
    /// When it ended: when the next one begins.
    pub end_ns: u64,
}

/// What paths are made of: each thread's waits and messages in order.
#[derive(Debug, Default)]
pub struct Paths {
    waits: HashMap<ThreadId, Vec<Wait>>,
    /// When each thread received or sent, and the end if it received.
    calls: HashMap<ThreadId, Vec<(u64, Option<EndId>)>>,
    /// The first send that each reception took bytes of.
    senders: HashMap<(EndId, u64), Side>,
}

impl Paths {
    /// Of all hosts' rows. Waits whose times are not in order are left out.
    #[must_use]
    pub fn new(waits: &[Wait], messages: &[Message], edges: &[MessageEdge]) -> Self {
        let mut paths = Self::default();
        for &wait in waits {
            let is_in = |at_ns: u64| wait.off_ns <= at_ns && at_ns <= wait.on_ns;
            if wait.off_ns < wait.on_ns && wait.woken_ns.is_none_or(is_in) {
                let thread = ThreadId {
                    host: wait.host,
                    thread: wait.thread,
                };
                paths.waits.entry(thread).or_default().push(wait);
            }
        }
        for row in messages {
            let end = (row.way == Way::Received).then(|| row.end());
            paths
                .calls
                .entry(row.thread_id())
                .or_default()
                .push((row.at_ns, end));
        }
        paths
            .waits
            .values_mut()
            .for_each(|waits| waits.sort_unstable());
        paths
            .calls
            .values_mut()
            .for_each(|calls| calls.sort_unstable());
        let mut edges: Vec<&MessageEdge> = edges.iter().collect();
        edges.sort_unstable_by_key(|edge| (edge.to, edge.first_byte));
        for edge in edges {
            let reception = (edge.to, edge.received.at_ns);
            paths.senders.entry(reception).or_insert(edge.sent);
        }
        paths
    }

    /// The path from the end of an exchange back to its begin, the earliest part first. The parts follow each other
    /// without a gap, so that they sum to the time between exactly; empty if there is no time between.
    ///
    /// Running, the path stays with its thread. A wait is the time of whoever ended it: of the thread that woke it, or
    /// of the one that sent what it then read, as long as it lasted; before that the path is back with the thread. Where
    /// that one waited itself meanwhile, it is the time of another one, and so on.
    ///
    /// `place` says when something that happened on another host was on the clock of this one
    /// ([`Fleet::global_ns`](crate::Fleet::global_ns) with this host as the reference); where it does not know, the path
    /// stays here.
    #[must_use]
    pub fn critical(
        &self,
        begin: &Side,
        end: &Side,
        place: impl Fn(Event) -> Option<Placed>,
    ) -> Vec<Part> {
        let mut walk = Walk {
            paths: self,
            place,
            home: end.host,
            frames: vec![Frame {
                thread: ThreadId {
                    host: end.host,
                    thread: end.thread,
                },
                at_ns: end.at_ns,
                blocks: None,
                until_ns: begin.at_ns,
            }],
            reached_ns: end.at_ns,
            parts: Vec::new(),
        };
        while let Some(mut frame) = walk.frames.pop() {
            if walk.reached_ns <= frame.until_ns {
                continue;
            }
            let waited_for = walk.step(&mut frame);
            walk.frames.push(frame);
            walk.frames.extend(waited_for);
        }
        walk.parts.reverse();
        walk.parts
    }

    /// The wait around a time.
    pub(crate) fn wait_at(&self, thread: ThreadId, at_ns: u64) -> Option<&Wait> {
        self.last_wait(thread, at_ns.checked_add(1)?)
            .filter(|wait| at_ns < wait.on_ns)
    }

    /// Whether the thread has a row.
    pub(crate) fn knows(&self, thread: ThreadId) -> bool {
        self.waits.contains_key(&thread) || self.calls.contains_key(&thread)
    }

    /// Whether the thread has done something after a time.
    pub(crate) fn acts_after(&self, thread: ThreadId, at_ns: u64) -> bool {
        let waits = self.waits.get(&thread).and_then(|waits| waits.last());
        let calls = self.calls.get(&thread).and_then(|calls| calls.last());
        waits.is_some_and(|wait| wait.on_ns > at_ns) || calls.is_some_and(|call| call.0 > at_ns)
    }

    /// The last wait that began before a time.
    fn last_wait(&self, thread: ThreadId, at_ns: u64) -> Option<&Wait> {
        let waits = self.waits.get(&thread)?;
        let next = waits.partition_point(|wait| wait.off_ns < at_ns);
        waits.get(next.checked_sub(1)?)
    }

    /// Who sent what the thread read first after a wait. `Err` if it read something, but who sent it is not known.
    pub(crate) fn sender(&self, thread: ThreadId, wait: &Wait) -> Result<Option<Side>, ()> {
        let calls = self.calls.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = calls.partition_point(|(at_ns, _)| *at_ns < wait.on_ns);
        let until_ns = self.waits.get(&thread).and_then(|waits| {
            let next = waits.partition_point(|other| other.off_ns < wait.on_ns);
            Some(waits.get(next)?.off_ns)
        });
        match calls.get(first) {
            Some(&(at_ns, Some(end))) if until_ns.is_none_or(|until_ns| at_ns <= until_ns) => {
                self.senders.get(&(end, at_ns)).copied().map(Some).ok_or(())
            }
            _ => Ok(None),
        }
    }
}

/// A thread whose time is looked at, and how far back.
#[derive(Debug, Clone, Copy)]
struct Frame {
    thread: ThreadId,
    /// Where it is, on the clock of the thread's host.
    at_ns: u64,
    /// Who waits for it meanwhile.
    blocks: Option<ThreadId>,
    /// On the home's clock: since when that one waits.
    until_ns: u64,
}

/// A walk backward.
struct Walk<'p, P> {
    paths: &'p Paths,
    place: P,
    home: HostId,
    /// Each waits for the next one.
    frames: Vec<Frame>,
    /// How far the parts go back, on the home's clock.
    reached_ns: u64,
    parts: Vec<Part>,
}

impl<P: Fn(Event) -> Option<Placed>> Walk<'_, P> {
    /// Goes back over what a thread did since its last wait, and over the wait. Returns whose time that is, if known.
    fn step(&mut self, frame: &mut Frame) -> Option<Frame> {
        let Some(&wait) = self.paths.last_wait(frame.thread, frame.at_ns) else {
            // It ran since then, as far as is known.
            self.add(frame, frame.until_ns, PartKind::Running);
            return None;
        };
        if wait.on_ns <= frame.at_ns {
            self.to(frame, wait.on_ns, PartKind::Running);
        }
        let Some(woken_ns) = wait.woken_ns else {
            self.to(frame, wait.off_ns, PartKind::Runnable);
            return None;
        };
        if frame.at_ns < woken_ns {
            // It did something while it waited.
            self.to(frame, wait.off_ns, PartKind::Contradictory);
            return None;
        }
        self.to(frame, woken_ns, PartKind::Runnable);
        let waited_for = match self.paths.sender(frame.thread, &wait) {
            Ok(Some(sent)) => self.sender(frame, &wait, sent),
            Ok(None) => wait.waker.map(|thread| {
                let host = frame.thread.host;
                (ThreadId { host, thread }, woken_ns)
            }),
            Err(()) => None,
        };
        let until_ns = self
            .at_home(frame.thread.host, wait.off_ns)
            .map_or(frame.until_ns, |(home_ns, _)| home_ns);
        let until_ns = until_ns.max(frame.until_ns);
        // Nobody who waits for this thread can have ended its wait.
        let is_waiting = |thread| {
            thread == frame.thread || self.frames.iter().any(|other| other.thread == thread)
        };
        let waited_for = waited_for
            .filter(|&(thread, _)| self.frames.len() < MOST_WAITING && !is_waiting(thread));
        frame.at_ns = wait.off_ns;
        match waited_for {
            Some((thread, at_ns)) => Some(Frame {
                thread,
                at_ns,
                blocks: Some(frame.thread),
                until_ns,
            }),
            None => {
                self.add(frame, until_ns, PartKind::Blocked);
                None
            }
        }
    }

    /// Goes back over a message's way, from when it woke the thread. Returns who sent it, and when on that host.
    fn sender(&mut self, frame: &Frame, wait: &Wait, sent: Side) -> Option<(ThreadId, u64)> {
        let from = ThreadId {
            host: sent.host,
            thread: sent.thread,
        };
        let (sent_ns, sent_error_ns) = self.at_home(sent.host, sent.at_ns)?;
        let (off_ns, _) = self.at_home(frame.thread.host, wait.off_ns)?;
        let (_, own_error_ns) = self.at_home(frame.thread.host, frame.at_ns)?;
        let error_ns = if sent.host == frame.thread.host {
            Some(0)
        } else {
            sent_error_ns
                .zip(own_error_ns)
                .map(|(a, b)| a.saturating_add(b))
        };
        self.add(
            frame,
            sent_ns.max(off_ns),
            PartKind::Network { from, error_ns },
        );
        Some((from, sent.at_ns))
    }

    /// A time of a host on the home's clock, and by how much it may be off.
    fn at_home(&self, host: HostId, at_ns: u64) -> Option<(u64, Option<u64>)> {
        if host == self.home {
            return Some((at_ns, Some(0)));
        }
        let placed = (self.place)(Event {
            host,
            at_ns: i64::try_from(at_ns).ok()?,
        })?;
        let error_ns = placed.bounds.half_width_ns().map(|half| half.ceil() as u64);
        Some((u64::try_from(placed.at_ns?).ok()?, error_ns))
    }

    /// Goes back to a time of the thread's host; where its clock is not known, as far as the thread is looked at.
    fn to(&mut self, frame: &mut Frame, at_ns: u64, kind: PartKind) {
        frame.at_ns = at_ns;
        let home_ns = self
            .at_home(frame.thread.host, at_ns)
            .map_or(frame.until_ns, |(home_ns, _)| home_ns);
        self.add(frame, home_ns, kind);
    }

    /// Adds a part back to a time of the home's clock. Clocks that are a little off do not turn time around.
    fn add(&mut self, frame: &Frame, home_ns: u64, kind: PartKind) {
        let begin_ns = home_ns.max(frame.until_ns).min(self.reached_ns);
        if begin_ns < self.reached_ns {
            self.parts.push(Part {
                thread: frame.thread,
                blocks: frame.blocks,
                kind,
                begin_ns,
                end_ns: self.reached_ns,
            });
        }
        self.reached_ns = begin_ns;
    }
}
