//! What becomes of each notified call: looked at, written early, held, let go on, counted.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;

use super::callers::{Callers, Made, Target};
use super::fetch::{Fetched, Missing, fetch};
use super::filter;
use super::held::{Gone, Held, HeldCalls, Room};
use super::places::{Place, Places};
use super::uapi::{self, Answer, Notice};
use super::writers::{Done, Job, Writers, Written};
use crate::call::Settings;
use crate::figures::CallKind;
use crate::figures::segment::RoundPart;
use crate::overwrites::Extent;
use crate::rounds::{Limits, Needs, Role, Rounds};
use crate::sys;

/// A thread that comes again this long after its last call tells nothing about when that returned, in nanoseconds.
const LONG_AGO_NS: u64 = 5_000_000_000;

/// All calls of a command.
#[derive(Debug)]
pub(crate) struct Calls {
    listener: OwnedFd,
    settings: Settings,
    writers: Writers,
    places: Places,
    callers: Callers,
    held: HeldCalls,
}

impl Calls {
    pub(crate) fn new(
        listener: OwnedFd,
        settings: Settings,
        writers: Writers,
        places: Places,
    ) -> Self {
        uapi::wake_on_this_processor(listener.as_fd());
        Self {
            listener,
            settings,
            writers,
            places,
            callers: Callers::default(),
            held: HeldCalls::new(),
        }
    }

    /// Whence calls come.
    pub(crate) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Readable when [`Calls::written`] has something to do.
    pub(crate) fn bell(&self) -> &OwnedFd {
        self.writers.bell()
    }

    /// The calls that wait for an answer: the oldest one's number, and how many there are.
    pub(crate) fn waiting(&self) -> (Option<u64>, usize) {
        (self.held.numbers().next(), self.held.len())
    }

    /// Lets all calls go on that wait, and gives the listener back.
    pub(crate) fn end(self) -> OwnedFd {
        for id in self.held.numbers() {
            self.let_go(id);
        }
        self.listener
    }

    /// A call has come.
    pub(crate) fn arrived(&mut self, notice: Notice) {
        let now_ns = sys::now_ns();
        let Some(kind) = filter::kind_of(notice.architecture, notice.number) else {
            return self.let_go(notice.id);
        };
        self.returned(notice.thread, now_ns);
        let caller = self.callers.calls(notice.thread, now_ns);
        match caller.target {
            Target::Unknown => {}
            Target::Nothing => {
                if caller.skips_look() {
                    return self.let_go(notice.id);
                }
            }
            Target::At(index) => {
                let place = self.places.get(index);
                let is_gated =
                    place.is_some_and(|place| place.is_gated(&self.settings.policy, now_ns));
                if !is_gated && caller.skips_look() {
                    self.let_go(notice.id);
                    return self.count_straight(notice.thread, kind, index, now_ns);
                }
            }
        }
        match fetch(self.listener.as_raw_fd(), &notice) {
            Ok(fetched) => self.looked_at(&notice, kind, fetched, now_ns),
            Err(missing) => {
                if missing == Missing::Denied {
                    let caller = self.callers.calls(notice.thread, now_ns);
                    caller.looked_at(Target::Nothing);
                }
                self.let_go(notice.id);
            }
        }
    }

