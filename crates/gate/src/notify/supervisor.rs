//! The event loop: receives calls, holds them, lets them go on.
//!
//! It sleeps for the listener, for early writes that are done, and for the next moment at which a held caller may go.
//! It does nothing that waits for a disk or a server: while it waits, all programs wait.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::callers::{Callers, Made, Target};
use super::fetch::{Fetched, Missing, fetch};
use super::filter;
use super::keeper::{Keeper, Source};
use super::ledger::SharedLedger;
use super::places::{Place, Places};
use super::uapi::{self, Answer, Notice};
use super::writers::{Done, Job, Writers, Written};
use crate::call::Settings;
use crate::figures::CallKind;
use crate::figures::segment::RoundPart;
use crate::overwrites::Extent;
use crate::rounds::{Limits, Needs, Next, Role, Rounds, Waiting};
use crate::sys;

/// How often a round is looked at that others than notified callers take part in, in nanoseconds: they do not wake
/// this loop when they release it.
const LOOK_FOR_OTHERS_NS: u64 = 200_000;

/// Others are reckoned with for this long after they were seen, in nanoseconds.
const OTHERS_NS: u64 = 5_000_000_000;

/// While a call waits for its answer the loop shows the keeper that it works this often, in nanoseconds.
const BEAT_NS: u64 = 50_000_000;

/// A thread that comes again this long after its last call tells nothing about when that returned, in nanoseconds.
const LONG_AGO_NS: u64 = 5_000_000_000;

/// A lost keeper is replaced no more often than this, in nanoseconds.
const REPLACED_NS: u64 = 1_000_000_000;

/// A call that waits for its answer.
#[derive(Debug)]
struct Held {
    thread: u32,
    place: usize,
    kind: CallKind,
    called_ns: u64,
    written_back_ns: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Its data is being written.
    Writing,
    /// It is in a round for what it needs.
    InRound { of: Needs, waiting: Waiting },
}

/// The event loop's state.
#[derive(Debug)]
pub(crate) struct Supervisor {
    listener: OwnedFd,
    /// Closed with the loop: then the keeper knows that it is alone.
    control: UnixStream,
    keeper: Option<Keeper>,
    ledger: Arc<SharedLedger>,
    writers: Writers,
    settings: Settings,
    places: Places,
    callers: Callers,
    /// By the call's number, and so in the order of their arrival.
    held: BTreeMap<u64, Held>,
    is_over: Arc<AtomicBool>,
    /// Nobody is under the filter any more.
    nobody_left: bool,
    /// When others than notified callers were last seen in a round.
    others_ns: u64,
    replaced_ns: u64,
}

/// What a loop works with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) listener: OwnedFd,
    pub(crate) control: UnixStream,
    pub(crate) keeper: Keeper,
    pub(crate) ledger: Arc<SharedLedger>,
    pub(crate) writers: Writers,
    pub(crate) settings: Settings,
    pub(crate) places: Places,
    pub(crate) is_over: Arc<AtomicBool>,
}

/// What a loop leaves.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) listener: OwnedFd,
    pub(crate) keeper: Option<Keeper>,
}

