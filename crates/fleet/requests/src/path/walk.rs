//! The walk backward from an answer.

use luc_fleet_clocks::{Event, HostId, Placed};

use super::{Before, EndedBy, Link, Part, PartKind, Path, Paths, Read};
use crate::messages::Side;
use crate::rows::{EndId, ThreadId, Wait};

/// So many threads that wait for each other, one for the next, are of forged rows.
const MOST_WAITING: usize = 256;

/// The path from the end back to the begin ([`Paths::critical`]).
pub(super) fn back(
    paths: &Paths<'_>,
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

struct Walk<'p, P> {
    paths: &'p Paths<'p>,
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

/// A message that a thread read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    sent: Side,
    to: EndId,
    /// When the thread could read it, on the clock of its host.
    at_ns: u64,
    /// Since when it was waited for, on the home's clock.
    until_ns: u64,
    /// The wait that it ended, if it ended one.
    wait_off_ns: Option<u64>,
}

impl<P: Fn(Event) -> Option<Placed>> Walk<'_, P> {
    /// Goes back over what a thread did since its last wait, and over the wait. Returns whose time that is, if known.
    fn step(&mut self, frame: &mut Frame) -> Option<Frame> {
        let Some(turn) = self.paths.last_wait(frame.thread, frame.at_ns) else {
            if let Some(passed) = self.passed(frame, None) {
                return Some(passed);
            }
            // It ran since then, as far as is known.
            self.add(frame, frame.until_ns, PartKind::Running, None);
            return None;
        };
        if let Some(passed) = self.passed(frame, Some(&turn)) {
            return Some(passed);
        }
        if turn.on_ns <= frame.at_ns {
            self.to(frame, turn.on_ns, PartKind::Running, None);
        }
        let off_ns = Some(turn.off_ns);
        let processor = turn.processor;
        let runnable = PartKind::Runnable { processor };
        let Some(woken_ns) = turn.woken_ns else {
            self.to(frame, turn.off_ns, runnable, off_ns);
            return None;
        };
        if frame.at_ns < woken_ns {
            // It did something while it waited.
            self.to(frame, turn.off_ns, PartKind::Contradictory, off_ns);
            return None;
        }
        self.to(frame, woken_ns, runnable, off_ns);
        match self.paths.ended_by(&turn) {
            Some(EndedBy::Message { sent, to }) => self.came(frame, turn, sent, to),
            Some(EndedBy::Waker(by)) if self.may_end(frame, by) => {
                let wait = self.whole(frame, turn);
                let until_ns = self.until(frame, wait.off_ns);
                let ended = Ended {
                    by,
                    at_ns: woken_ns,
                    is_message: false,
                    slack_ns: self.reached_ns.saturating_sub(until_ns),
                };
                let waiter = *frame;
                frame.at_ns = wait.off_ns;
                Some(self.below(&waiter, wait.off_ns, ended, until_ns))
            }
            Some(EndedBy::Waker(_)) | None => {
                self.to(frame, turn.off_ns, PartKind::Blocked, off_ns);
                None
            }
        }
    }

    /// Goes back over a wait for a message. Returns the frame of who sent it, if that is not waited for already.
    fn came(&mut self, frame: &mut Frame, turn: Wait, sent: Side, to: EndId) -> Option<Frame> {
        let wait = self.whole(frame, turn);
        let waiter = *frame;
        let until_ns = if self.is_waiting(sent.thread_id()) {
            // A thread that waits for this one has asked it.
            self.mark(&waiter, Before::WasFree);
            let held = self.paths.held_before(&wait);
            held.map_or(frame.until_ns, |held| self.until(frame, held.on_ns))
        } else if let Some(asked_ns) = self.asked_by_another(frame, to, wait.on_ns) {
            self.mark(&waiter, Before::WasFree);
            self.mark_others(asked_ns);
            asked_ns
        } else {
            self.until(frame, wait.off_ns)
        };
        let reading =
            Reading { sent, to, at_ns: wait.on_ns, until_ns, wait_off_ns: Some(wait.off_ns) };
        let ended = self.message(frame, &reading);
        frame.at_ns = turn.off_ns;
        match ended.filter(|ended| self.may_end(&waiter, ended.by)) {
            Some(ended) => {
                frame.at_ns = wait.off_ns;
                Some(self.below(&waiter, wait.off_ns, ended, until_ns))
            }
            None => {
                let until_ns = self.until(&waiter, turn.off_ns);
                self.add(&waiter, until_ns, PartKind::Blocked, Some(turn.off_ns));
                None
            }
        }
    }

    /// Goes back to the answer that a thread read without a wait for it, to what another one on the path had asked. Returns
    /// the frame of who sent it.
    fn passed(&mut self, frame: &mut Frame, since: Option<&Wait>) -> Option<Frame> {
        let Read { at_ns, to, sent } = self.paths.read_since(since, frame.thread, frame.at_ns)?;
        let until_ns = self.asked_by_another(frame, to, at_ns)?;
        if !self.may_end(frame, sent.thread_id()) {
            return None;
        }
        self.to(frame, at_ns, PartKind::Running, None);
        let reading = Reading { sent, to, at_ns, until_ns, wait_off_ns: None };
        let ended = self.message(frame, &reading)?;
        let waiter = *frame;
        self.mark(&waiter, Before::OnlyForItself);
        self.mark_others(until_ns);
        Some(self.below(&waiter, at_ns, ended, until_ns))
    }

    /// Whether a thread may have ended the wait of another one: not if it waits for that one.
    fn may_end(&self, frame: &Frame, by: ThreadId) -> bool {
        by != frame.thread && !self.is_waiting(by) && self.frames.len() < MOST_WAITING
    }

    /// Whether a thread waits for the one that is looked at.
    fn is_waiting(&self, thread: ThreadId) -> bool {
        self.frames.iter().any(|other| other.thread == thread)
    }

    /// If a thread read on an end the answer to what another thread of the path has asked on it: since when, on the home's
    /// clock, somebody waits for that one's sake.
    fn asked_by_another(&self, frame: &Frame, to: EndId, read_ns: u64) -> Option<u64> {
        let (asked_ns, asker) = self.paths.calls.asker(to, read_ns)?;
        let (asked_ns, _) = self.at_home(to.host, asked_ns)?;
        let begin_ns = self.frames.first()?.until_ns;
        if asker == frame.thread || asked_ns < begin_ns {
            return None;
        }
        let asking = self.frames.iter().rposition(|one| one.thread == asker)?;
        Some(self.frames.get(asking + 1).unwrap_or(frame).until_ns)
    }

    /// Says whether what a thread did before may have held the request up.
    fn mark(&mut self, frame: &Frame, before: Before) {
        if let Some(link) = frame.link {
            self.path.links[link].before = before;
        }
    }

    /// Says of those that wait for the thread, and are looked at back to this time at most, that they were free.
    fn mark_others(&mut self, until_ns: u64) {
        let passing = self.frames.iter().filter(|one| one.until_ns >= until_ns);
        for link in passing.filter_map(|one| one.link) {
            self.path.links[link].before = Before::WasFree;
        }
    }

    /// A wait that somebody ended, with the turns before it, as far as the thread is looked at.
    fn whole(&self, frame: &Frame, mut wait: Wait) -> Wait {
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
        home_ns.map_or(frame.until_ns, |(home_ns, _)| home_ns.max(frame.until_ns))
    }

    /// The frame of whoever ended a wait.
    fn below(&mut self, waiter: &Frame, off_ns: u64, ended: Ended, until_ns: u64) -> Frame {
        let home_ns = self.at_home(ended.by.host, ended.at_ns);
        let home_ns = home_ns.map(|(home_ns, _)| home_ns);
        let ahead_ns = home_ns.map(|home_ns| i128::from(home_ns) - i128::from(ended.at_ns));
        self.path.links.push(Link {
            waiter: waiter.thread,
            off_ns,
            thread: ended.by,
            at_ns: ended.at_ns,
            home_ns: home_ns.unwrap_or(self.reached_ns),
            is_message: ended.is_message,
            above: waiter.link,
            before: Before::MayCount,
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

    /// Goes back over a message's way, from where the thread is. Returns who sent it, and when on that host.
    fn message(&mut self, frame: &Frame, reading: &Reading) -> Option<Ended> {
        let &Reading { sent, to, .. } = reading;
        let from = sent.thread_id();
        let (sent_ns, sent_error_ns) = self.at_home(sent.host, sent.at_ns)?;
        let (_, own_error_ns) = self.at_home(frame.thread.host, frame.at_ns)?;
        let error_ns = if sent.host == frame.thread.host {
            Some(0)
        } else {
            sent_error_ns.zip(own_error_ns).map(|(a, b)| a.saturating_add(b))
        };
        // Without this message the thread would have waited for the next one.
        let others = self.paths.other_senders(frame.thread, reading.at_ns, to);
        let others_ns = others.iter().filter_map(|other| {
            let (home_ns, _) = self.at_home(other.host, other.at_ns)?;
            Some(home_ns)
        });
        let next_ns = others_ns.fold(reading.until_ns, u64::max);
        let slack_ns = self.reached_ns.saturating_sub(next_ns);
        let kind = PartKind::Network { from, to, error_ns };
        let begin_ns = sent_ns.max(reading.until_ns);
        self.add(frame, begin_ns, kind, reading.wait_off_ns);
        Some(Ended { by: from, at_ns: sent.at_ns, is_message: true, slack_ns })
    }

    /// A time of a host on the home's clock, and by how much it may be off.
    fn at_home(&self, host: HostId, at_ns: u64) -> Option<(u64, Option<u64>)> {
        if host == self.home {
            return Some((at_ns, Some(0)));
        }
        let placed = (self.place)(Event { host, at_ns: i64::try_from(at_ns).ok()? })?;
        let error_ns = placed.bounds.half_width_ns().map(|half| half.ceil() as u64);
        Some((u64::try_from(placed.at_ns?).ok()?, error_ns))
    }

    /// Goes back to a time of the thread's host; where its clock is not known, as far as the thread is looked at.
    fn to(&mut self, frame: &mut Frame, at_ns: u64, kind: PartKind, wait_off_ns: Option<u64>) {
        let home_ns =
            self.at_home(frame.thread.host, at_ns).map_or(frame.until_ns, |(home_ns, _)| home_ns);
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
