//! The walk backward from an answer.

use luc_fleet_clocks::{Event, HostId, Placed};

use super::{EndedBy, Link, Part, PartKind, Path, Paths};
use crate::messages::Side;
use crate::rows::{EndId, ThreadId, Wait};

/// So many threads that wait for each other, one for the next, are of forged rows.
const MOST_WAITING: usize = 256;

/// The path from the end back to the begin ([`Paths::critical`]).
pub(super) fn back(
    paths: &Paths,
    begin: &Side,
    end: &Side,
    place: impl Fn(Event) -> Option<Placed>,
) -> Path {
    let mut walk = Walk {
        paths,
        place,
        home: end.host,
        frames: vec![Frame {
            thread: end.thread_id(),
            at_ns: end.at_ns,
            ahead_ns: Some(0),
            blocks: None,
            link: None,
            until_ns: begin.at_ns,
        }],
        reached_ns: end.at_ns,
        path: Path::default(),
    };
    while let Some(mut frame) = walk.frames.pop() {
        if walk.reached_ns <= frame.until_ns {
            continue;
        }
        let waited_for = walk.step(&mut frame);
        walk.frames.push(frame);
        walk.frames.extend(waited_for);
    }
    walk.path.parts.reverse();
    walk.path
}

/// A thread whose time is looked at, and how far back.
#[derive(Debug, Clone, Copy)]
struct Frame {
    thread: ThreadId,
    /// Where it is, on the clock of the thread's host.
    at_ns: u64,
    /// By how much the home's clock is ahead of the host's; `None`: not known.
    ahead_ns: Option<i128>,
    /// Who waits for it meanwhile.
    blocks: Option<ThreadId>,
    /// Why it is looked at.
    link: Option<usize>,
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
    path: Path,
}

/// Who ended a wait.
#[derive(Debug, Clone, Copy)]
struct Ended {
    by: ThreadId,
    /// When, on the clock of that one's host.
    at_ns: u64,
    is_message: bool,
    /// By how much the wait would have been shorter at most, had that one needed no time.
    slack_ns: u64,
}

