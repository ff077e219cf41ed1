//! Walk backward from an answer along the critical path.

use luc_fleet_clocks::{HostEvent, HostId, ReferenceTime};

use super::{
    CriticalPath, CriticalPathPart, CriticalPaths, EarlierWork, EndedBy, PathLink, PathPartKind,
    Read,
};
use crate::host_rows::{EndId, ThreadId, ThreadWait};
use crate::messages::MessageSide;

/// Maximum number of threads that wait, each for the next; more are of forged rows.
const MAX_FRAMES: usize = 256;

/// Walks from the end back to the begin ([`CriticalPaths::critical`]).
pub(super) fn walk_back(
    paths: &CriticalPaths<'_>,
    begin: &MessageSide,
    end: &MessageSide,
    place: impl Fn(HostEvent) -> Option<ReferenceTime>,
) -> CriticalPath {
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
        path: CriticalPath::default(),
    };
    while let Some(mut frame) = walk.frames.pop() {
        if walk.reached_ns <= frame.until_ns {
            continue;
        }
        let waited_for = walk.step_back(&mut frame);
        walk.frames.push(frame);
        walk.frames.extend(waited_for);
    }
    walk.path.parts.reverse();
    walk.path
}

/// A thread that the walk follows, and how far back.
#[derive(Debug, Clone, Copy)]
struct Frame {
    thread: ThreadId,
    /// Time that the walk has come to, on the clock of the thread's host.
    at_ns: u64,
    /// Home's clock less that of the thread's host; `None`: not known.
    ahead_ns: Option<i128>,
    /// Thread that waits for it meanwhile.
    blocks: Option<ThreadId>,
    /// Index of the link that led to it.
    link: Option<usize>,
    /// Begin of that wait on the home's clock: the walk goes no further back.
    until_ns: u64,
}

struct Walk<'p, P> {
    paths: &'p CriticalPaths<'p>,
    place: P,
    home: HostId,
    /// Threads that wait, each for the next.
    frames: Vec<Frame>,
    /// Begin of the earliest part so far, on the home's clock.
    reached_ns: u64,
    path: CriticalPath,
}

/// End of a wait by a thread.
#[derive(Debug, Clone, Copy)]
struct Ended {
    by: ThreadId,
    /// Time on the clock of that thread's host.
    at_ns: u64,
    is_message: bool,
    /// Maximum by which the wait would have been shorter, had that thread needed no time.
    slack_ns: u64,
}

/// A message that a thread read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    sent: MessageSide,
    to: EndId,
    /// Time at which the thread could read it, on the clock of its host.
    at_ns: u64,
    /// Begin of the wait for it, on the home's clock.
    until_ns: u64,
    /// Begin of the wait that it ended, if it ended one.
    wait_off_ns: Option<u64>,
}

/// A time on the home's clock.
#[derive(Debug, Clone, Copy)]
struct HomeTime {
    at_ns: u64,
    error_ns: Option<u64>,
}