impl Supervisor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            listener,
            control,
            keeper,
            ledger,
            writers,
            settings,
            places,
            is_over,
        } = parts;
        uapi::wake_on_this_processor(listener.as_fd());
        Self {
            listener,
            control,
            keeper: Some(keeper),
            ledger,
            writers,
            settings,
            places,
            callers: Callers::default(),
            held: BTreeMap::new(),
            is_over,
            nobody_left: false,
            others_ns: 0,
            replaced_ns: 0,
        }
    }

    /// Serves until it is told that the command has ended. What it then still holds is answered here; what comes
    /// later, by the keeper.
    pub(crate) fn run(mut self) -> Left {
        // A hold ends when it ends, not up to 50 us later.
        // SAFETY: plain numbers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let mut wake_ns = u64::MAX;
        while !self.is_over.load(Ordering::Acquire) {
            let woken = self.sleep(wake_ns);
            self.ledger.beat();
            // An error means that a signal came, and nothing else.
            if let Ok(woken) = woken {
                self.attend(woken);
            }
            self.replace_keeper();
            wake_ns = self.go_on();
            let oldest = self.held.keys().next().copied();
            self.ledger.waiting(oldest, self.held.len());
        }
        for &id in self.held.keys() {
            uapi::answer(self.listener.as_raw_fd(), id, Answer::Continue);
        }
        Left {
            listener: self.listener,
            keeper: self.keeper,
        }
    }

    /// Sleeps until something has come, or until `wake_ns`.
    fn sleep(&self, wake_ns: u64) -> Result<Woken, Errno> {
        let mut wake_ns = wake_ns;
        if !self.held.is_empty() {
            wake_ns = wake_ns.min(sys::now_ns().saturating_add(BEAT_NS));
        }
        if self.keeper.is_none() && !self.nobody_left {
            wake_ns = wake_ns.min(self.replaced_ns.saturating_add(REPLACED_NS));
        }
        let timeout = (wake_ns != u64::MAX).then(|| {
            let ns = wake_ns.saturating_sub(sys::now_ns());
            Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as _,
            }
        });
        let bell = self.writers.bell();
        let keeper = self.keeper.as_ref().map(|keeper| &keeper.ended);
        let listener = (!self.nobody_left).then_some(&self.listener);
        // Where there is nothing to look at, the bell stands for it.
        let mut polled = [bell, keeper.unwrap_or(bell), listener.unwrap_or(bell)]
            .map(|fd| PollFd::new(fd, PollFlags::IN));
        poll(&mut polled, timeout.as_ref())?;
        let [of_bell, of_keeper, of_listener] = polled.map(|polled| polled.revents());
        let of_listener = listener.map_or(PollFlags::empty(), |_| of_listener);
        Ok(Woken {
            bell: !of_bell.is_empty(),
            keeper_ended: keeper.is_some() && !of_keeper.is_empty(),
            call: of_listener.contains(PollFlags::IN),
            nobody_left: of_listener.intersects(PollFlags::HUP | PollFlags::ERR),
        })
    }

    fn attend(&mut self, woken: Woken) {
        if woken.bell {
            for done in self.writers.done() {
                self.written(done);
            }
        }
        if woken.call {
            if let Ok(notice) = uapi::receive(self.listener.as_raw_fd()) {
                self.ledger.received(notice.id);
                self.arrived(notice);
            }
        } else if woken.nobody_left {
            self.nobody_left = true;
        }
        if woken.keeper_ended
            && let Some(keeper) = self.keeper.take()
        {
            keeper.reap();
        }
    }

    /// A call has come.
    fn arrived(&mut self, notice: Notice) {
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
                    return self.straight(&notice, kind, index, now_ns);
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
        let place = index.and_then(|index| Some((index, self.places.get(index)?)));
        let Some((index, place)) = place else {
            caller.looked_at(Target::Nothing);
            self.let_go(notice.id);
            return self.close(notice, fetched, now_ns);
        };
        caller.looked_at(Target::At(index));
        if !place.is_decided() {
            caller.look_again();
        }
        let Some(rounds) = place.rounds else {
            self.straight(notice, kind, index, now_ns);
            return self.close(notice, fetched, now_ns);
        };
        let extent = (kind == CallKind::Fdatasync && fetched.is_regular)
            .then(|| Extent::of(fetched.file.as_raw_fd()))
            .flatten();
        let may_need_flush_only =
            extent.is_some_and(|extent| extent.candidate(fetched.file.as_raw_fd()).is_some());
        let policy = &self.settings.policy;
        let is_gated = rounds.commits.is_gated(policy, now_ns)
            || (may_need_flush_only && rounds.flushes.is_gated(policy, now_ns));
        let is_written_in_time = !self
            .writers
            .are_stuck(now_ns.saturating_sub(self.settings.longest_wait_ns));
        let job = Job {
            call: Some(notice.id),
            thread: notice.thread,
            file: fetched.file,
            extent,
            writes: true,
            ordered_ns: now_ns,
        };
        if !is_gated || !is_written_in_time {
            if !may_need_flush_only {
                caller.needs = Needs::Commit;
            }
            self.straight(notice, kind, index, now_ns);
            if extent.is_some() && is_written_in_time {
                // What the call before needed is known now, and this one most likely needs the same.
                self.writers.order(Job {
                    call: None,
                    writes: false,
                    ..job
                });
            }
            return;
        }
        self.held.insert(
            notice.id,
            Held {
                thread: notice.thread,
                place: index,
                kind,
                called_ns: now_ns,
                written_back_ns: 0,
                stage: Stage::Writing,
            },
        );
        if fetched.is_regular {
            self.writers.order(job);
        } else {
            drop(job);
            self.join(notice.id, Needs::Commit);
        }
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

    /// Lets a call go on that is not of a place.
    fn let_go(&self, id: u64) {
        uapi::answer(self.listener.as_raw_fd(), id, Answer::Continue);
    }

    /// Lets a call of a place go on without a round.
    fn straight(&mut self, notice: &Notice, kind: CallKind, index: usize, called_ns: u64) {
        self.let_go(notice.id);
        self.count_straight(notice.thread, kind, index, called_ns);
    }

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
        of_kind.count_participant(match caller.needs {
            Needs::Commit => &caller.seen.commits,
            Needs::Flush => &caller.seen.flushes,
        });
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
        let made = self
            .callers
            .get(thread)
            .and_then(|caller| caller.made.take());
        let Some(made) = made else { return };
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
        match made.joined {
            None => of_kind.returned_ungated(policy, now_ns, latency_ns, rounds.served()),
            Some(joined) => {
                if of_kind.returned_from_round(policy, &joined, rounds.served()) {
                    place.own.observe(now_ns.saturating_sub(made.answered_ns));
                    if let Some(figures) = place.figures {
                        figures.rounds.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// An early write is done.
    fn written(&mut self, done: Done) {
        if let Some(caller) = self.callers.get(done.thread) {
            caller.needs = done.needs;
        }
        let Some(id) = done.call else { return };
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        held.written_back_ns = sys::now_ns().saturating_sub(held.called_ns);
        match done.written {
            Written::Done => self.join(id, done.needs),
            // Held without its data written, a caller comes late to the commit and delays everybody.
            Written::Refused => self.give_up(id),
            Written::Lost(errno) => {
                uapi::answer(self.listener.as_raw_fd(), id, Answer::Fail(errno));
                if let Some(held) = self.held.remove(&id)
                    && let Some(figures) = self.places.get(held.place).and_then(|p| p.figures)
                {
                    figures.record_unseen(held.kind, None);
                    figures.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Lets a held call go on without a round.
    fn give_up(&mut self, id: u64) {
        let Some(held) = self.held.remove(&id) else {
            return;
        };
        self.let_go(id);
        self.count_straight(held.thread, held.kind, held.place, held.called_ns);
    }

    /// Brings a call whose data is written into the round for what it needs.
    fn join(&mut self, id: u64, needs: Needs) {
        let policy = &self.settings.policy;
        let Some(held) = self.held.get_mut(&id) else {
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
        if !of_kind.is_gated(policy, held.called_ns) {
            if let Some(caller) = self.callers.get(held.thread) {
                caller.needs = of;
            }
            return self.give_up(id);
        }
        if let Some(caller) = self.callers.get(held.thread) {
            of_kind.count_participant(match of {
                Needs::Commit => &caller.seen.commits,
                Needs::Flush => &caller.seen.flushes,
            });
        }
        let limits = Limits {
            longest_ns: self.settings.longest_wait_ns,
            own_call_ns: place.own.ns(),
        };
        let waiting = of_kind.arrive(policy, role, sys::now_ns(), &limits);
        held.stage = Stage::InRound { of, waiting };
    }

    /// Lets go whoever may go. When to look again.
    fn go_on(&mut self) -> u64 {
        if self.held.is_empty() {
            return u64::MAX;
        }
        let now_ns = sys::now_ns();
        if self.writers.has_orders() {
            let late = self
                .writers
                .take_back(now_ns.saturating_sub(self.settings.longest_wait_ns));
            for id in late {
                self.give_up(id);
            }
        }
        loop {
            let (gone, wake_ns) = self.look_at_held(now_ns);
            if gone == 0 {
                return wake_ns;
            }
        }
    }

    /// Looks at each caller in a round once, and lets go whoever may go: how many, and when to look again. Who goes
    /// may have released its round, so others may go at the next look.
    fn look_at_held(&mut self, now_ns: u64) -> (usize, u64) {
        let policy = self.settings.policy;
        let mut wake_ns = u64::MAX;
        let mut gone = Vec::new();
        // How many of the callers in a gathering round are held here.
        let mut held_here: BTreeMap<(usize, bool), u32> = BTreeMap::new();
        for (&id, held) in &mut self.held {
            let Stage::InRound { of, waiting } = &mut held.stage else {
                wake_ns = wake_ns.min(now_ns.saturating_add(self.settings.longest_wait_ns));
                continue;
            };
            let Some(of_kind) = self
                .places
                .get(held.place)
                .and_then(|place| rounds_of(place, *of))
            else {
                continue;
            };
            match of_kind.look(&policy, waiting, now_ns) {
                Next::WakeAt(ns) => {
                    wake_ns = wake_ns.min(ns);
                    if !waiting.is_released() {
                        *held_here
                            .entry((held.place, *of == Needs::Commit))
                            .or_default() += 1;
                    }
                }
                Next::Go(joined) => gone.push((id, joined)),
            }
        }
        for &(id, joined) in &gone {
            self.let_go(id);
            let Some(held) = self.held.remove(&id) else {
                continue;
            };
            let Stage::InRound { of, .. } = held.stage else {
                continue;
            };
            let Some(place) = self.places.get(held.place) else {
                continue;
            };
            if let Some(of_kind) = rounds_of(place, of) {
                of_kind.complete();
            }
            if let Some(figures) = place.figures {
                figures.record_unseen(
                    held.kind,
                    Some(&RoundPart {
                        written_back_ns: held.written_back_ns,
                        waited_ns: joined.waited_ns,
                        timed_out: joined.timed_out,
                        first_to_return: false,
                    }),
                );
            }
            if let Some(caller) = self.callers.get(held.thread) {
                caller.made = Some(Made {
                    place: held.place,
                    needs: of,
                    called_ns: held.called_ns,
                    answered_ns: now_ns,
                    joined: Some(joined),
                });
            }
        }
        if gone.is_empty() && self.sees_others(&held_here, now_ns) {
            wake_ns = wake_ns.min(now_ns + LOOK_FOR_OTHERS_NS);
        }
        (gone.len(), wake_ns)
    }

    /// Whether others than notified callers have been in these rounds of late.
    fn sees_others(&mut self, held_here: &BTreeMap<(usize, bool), u32>, now_ns: u64) -> bool {
        let has_others = held_here.iter().any(|(&(index, of_commits), &count)| {
            let needs = if of_commits {
                Needs::Commit
            } else {
                Needs::Flush
            };
            let of_kind = self
                .places
                .get(index)
                .and_then(|place| rounds_of(place, needs));
            of_kind.is_some_and(|of_kind| of_kind.gathering().1 > count)
        });
        if has_others {
            self.others_ns = now_ns;
        }
        self.others_ns != 0 && now_ns.saturating_sub(self.others_ns) < OTHERS_NS
    }

    /// Starts a keeper in the place of one that has ended.
    fn replace_keeper(&mut self) {
        let now_ns = sys::now_ns();
        let is_soon = now_ns < self.replaced_ns.saturating_add(REPLACED_NS);
        if self.keeper.is_some() || self.nobody_left || is_soon {
            return;
        }
        self.replaced_ns = now_ns;
        let Ok((here, there)) = UnixStream::pair() else {
            return;
        };
        let source = Source::Own(self.listener.as_fd());
        self.keeper = Keeper::start(&self.ledger, there.as_fd(), source).ok();
        self.control = here;
    }
}

/// What has woken the loop.
#[derive(Clone, Copy, Debug, Default)]
struct Woken {
    bell: bool,
    keeper_ended: bool,
    call: bool,
    nobody_left: bool,
}

/// The rounds of a place for what a call needs.
fn rounds_of(place: &Place, needs: Needs) -> Option<&'static Rounds> {
    let rounds = place.rounds?;
    Some(match needs {
        Needs::Commit => &rounds.commits,
        Needs::Flush => &rounds.flushes,
    })
}
