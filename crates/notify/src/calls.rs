//! What becomes of each notified call: looked at, written early, held, let go on, counted.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;

use luc_gate::call::Settings;
use luc_gate::figures::CallKind;
use luc_gate::figures::segment::RoundPart;
use luc_gate::overwrites::Extent;
use luc_gate::rounds::{Limits, Needs, Role};
use luc_gate::sys;

use crate::callers::{Arrived, Callers, Made, Target};
use crate::fetch::{Fetched, Missing, fetch};
use crate::filter;
use crate::held::{Call, Gone, Held, HeldCalls, Room};
use crate::places::Places;
use crate::uapi::{self, Answer, Notice};
use crate::watcher::Watcher;
use crate::who::{Who, process_of};
use crate::writers::{Done, Job, Writers, Written};

/// A caller that comes again this long after its last call tells nothing about when that returned, in nanoseconds.
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
        watcher: Watcher,
        places: Places,
    ) -> Self {
        uapi::wake_on_this_processor(listener.as_fd(), true);
        Self {
            listener,
            settings,
            writers,
            places,
            callers: Callers::default(),
            held: HeldCalls::new(Some(watcher)),
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
        // Where the system does not tell, each thread is its own process.
        let process = self.callers.process_of(notice.thread, now_ns, || {
            process_of(notice.thread).unwrap_or(notice.thread)
        });
        let who = Who::of(&notice, process);
        let Arrived { caller, returned } = self.callers.arrives(who, now_ns, Who::is_making);
        for made in returned.into_iter().flatten() {
            self.returned(&made, now_ns);
        }
        let call = Call {
            who,
            caller,
            kind,
            called_ns: now_ns,
        };
        if let Some(file) = self.callers.file(&who) {
            match file.target {
                Target::Unknown => {}
                Target::Nothing => {
                    if file.skips_look() {
                        return self.let_go(notice.id);
                    }
                }
                Target::At(index) => {
                    let place = self.places.get(index);
                    let is_gated =
                        place.is_some_and(|place| place.is_gated(&self.settings.policy, now_ns));
                    if !is_gated && file.skips_look() {
                        self.let_go(notice.id);
                        return self.count_straight(&call, index);
                    }
                }
            }
        }
        match fetch(self.listener.as_raw_fd(), &notice) {
            Ok(fetched) => self.looked_at(notice.id, &call, fetched),
            Err(missing) => {
                if missing == Missing::Denied
                    && let Some(file) = self.callers.file(&who)
                {
                    file.looked_at(Target::Nothing);
                }
                self.let_go(notice.id);
            }
        }
    }

    /// A call has come, and its file is known.
    fn looked_at(&mut self, id: u64, call: &Call, fetched: Fetched) {
        let now_ns = call.called_ns;
        let index = self.places.find(&fetched, call.who.process);
        let place = index.and_then(|index| Some((index, self.places.get(index)?)));
        if let Some(file) = self.callers.file(&call.who) {
            file.looked_at(place.map_or(Target::Nothing, |(index, _)| Target::At(index)));
            if place.is_some_and(|(_, place)| !place.is_decided()) {
                file.look_again();
            }
        }
        let Some((index, place)) = place else {
            self.close(call, fetched);
            return self.let_go(id);
        };
        let Some(rounds) = place.rounds else {
            self.close(call, fetched);
            self.let_go(id);
            return self.count_straight(call, index);
        };
        let extent = (call.kind == CallKind::Fdatasync && fetched.is_regular)
            .then(|| Extent::of(fetched.file.as_raw_fd()))
            .flatten();
        let may_need_flush_only =
            extent.is_some_and(|extent| extent.candidate(fetched.file.as_raw_fd()).is_some());
        let policy = &self.settings.policy;
        let is_gated = rounds.commits.is_gated(policy, now_ns)
            || (may_need_flush_only && rounds.flushes.is_gated(policy, now_ns));
        let stuck_before_ns = now_ns.saturating_sub(self.settings.longest_wait_ns);
        let is_in_time = !self.writers.are_stuck(stuck_before_ns);
        // Not gated, what the file's call before needed is asked: this one most likely needs the same.
        if is_in_time && (is_gated || may_need_flush_only) {
            let held = Held {
                call: *call,
                place: index,
                written_back_ns: 0,
            };
            self.held.insert(id, held);
            if let Some(caller) = self.callers.get(call.caller) {
                caller.is_held();
            }
            if !fetched.is_regular {
                drop(fetched);
                return self.join(id, Needs::Commit);
            }
            return self.writers.order(Job {
                call: Some(id),
                who: call.who,
                file: fetched.file,
                extent,
                writes: is_gated,
                ordered_ns: now_ns,
            });
        }
        drop(fetched);
        if let Some(extent) = extent.filter(|_| !may_need_flush_only) {
            extent.remember();
            if let Some(file) = self.callers.file(&call.who) {
                file.needs = Needs::Commit;
            }
        }
        self.let_go(id);
        self.count_straight(call, index);
    }

    /// Closes a file of which nothing is wanted; by another thread where that may wait for a server.
    fn close(&self, call: &Call, fetched: Fetched) {
        if fetched.may_wait {
            self.writers.order(Job {
                call: None,
                who: call.who,
                file: fetched.file,
                extent: None,
                writes: false,
                ordered_ns: call.called_ns,
            });
        }
    }

    fn let_go(&self, id: u64) {
        uapi::answer(self.listener.as_raw_fd(), id, Answer::Continue);
    }

    /// Counts a call of a place that goes on without a round.
    fn count_straight(&mut self, call: &Call, index: usize) {
        let needs = self.callers.file(&call.who).map(|file| file.needs);
        let (Some(place), Some(caller), Some(needs)) =
            (self.places.get(index), self.callers.get(call.caller), needs)
        else {
            return;
        };
        caller.has_returned();
        if let Some(figures) = place.figures {
            figures.record_unseen(call.kind, None);
        }
        let Some(of_kind) = place.rounds.map(|rounds| rounds.of(needs)) else {
            return;
        };
        of_kind.count_participant(caller.seen.of(needs));
        of_kind.complete();
        caller.has_made(Made {
            who: call.who,
            place: index,
            needs,
            called_ns: call.called_ns,
            answered_ns: call.called_ns,
            joined: None,
        });
    }

    /// A call has returned, as its caller has come again.
    fn returned(&self, made: &Made, now_ns: u64) {
        let Some(place) = self.places.get(made.place) else {
            return;
        };
        let Some(rounds) = place.rounds else {
            return;
        };
        let of_kind = rounds.of(made.needs);
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
            if let Some(file) = self.callers.file(&done.who) {
                file.needs = done.needs;
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
        held.written_back_ns = sys::now_ns().saturating_sub(held.call.called_ns);
        match done.written {
            Written::Done => self.join(id, done.needs),
            // Held without its data written, a caller comes late to the commit and delays everybody.
            Written::Refused | Written::NotAsked => self.give_up(id),
            Written::Lost(errno) => {
                uapi::answer(self.listener.as_raw_fd(), id, Answer::Fail(errno));
                let Some(held) = self.held.remove(id) else {
                    return;
                };
                if let Some(caller) = self.callers.get(held.call.caller) {
                    caller.has_returned();
                }
                let place = self.places.get(held.place);
                if let Some(figures) = place.and_then(|place| place.figures) {
                    figures.record_unseen(held.call.kind, None);
                    figures.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Lets a held call go on without a round.
    fn give_up(&mut self, id: u64) {
        if let Some(held) = self.held.remove(id) {
            self.let_go(id);
            self.count_straight(&held.call, held.place);
        }
    }

    /// Brings a call whose data is written into the round for what it needs.
    fn join(&mut self, id: u64, needs: Needs) {
        let policy = &self.settings.policy;
        let Some(&mut held) = self.held.get_mut(id) else {
            return;
        };
        let called_ns = held.call.called_ns;
        let place = self.places.get(held.place);
        let Some((place, rounds)) = place.and_then(|place| Some((place, place.rounds?))) else {
            return self.give_up(id);
        };
        let (of, role) = match needs {
            Needs::Flush if !rounds.commits.takes_along(policy, called_ns) => {
                (Needs::Flush, Role::Member)
            }
            needs => (Needs::Commit, Role::of(needs)),
        };
        let of_kind = rounds.of(of);
        if !of_kind.is_gated(policy, called_ns) {
            if let Some(file) = self.callers.file(&held.call.who) {
                file.needs = of;
            }
            return self.give_up(id);
        }
        if let Some(caller) = self.callers.get(held.call.caller) {
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
        let gone = self.held.take_ready(&self.settings.policy, now_ns);
        uapi::let_all_go(self.listener.as_fd(), gone.iter().map(|gone| gone.id));
        for gone in &gone {
            self.count_held(gone, now_ns);
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
            figures.record_unseen(held.call.kind, Some(&part));
        }
        if let Some(caller) = self.callers.get(held.call.caller) {
            caller.has_made(Made {
                who: held.call.who,
                place: held.place,
                needs: room.of,
                called_ns: held.call.called_ns,
                answered_ns: now_ns,
                joined: Some(joined),
            });
        }
    }
}