    /// A call has come, and its file is known.
    fn looked_at(&mut self, notice: &Notice, kind: CallKind, fetched: Fetched, now_ns: u64) {
        let index = self.places.find(fetched.device, fetched.file.as_fd());
        let caller = self.callers.calls(notice.thread, now_ns);
        let Some((index, place)) = index.and_then(|index| Some((index, self.places.get(index)?)))
        else {
            caller.looked_at(Target::Nothing);
            self.close(notice, fetched, now_ns);
            return self.let_go(notice.id);
        };
        caller.looked_at(Target::At(index));
        if !place.is_decided() {
            caller.look_again();
        }
        let Some(rounds) = place.rounds else {
            self.close(notice, fetched, now_ns);
            self.let_go(notice.id);
            return self.count_straight(notice.thread, kind, index, now_ns);
        };
        let extent = (kind == CallKind::Fdatasync && fetched.is_regular)
            .then(|| Extent::of(fetched.file.as_raw_fd()))
            .flatten();
        let may_need_flush_only =
            extent.is_some_and(|extent| extent.candidate(fetched.file.as_raw_fd()).is_some());
        let policy = &self.settings.policy;
        let is_gated = rounds.commits.is_gated(policy, now_ns)
            || (may_need_flush_only && rounds.flushes.is_gated(policy, now_ns));
        let stuck_before_ns = now_ns.saturating_sub(self.settings.longest_wait_ns);
        let is_in_time = !self.writers.are_stuck(stuck_before_ns);
        // Not gated, what the thread's call before needed is asked: this one most likely needs the same.
        if is_in_time && (is_gated || may_need_flush_only) {
            let held = Held {
                thread: notice.thread,
                place: index,
                kind,
                called_ns: now_ns,
                written_back_ns: 0,
            };
            self.held.insert(notice.id, held);
            if !fetched.is_regular {
                drop(fetched);
                return self.join(notice.id, Needs::Commit);
            }
            return self.writers.order(Job {
                call: Some(notice.id),
                thread: notice.thread,
                file: fetched.file,
                extent,
                writes: is_gated,
                ordered_ns: now_ns,
            });
        }
        drop(fetched);
        if let Some(extent) = extent.filter(|_| !may_need_flush_only) {
            extent.remember();
            caller.needs = Needs::Commit;
        }
        self.let_go(notice.id);
        self.count_straight(notice.thread, kind, index, now_ns);
    }

    /// Closes a file of which nothing is wanted; by another thread where that may wait for a server.
    fn close(&self, notice: &Notice, fetched: Fetched, now_ns: u64) {
        if fetched.may_wait {
            self.writers.order(Job {
                call: None,
                thread: notice.thread,
                file: fetched.file,
                extent: None,
                writes: false,
                ordered_ns: now_ns,
            });
        }
    }

    fn let_go(&self, id: u64) {
        uapi::answer(self.listener.as_raw_fd(), id, Answer::Continue);
    }

    /// Counts a call of a place that goes on without a round.
    fn count_straight(&mut self, thread: u32, kind: CallKind, index: usize, called_ns: u64) {
        let (Some(place), Some(caller)) = (self.places.get(index), self.callers.get(thread)) else {
            return;
        };
        if let Some(figures) = place.figures {
            figures.record_unseen(kind, None);
        }
        let Some(of_kind) = rounds_of(place, caller.needs) else {
            return;
        };
        of_kind.count_participant(caller.seen.of(caller.needs));
        of_kind.complete();
        caller.made = Some(Made {
            place: index,
            needs: caller.needs,
            called_ns,
            answered_ns: called_ns,
            joined: None,
        });
    }