impl<P: Fn(Event) -> Option<Placed>> Walk<'_, P> {
    /// Goes back over what a thread did since its last wait, and over the wait. Returns whose time that is, if known.
    fn step(&mut self, frame: &mut Frame) -> Option<Frame> {
        let Some(&turn) = self.paths.last_wait(frame.thread, frame.at_ns) else {
            // It ran since then, as far as is known.
            self.add(frame, frame.until_ns, PartKind::Running, None);
            return None;
        };
        if turn.on_ns <= frame.at_ns {
            self.to(frame, turn.on_ns, PartKind::Running, None);
        }
        let off_ns = Some(turn.off_ns);
        let Some(woken_ns) = turn.woken_ns else {
            self.to(frame, turn.off_ns, PartKind::Runnable, off_ns);
            return None;
        };
        if frame.at_ns < woken_ns {
            // It did something while it waited.
            self.to(frame, turn.off_ns, PartKind::Contradictory, off_ns);
            return None;
        }
        self.to(frame, woken_ns, PartKind::Runnable, off_ns);
        let wait = self.whole(frame, turn);
        let until_ns = self.until(frame, wait.off_ns);
        let ended = self
            .paths
            .ended_by(&wait)
            .and_then(|ended_by| match ended_by {
                EndedBy::Message { sent, to } => self.message(frame, &wait, sent, to),
                EndedBy::Waker(by) => Some(Ended {
                    by,
                    at_ns: woken_ns,
                    is_message: false,
                    slack_ns: self.reached_ns.saturating_sub(until_ns),
                }),
            });
        // Nobody who waits for this thread can have ended its wait.
        let is_waiting = |thread| {
            thread == frame.thread || self.frames.iter().any(|other| other.thread == thread)
        };
        let ended = ended.filter(|ended| self.frames.len() < MOST_WAITING && !is_waiting(ended.by));
        let waiter = *frame;
        match ended {
            Some(ended) => {
                frame.at_ns = wait.off_ns;
                Some(self.below(&waiter, &wait, ended, until_ns))
            }
            None => {
                frame.at_ns = turn.off_ns;
                let until_ns = self.until(&waiter, turn.off_ns);
                self.add(&waiter, until_ns, PartKind::Blocked, off_ns);
                None
            }
        }
    }

    /// A wait with the turns before it, as far as the thread is looked at.
    fn whole(&self, frame: &Frame, mut wait: Wait) -> Wait {
        if self.paths.ended_by(&wait).is_none() {
            return wait;
        }
        while self.until(frame, wait.off_ns) > frame.until_ns {
            match self.paths.turn_before(frame.thread, wait.off_ns) {
                Some(before) => wait.off_ns = before.off_ns,
                None => break,
            }
        }
        wait
    }

    /// How far back a wait is looked at that began at a time of the thread's host, on the home's clock.
    fn until(&self, frame: &Frame, off_ns: u64) -> u64 {
        let home_ns = self.at_home(frame.thread.host, off_ns);
        home_ns.map_or(frame.until_ns, |(home_ns, _)| {
            home_ns.max(frame.until_ns)
        })
    }

    /// The frame of whoever ended a wait.
    fn below(&mut self, waiter: &Frame, wait: &Wait, ended: Ended, until_ns: u64) -> Frame {
        let home_ns = self.at_home(ended.by.host, ended.at_ns);
        let home_ns = home_ns.map(|(home_ns, _)| home_ns);
        let ahead_ns = home_ns.map(|home_ns| i128::from(home_ns) - i128::from(ended.at_ns));
        self.path.links.push(Link {
            waiter: waiter.thread,
            off_ns: wait.off_ns,
            thread: ended.by,
            at_ns: ended.at_ns,
            home_ns: home_ns.unwrap_or(self.reached_ns),
            is_message: ended.is_message,
            above: waiter.link,
            slack_ns: ended.slack_ns,
        });
        Frame {
            thread: ended.by,
            at_ns: ended.at_ns,
            ahead_ns,
            blocks: Some(waiter.thread),
            link: Some(self.path.links.len() - 1),
            until_ns,
        }
    }

    /// Goes back over a message's way, from when it woke the thread. Returns who sent it, and when on that host.
    fn message(&mut self, frame: &Frame, wait: &Wait, sent: Side, to: EndId) -> Option<Ended> {
        let from = sent.thread_id();
        let (sent_ns, sent_error_ns) = self.at_home(sent.host, sent.at_ns)?;
        let (off_ns, _) = self.at_home(frame.thread.host, wait.off_ns)?;
        let (woken_ns, own_error_ns) = self.at_home(frame.thread.host, frame.at_ns)?;
        let error_ns = if sent.host == frame.thread.host {
            Some(0)
        } else {
            sent_error_ns
                .zip(own_error_ns)
                .map(|(a, b)| a.saturating_add(b))
        };
        // Without this message the thread would have waited for the next one.
        let others = self.paths.other_senders(wait, to);
        let others_ns = others.iter().filter_map(|other| {
            let (home_ns, _) = self.at_home(other.host, other.at_ns)?;
            Some(home_ns)
        });
        let next_ns = others_ns.fold(off_ns, u64::max);
        let kind = PartKind::Network { from, to, error_ns };
        self.add(frame, sent_ns.max(off_ns), kind, Some(wait.off_ns));
        Some(Ended {
            by: from,
            at_ns: sent.at_ns,
            is_message: true,
            slack_ns: woken_ns.saturating_sub(next_ns),
        })
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
    fn to(&mut self, frame: &mut Frame, at_ns: u64, kind: PartKind, wait_off_ns: Option<u64>) {
        let home_ns = self
            .at_home(frame.thread.host, at_ns)
            .map_or(frame.until_ns, |(home_ns, _)| home_ns);
        self.add(frame, home_ns, kind, wait_off_ns);
        frame.at_ns = at_ns;
    }

    /// Adds a part back to a time of the home's clock. Clocks that are a little off do not turn time around.
    fn add(&mut self, frame: &Frame, home_ns: u64, kind: PartKind, wait_off_ns: Option<u64>) {
        let begin_ns = home_ns.max(frame.until_ns).min(self.reached_ns);
        let end_ns = self.reached_ns;
        if begin_ns < end_ns {
            // Within a request the clocks of two hosts run alike.
            let own_ns = |at_ns: u64| u64::try_from(i128::from(at_ns) - frame.ahead_ns?).ok();
            let own_ns = own_ns(begin_ns).zip(own_ns(end_ns));
            self.path.parts.push(Part {
                thread: frame.thread,
                blocks: frame.blocks,
                kind,
                begin_ns,
                end_ns,
                own_ns: own_ns.map(|(begin_ns, end_ns)| [begin_ns, end_ns]),
                wait_off_ns,
                link: frame.link,
            });
        }
        self.reached_ns = begin_ns;
    }
}