impl<P: Fn(HostEvent) -> Option<ReferenceTime>> Walk<'_, P> {
    /// Goes back over a thread's actions since its last wait, and over the wait. Returns the frame of the thread that
    /// ended the wait, if known.
    fn step_back(&mut self, frame: &mut Frame) -> Option<Frame> {
        let Some(turn) = self.paths.last_wait(frame.thread, frame.at_ns) else {
            if let Some(sender) = self.cross_answer(frame, None) {
                return Some(sender);
            }
            // It ran since then, as far as is known.
            self.add_part(frame, frame.until_ns, PathPartKind::Running, None);
            return None;
        };
        if let Some(sender) = self.cross_answer(frame, Some(&turn)) {
            return Some(sender);
        }
        if turn.on_ns <= frame.at_ns {
            self.go_back_to(frame, turn.on_ns, PathPartKind::Running, None);
        }
        let off_ns = Some(turn.off_ns);
        let processor = turn.processor;
        let runnable = PathPartKind::Runnable { processor };
        let Some(woken_ns) = turn.woken_ns else {
            self.go_back_to(frame, turn.off_ns, runnable, off_ns);
            return None;
        };
        if frame.at_ns < woken_ns {
            // It did something while it waited.
            self.go_back_to(frame, turn.off_ns, PathPartKind::Contradictory, off_ns);
            return None;
        }
        self.go_back_to(frame, woken_ns, runnable, off_ns);
        match self.paths.ended_by(&turn) {
            Some(EndedBy::Message { sent, to }) => self.cross_message_wait(frame, turn, sent, to),
            Some(EndedBy::Waker(by)) if self.may_end(frame, by) => {
                let wait = self.with_turns(frame, turn);
                let until_ns = self.limit_ns(frame, wait.off_ns);
                let ended = Ended {
                    by,
                    at_ns: woken_ns,
                    is_message: false,
                    slack_ns: self.reached_ns.saturating_sub(until_ns),
                };
                let waiter = *frame;
                frame.at_ns = wait.off_ns;
                Some(self.follow(&waiter, wait.off_ns, ended, until_ns))
            }
            Some(EndedBy::Waker(_)) | None => {
                self.go_back_to(frame, turn.off_ns, PathPartKind::Blocked, off_ns);
                None
            }
        }
    }

    /// Goes back over a wait for a message. Returns the frame of its sender, unless that is waited for already.
    fn cross_message_wait(
        &mut self,
        frame: &mut Frame,
        turn: ThreadWait,
        sent: MessageSide,
        to: EndId,
    ) -> Option<Frame> {
        let wait = self.with_turns(frame, turn);
        let waiter = *frame;
        let until_ns = if self.is_waiting(sent.thread_id()) {
            // A thread that waits for this one has asked it.
            self.mark_link(&waiter, EarlierWork::WasFree);
            let held = self.paths.held_before(&wait);
            held.map_or(frame.until_ns, |held| self.limit_ns(frame, held.on_ns))
        } else if let Some(asked_ns) = self.asked_by_another(frame, to, wait.on_ns) {
            self.mark_link(&waiter, EarlierWork::WasFree);
            self.mark_passing(asked_ns);
            asked_ns
        } else {
            self.limit_ns(frame, wait.off_ns)
        };
        let reading =
            Reading { sent, to, at_ns: wait.on_ns, until_ns, wait_off_ns: Some(wait.off_ns) };
        let ended = self.add_network_part(frame, &reading);
        frame.at_ns = turn.off_ns;
        match ended.filter(|ended| self.may_end(&waiter, ended.by)) {
            Some(ended) => {
                frame.at_ns = wait.off_ns;
                Some(self.follow(&waiter, wait.off_ns, ended, until_ns))
            }
            None => {
                let until_ns = self.limit_ns(&waiter, turn.off_ns);
                self.add_part(&waiter, until_ns, PathPartKind::Blocked, Some(turn.off_ns));
                None
            }
        }
    }

    /// Goes back to an answer that a thread read without a wait for it. The answer is to a call of another thread on
    /// the path. Returns the frame of its sender.
    fn cross_answer(&mut self, frame: &mut Frame, since: Option<&ThreadWait>) -> Option<Frame> {
        let Read { at_ns, to, sent } = self.paths.read_since(since, frame.thread, frame.at_ns)?;
        let until_ns = self.asked_by_another(frame, to, at_ns)?;
        if !self.may_end(frame, sent.thread_id()) {
            return None;
        }
        self.go_back_to(frame, at_ns, PathPartKind::Running, None);
        let reading = Reading { sent, to, at_ns, until_ns, wait_off_ns: None };
        let ended = self.add_network_part(frame, &reading)?;
        let waiter = *frame;
        self.mark_link(&waiter, EarlierWork::OnlyForItself);
        self.mark_passing(until_ns);
        Some(self.follow(&waiter, at_ns, ended, until_ns))
    }

    /// Whether a thread may have ended the wait of a frame: not if it waits for that frame's thread.
    fn may_end(&self, frame: &Frame, by: ThreadId) -> bool {
        by != frame.thread && !self.is_waiting(by) && self.frames.len() < MAX_FRAMES
    }

    /// Whether a thread waits for the one that the walk follows.
    fn is_waiting(&self, thread: ThreadId) -> bool {
        self.frames.iter().any(|other| other.thread == thread)
    }

    /// If a thread read the answer to a call of another thread on the path: returns the begin of the wait for that
    /// thread's sake, on the home's clock.
    fn asked_by_another(&self, frame: &Frame, to: EndId, read_ns: u64) -> Option<u64> {
        let (asked_ns, asker) = self.paths.calls.last_send(to, read_ns)?;
        let asked_ns = self.home_time(to.host, asked_ns)?.at_ns;
        let begin_ns = self.frames.first()?.until_ns;
        if asker == frame.thread || asked_ns < begin_ns {
            return None;
        }
        let asking = self.frames.iter().rposition(|one| one.thread == asker)?;
        Some(self.frames.get(asking + 1).unwrap_or(frame).until_ns)
    }

    /// Notes whether a thread's earlier work may have delayed the request.
    fn mark_link(&mut self, frame: &Frame, before: EarlierWork) {
        if let Some(link) = frame.link {
            self.path.links[link].before = before;
        }
    }

    /// Notes that threads which wait for this one were free. These are the threads that are followed back to this
    /// time at most.
    fn mark_passing(&mut self, until_ns: u64) {
        let passing = self.frames.iter().filter(|one| one.until_ns >= until_ns);
        for link in passing.filter_map(|one| one.link) {
            self.path.links[link].before = EarlierWork::WasFree;
        }
    }

    /// Returns a wait with the turns before it, as far as the thread is followed.
    fn with_turns(&self, frame: &Frame, mut wait: ThreadWait) -> ThreadWait {
        while self.limit_ns(frame, wait.off_ns) > frame.until_ns {
            match self.paths.turn_before(frame.thread, wait.off_ns) {
                Some(before) => wait.off_ns = before.off_ns,
                None => break,
            }
        }
        wait
    }

    /// Returns the time back to which a wait is followed, on the home's clock. `off_ns` is its begin on the clock of
    /// its own host.
    fn limit_ns(&self, frame: &Frame, off_ns: u64) -> u64 {
        let home = self.home_time(frame.thread.host, off_ns);
        home.map_or(frame.until_ns, |home| home.at_ns.max(frame.until_ns))
    }

    /// Adds a link, and returns the frame of the thread that ended the wait.
    fn follow(&mut self, waiter: &Frame, off_ns: u64, ended: Ended, until_ns: u64) -> Frame {
        let home_ns = self.home_time(ended.by.host, ended.at_ns).map(|home| home.at_ns);
        let ahead_ns = home_ns.map(|home_ns| i128::from(home_ns) - i128::from(ended.at_ns));
        self.path.links.push(PathLink {
            waiter: waiter.thread,
            off_ns,
            thread: ended.by,
            at_ns: ended.at_ns,
            home_ns: home_ns.unwrap_or(self.reached_ns),
            is_message: ended.is_message,
            above: waiter.link,
            before: EarlierWork::MayCount,
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

    /// Adds the part of a message's way. Returns the end of the wait by its sender.
    fn add_network_part(&mut self, frame: &Frame, reading: &Reading) -> Option<Ended> {
        let &Reading { sent, to, .. } = reading;
        let from = sent.thread_id();
        let home = self.home_time(sent.host, sent.at_ns)?;
        let own_error_ns = self.home_time(frame.thread.host, frame.at_ns)?.error_ns;
        let error_ns = if sent.host == frame.thread.host {
            Some(0)
        } else {
            home.error_ns.zip(own_error_ns).map(|(a, b)| a.saturating_add(b))
        };
        // Without this message the thread would have waited for the next one.
        let others = self.paths.other_sends(frame.thread, reading.at_ns, to);
        let others = others.iter().filter_map(|other| self.home_time(other.host, other.at_ns));
        let next_ns = others.map(|home| home.at_ns).fold(reading.until_ns, u64::max);
        let slack_ns = self.reached_ns.saturating_sub(next_ns);
        let kind = PathPartKind::Network { from, to, error_ns };
        let begin_ns = home.at_ns.max(reading.until_ns);
        self.add_part(frame, begin_ns, kind, reading.wait_off_ns);
        Some(Ended { by: from, at_ns: sent.at_ns, is_message: true, slack_ns })
    }

    fn home_time(&self, host: HostId, at_ns: u64) -> Option<HomeTime> {
        if host == self.home {
            return Some(HomeTime { at_ns, error_ns: Some(0) });
        }
        let placed = (self.place)(HostEvent { host, at_ns: i64::try_from(at_ns).ok()? })?;
        let error_ns = placed.bounds.half_width_ns().map(|half| half.ceil() as u64);
        Some(HomeTime { at_ns: u64::try_from(placed.at_ns?).ok()?, error_ns })
    }

    /// Goes back to a time of the thread's host; where its clock is not known, as far as the thread is followed.
    fn go_back_to(
        &mut self,
        frame: &mut Frame,
        at_ns: u64,
        kind: PathPartKind,
        wait_off_ns: Option<u64>,
    ) {
        let home = self.home_time(frame.thread.host, at_ns);
        let home_ns = home.map_or(frame.until_ns, |home| home.at_ns);
        self.add_part(frame, home_ns, kind, wait_off_ns);
        frame.at_ns = at_ns;
    }

    /// Adds a part back to a time of the home's clock. Clocks that are a little off do not turn time around.
    fn add_part(
        &mut self,
        frame: &Frame,
        home_ns: u64,
        kind: PathPartKind,
        wait_off_ns: Option<u64>,
    ) {
        let begin_ns = home_ns.max(frame.until_ns).min(self.reached_ns);
        let end_ns = self.reached_ns;
        if begin_ns < end_ns {
            // Within a request the clocks of two hosts run alike.
            let own_ns = |at_ns: u64| u64::try_from(i128::from(at_ns) - frame.ahead_ns?).ok();
            let own_ns = own_ns(begin_ns).zip(own_ns(end_ns));
            self.path.parts.push(CriticalPathPart {
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