    /// A thread has come again, so its last call has returned.
    fn returned(&mut self, thread: u32, now_ns: u64) {
        let caller = self.callers.get(thread);
        let Some(made) = caller.and_then(|caller| caller.made.take()) else {
            return;
        };
        let Some(place) = self.places.get(made.place) else {
            return;
        };
        let (Some(rounds), Some(of_kind)) = (place.rounds, rounds_of(place, made.needs)) else {
            return;
        };
        let policy = &self.settings.policy;
        let latency_ns = now_ns.saturating_sub(made.called_ns);
        if latency_ns > LONG_AGO_NS {
            return;
        }
        let beside = rounds.beside(made.needs, policy, now_ns);
        match made.joined {
            None => of_kind.returned_ungated(policy, now_ns, latency_ns, beside),
            Some(joined) => {
                if of_kind.returned_from_round(policy, &joined, beside) {
                    place.own.observe(now_ns.saturating_sub(made.answered_ns));
                    if let Some(figures) = place.figures {
                        figures.rounds.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Takes note of what the early writes have done.
    pub(crate) fn written(&mut self) {
        for done in self.writers.done() {
            if let Some(caller) = self.callers.get(done.thread) {
                caller.needs = done.needs;
            }
            if let Some(id) = done.call {
                self.is_written(id, &done);
            }
        }
    }

    fn is_written(&mut self, id: u64, done: &Done) {
        let Some(held) = self.held.get_mut(id) else {
            return;
        };
        held.written_back_ns = sys::now_ns().saturating_sub(held.called_ns);
        match done.written {
            Written::Done => self.join(id, done.needs),
            // Held without its data written, a caller comes late to the commit and delays everybody.
            Written::Refused | Written::NotAsked => self.give_up(id),
            Written::Lost(errno) => {
                uapi::answer(self.listener.as_raw_fd(), id, Answer::Fail(errno));
                let held = self.held.remove(id);
                let place = held.and_then(|held| self.places.get(held.place));
                if let (Some(held), Some(figures)) = (held, place.and_then(|place| place.figures)) {
                    figures.record_unseen(held.kind, None);
                    figures.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Lets a held call go on without a round.
    fn give_up(&mut self, id: u64) {
        if let Some(held) = self.held.remove(id) {
            self.let_go(id);
            self.count_straight(held.thread, held.kind, held.place, held.called_ns);
        }
    }

    /// Brings a call whose data is written into the round for what it needs.
    fn join(&mut self, id: u64, needs: Needs) {
        let policy = &self.settings.policy;
        let Some(&mut held) = self.held.get_mut(id) else {
            return;
        };
        let place = self.places.get(held.place);
        let Some((place, rounds)) = place.and_then(|place| Some((place, place.rounds?))) else {
            return self.give_up(id);
        };
        let (of, of_kind, role) = match needs {
            Needs::Flush if !rounds.commits.takes_along(policy, held.called_ns) => {
                (Needs::Flush, &rounds.flushes, Role::Member)
            }
            needs => (Needs::Commit, &rounds.commits, Role::of(needs)),
        };
        let caller = self.callers.get(held.thread);
        if !of_kind.is_gated(policy, held.called_ns) {
            if let Some(caller) = caller {
                caller.needs = of;
            }
            return self.give_up(id);
        }
        if let Some(caller) = caller {
            of_kind.count_participant(caller.seen.of(of));
        }
        let limits = Limits {
            longest_ns: self.settings.longest_wait_ns,
            own_call_ns: place.own.ns(),
        };
        let room = Room {
            rounds: of_kind,
            of,
        };
        self.held
            .join(id, room, (policy, role, &limits), sys::now_ns());
    }

    /// Lets go whoever may go. When to do so again.
    pub(crate) fn go_on(&mut self) -> u64 {
        if self.held.is_empty() {
            return u64::MAX;
        }
        let now_ns = sys::now_ns();
        if self.writers.has_orders() {
            let late_ns = now_ns.saturating_sub(self.settings.longest_wait_ns);
            for id in self.writers.take_back(late_ns) {
                self.give_up(id);
            }
        }
        for gone in self.held.take_ready(&self.settings.policy, now_ns) {
            self.let_go(gone.id);
            self.count_held(&gone, now_ns);
        }
        self.held.look_ns()
    }

    /// Counts a call that has gone on from a round.
    fn count_held(&mut self, gone: &Gone, now_ns: u64) {
        let Gone {
            held, room, joined, ..
        } = *gone;
        room.rounds.complete();
        let place = self.places.get(held.place);
        if let Some(figures) = place.and_then(|place| place.figures) {
            let part = RoundPart {
                written_back_ns: held.written_back_ns,
                waited_ns: joined.waited_ns,
                timed_out: joined.timed_out,
                first_to_return: false,
            };
            figures.record_unseen(held.kind, Some(&part));
        }
        if let Some(caller) = self.callers.get(held.thread) {
            caller.made = Some(Made {
                place: held.place,
                needs: room.of,
                called_ns: held.called_ns,
                answered_ns: now_ns,
                joined: Some(joined),
            });
        }
    }
}

/// The rounds of a place for what a call needs.
fn rounds_of(place: &Place, needs: Needs) -> Option<&'static Rounds> {
    let rounds = place.rounds?;
    Some(match needs {
        Needs::Commit => &rounds.commits,
        Needs::Flush => &rounds.flushes,
    })
}
