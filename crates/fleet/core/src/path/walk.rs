//! The walk backward from an answer.

use super::{Part, PartKind, Paths};
use crate::fleet::{Event, Placed};
use crate::host::HostId;
use crate::messages::Side;
use crate::rows::{ThreadId, Wait};

/// So many threads that wait for each other, one for the next, are of forged rows.
const MOST_WAITING: usize = 256;

/// The path from the end back to the begin ([`Paths::critical`]).
pub(super) fn back(
    paths: &Paths,
    begin: &Side,
    end: &Side,
    place: impl Fn(Event) -> Option<Placed>,
) -> Vec<Part> {
    let mut walk = Walk {
        paths,
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
