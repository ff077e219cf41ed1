//! Time that threads lost, by what it went to and who was there.
//!
//! A thread may get its work by events, such as requests on a socket. Then it loses time when it waits for another
//! thread otherwise. One that gets its work from other threads waits for those when it is idle, too. So some losses
//! count only for threads that also waited for events, which is known in the end.

use std::hash::{Hash, Hasher};

use luc_events::{Tgid, WaitCause};
use luc_waits::{
    FoundRoots, GraphWait, RootKind, RootPart, ThreadFacts, TimeSpan, TraceThread, TraceThreads,
    WaitLink,
};

use crate::accounted_threads::{AccountedThreads, ThreadTime};
use crate::fast_hash::FastMap;
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum number of losses that name who was there. Of further ones only the victim is known.
const MAX_NAMED_LOSSES: usize = 1 << 16;
/// Minimum part of a thread's waits that are for events if it gets its work by these: one in 50.
const MAX_WAITS_PER_EVENT_WAIT: u64 = 50;

/// Maximum time from a thread's last act to its end.
const MAX_END_NS: u64 = 1_000_000;
/// Maximum time from the end of a killed thread's stop to its own end.
const MAX_KILL_NS: u64 = 100_000_000;

/// Kind of lost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LossKind {
    /// Stopped by a signal or a debugger.
    Stopped,
    Frozen,
    Throttled,
    /// Ready, but another thread had the processor.
    Processor,
    /// A look at who had the processor meanwhile. It is no loss of its own.
    ProcessorLook,
    /// Waited for another thread, which had something to give.
    Awaits(Awaited, HolderState),
    /// Slept for a time that it had set itself.
    Sleep,
    PageFault,
    /// Waited for the kernel to free memory.
    MemoryLimit,
    /// Waited for a request that no disk had yet.
    HeldBack,
    /// Waited for files or disks.
    Storage,
    /// Waited for another thread, which waited for files or disks.
    BehindStorage,
    /// Waited, and the rows do not tell for what.
    Unknown,
}

/// Thing that a thread waits for until another one gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Awaited {
    /// A lock of a file.
    Flock,
    /// A place in a pipe.
    PipeReader,
    /// The answer of whoever serves a file system.
    FileServer,
    /// A lock in memory, as of a mutex.
    Lock,
}

/// Causes of waits for others that no idle thread has, in the order of what is awaited.
const SURE_CAUSES: [(WaitCause, Awaited); 3] = [
    (WaitCause::Flock, Awaited::Flock),
    (WaitCause::FullPipe, Awaited::PipeReader),
    (WaitCause::FileServer, Awaited::FileServer),
];

impl Awaited {
    /// Returns what a thread waits for by a cause that no idle thread has.
    pub(crate) fn of(cause: WaitCause) -> Option<Self> {
        SURE_CAUSES.iter().find(|(sure, _)| *sure == cause).map(|&(_, awaited)| awaited)
    }
}

/// Occupation of the other thread while a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HolderState {
    Computes,
    Sleeps,
    /// It waits for events itself: for its own client, or for another service.
    AwaitsEvents,
    /// The rows do not tell, or not even who it is.
    NotKnown,
}

/// A loss of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActorLoss {
    pub(crate) kind: LossKind,
    pub(crate) victim: Tgid,
    /// Process that was stopped, that had the processor or that had the lock; 0 if unknown.
    pub(crate) at: Tgid,
    /// Process that let the stopped one go on; 0 if unknown.
    pub(crate) by: Tgid,
    pub(crate) ns: u64,
}

/// A loss of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadLoss {
    kind: LossKind,
    victim: TraceThread,
    at: Option<TraceThread>,
    by: Option<TraceThread>,
    /// Whether it counts only if the victim gets its work by events.
    is_doubtful: bool,
}

/// Time of a thread's waits that were followed, or need not be. Its account has it, too.
#[derive(Clone, Copy, Debug, Default)]
struct FollowedTime {
    locks_ns: u64,
    polls_ns: u64,
    ready_ns: u64,
    stopped_ns: u64,
    /// End of its last stop.
    stopped_until_ns: u64,
    /// Waits for locks of files, for readers of pipes and for file servers.
    sure_ns: [u64; SURE_CAUSES.len()],
    /// Losses that count only if it gets its work by events.
    doubtful_ns: u64,
}

/// Losses by waits for other threads, summed.
#[derive(Debug, Default)]
pub(crate) struct WaitLosses {
    followed: Vec<FollowedTime>,
    ns: FastMap<ThreadLoss, u64>,
}

impl Hash for ThreadLoss {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let number = |thread: Option<TraceThread>| thread.map_or(u32::MAX, |thread| thread.0);
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        state.write_u64(pair(self.victim.0, number(self.at)));
        state.write_u64(pair(self.kind.code() << 1 | u32::from(self.is_doubtful), number(self.by)));
    }
}

impl LossKind {
    fn code(self) -> u32 {
        match self {
            Self::Stopped => 0,
            Self::Frozen => 1,
            Self::Throttled => 2,
            Self::Processor => 3,
            Self::ProcessorLook => 4,
            Self::Sleep => 5,
            Self::PageFault => 6,
            Self::Storage => 7,
            Self::BehindStorage => 8,
            Self::Unknown => 9,
            Self::MemoryLimit => 10,
            Self::HeldBack => 11,
            Self::Awaits(awaited, state) => 16 | (awaited as u32) << 2 | state as u32,
        }
    }
}

impl ThreadLoss {
    fn of(kind: LossKind, victim: TraceThread, at: Option<TraceThread>) -> Self {
        Self { kind, victim, at, by: None, is_doubtful: false }
    }

    fn doubtful(self) -> Self {
        Self { is_doubtful: true, ..self }
    }
}

impl WaitLosses {
    /// Takes in a wait of a stopped thread. Its waker is who sent SIGCONT.
    pub(crate) fn add_stop(&mut self, wait: &GraphWait) {
        let ns = wait.on_ns.saturating_sub(wait.off_ns);
        let stopped = ThreadLoss::of(LossKind::Stopped, wait.thread, Some(wait.thread));
        self.lose(ThreadLoss { by: wait.waker, ..stopped }, ns);
        let blocked_ns = wait.woken_ns.unwrap_or(wait.on_ns).saturating_sub(wait.off_ns);
        let followed = self.followed(wait.thread);
        followed.stopped_ns.grow(blocked_ns);
        followed.stopped_until_ns = wait.on_ns;
        followed.ready_ns.grow(ns - blocked_ns.min(ns));
    }

    /// Takes in a wait for a lock or a condition variable that no thread ended. Threads of a pool wait so for work.
    pub(crate) fn add_timeout(&mut self, wait: &GraphWait) {
        let blocked_ns = wait.woken_ns.unwrap_or(wait.on_ns).saturating_sub(wait.off_ns);
        self.followed(wait.thread).locks_ns.grow(blocked_ns);
    }

    /// Takes in the roots of a wait.
    pub(crate) fn add(&mut self, thread: TraceThread, found: &FoundRoots, facts: &[ThreadFacts]) {
        let process = |thread: TraceThread| facts.get(thread.0 as usize).map(|facts| facts.process);
        let span = found.parts.first().zip(found.parts.last());
        let span = span.map(|(first, last)| TimeSpan::new(first.span.from_ns(), last.span.to_ns()));
        for part in &found.parts {
            let ns = part.span.length_ns();
            match found.first_link(part) {
                None => self.add_own(thread, part, ns),
                Some(link) if is_for_end_of(link, span, facts) => {
                    self.followed(thread).locks_ns.grow(ns);
                }
                Some(link) => {
                    let holder = part.thread.map(|holder| holder.thread);
                    let is_inside = holder.is_some_and(|holder| process(holder) == process(thread));
                    self.add_followed(thread, part, link, is_inside, ns);
                }
            }
        }
    }

    /// Takes in who had the processor while a thread was ready.
    pub(crate) fn add_look(&mut self, thread: TraceThread, found: &FoundRoots) {
        for part in &found.parts {
            let is_known = part.root.kind == RootKind::Processor;
            let runner = part.thread.filter(|_| is_known).map(|runner| runner.thread);
            let look = ThreadLoss::of(LossKind::ProcessorLook, thread, runner);
            self.lose(look, part.span.length_ns());
        }
    }

    /// Adds time of the thread itself. The rest of it is in its account.
    fn add_own(&mut self, thread: TraceThread, part: &RootPart, ns: u64) {
        if (part.root.kind, part.cause) == (RootKind::Timer, Some(WaitCause::Futex)) {
            self.followed(thread).locks_ns.grow(ns);
        }
    }

    /// Adds time in which a thread waited for another one.
    fn add_followed(
        &mut self,
        thread: TraceThread,
        part: &RootPart,
        link: &WaitLink,
        is_inside: bool,
        ns: u64,
    ) {
        let at = part.thread.map(|at| at.thread);
        let lost = |kind| ThreadLoss::of(kind, thread, at);
        if let Some(awaited) = link.cause.and_then(Awaited::of) {
            self.add_sure(thread, part, awaited, ns);
            return;
        }
        let is_poll = link.cause == Some(WaitCause::Poll);
        if is_poll {
            self.followed(thread).polls_ns.grow(ns);
        } else {
            self.followed(thread).locks_ns.grow(ns);
        }
        let lock = |state| lost(LossKind::Awaits(Awaited::Lock, state));
        let loss = match (part.root.kind, part.cause) {
            (RootKind::Fsync | RootKind::Journal | RootKind::Device | RootKind::Memory, _) => {
                ThreadLoss { is_doubtful: is_poll, ..lost(LossKind::BehindStorage) }
            }
            (RootKind::Computes, _) => lock(HolderState::Computes).doubtful(),
            (RootKind::Processor | RootKind::NoProcessor, _) => {
                ThreadLoss::of(LossKind::Processor, thread, None).doubtful()
            }
            (RootKind::Timer, Some(WaitCause::Sleep)) => {
                ThreadLoss { is_doubtful: is_poll, ..lock(HolderState::Sleeps) }
            }
            // A thread that polls for its process hands the work over.
            (RootKind::Timer, Some(WaitCause::Poll)) if is_inside => return,
            (RootKind::Timer, _) => lock(HolderState::Sleeps).doubtful(),
            (RootKind::Unknown(_), Some(WaitCause::Poll | WaitCause::PipeSocket)) => {
                if is_inside {
                    return;
                }
                lock(HolderState::AwaitsEvents).doubtful()
            }
            (RootKind::Unknown(_), _) => lost(LossKind::Unknown).doubtful(),
            (kind, _) => match kept_from_running(kind) {
                Some(kind) => ThreadLoss {
                    by: part.other.map(|other| other.thread),
                    is_doubtful: is_poll,
                    ..lost(kind)
                },
                None => return,
            },
        };
        self.lose(loss, ns);
    }

    /// Adds time in which a thread waited for another one by a cause that no idle thread has.
    fn add_sure(&mut self, thread: TraceThread, part: &RootPart, awaited: Awaited, ns: u64) {
        self.followed(thread).sure_ns[awaited as usize].grow(ns);
        let kind = match (part.root.kind, part.cause) {
            (RootKind::Fsync | RootKind::Journal | RootKind::Device | RootKind::Memory, _) => {
                LossKind::BehindStorage
            }
            (RootKind::Computes, _) => LossKind::Awaits(awaited, HolderState::Computes),
            (RootKind::Processor | RootKind::NoProcessor, _) => LossKind::Processor,
            (RootKind::Timer, _) => LossKind::Awaits(awaited, HolderState::Sleeps),
            (RootKind::Unknown(_), Some(WaitCause::Poll | WaitCause::PipeSocket)) => {
                LossKind::Awaits(awaited, HolderState::AwaitsEvents)
            }
            (kind, _) => {
                kept_from_running(kind).unwrap_or(LossKind::Awaits(awaited, HolderState::NotKnown))
            }
        };
        let at = part.thread.map(|at| at.thread);
        let by = part.other.map(|other| other.thread);
        self.lose(ThreadLoss { by, ..ThreadLoss::of(kind, thread, at) }, ns);
    }

    fn lose(&mut self, loss: ThreadLoss, ns: u64) {
        if ns == 0 {
            return;
        }
        if loss.is_doubtful {
            self.followed(loss.victim).doubtful_ns.grow(ns);
        }
        let is_full = self.ns.len() >= MAX_NAMED_LOSSES && !self.ns.contains_key(&loss);
        let loss = if is_full { ThreadLoss { at: None, by: None, ..loss } } else { loss };
        self.ns.entry(loss).or_default().grow(ns);
    }

    fn followed(&mut self, thread: TraceThread) -> &mut FollowedTime {
        let index = thread.0 as usize;
        if index >= self.followed.len() {
            self.followed.resize(index + 1, FollowedTime::default());
        }
        &mut self.followed[index]
    }

    /// Returns the losses that count, by process: those in the accounts of threads, and those that were followed.
    pub(crate) fn by_actor(
        &self,
        threads: &TraceThreads,
        accounts: &AccountedThreads,
    ) -> Vec<ActorLoss> {
        let known: FastMap<u32, FollowedTime> = (0..)
            .map(TraceThread)
            .zip(&self.followed)
            .filter_map(|(thread, followed)| Some((threads.number(thread)?.0, *followed)))
            .collect();
        let mut times: FastMap<u32, ThreadTime> = FastMap::default();
        let mut all = Vec::new();
        for time in accounts.thread_times() {
            let followed = known.get(&time.thread.0).copied().unwrap_or_default();
            all.extend(losses_of_account(&time, &followed));
            times.insert(time.thread.0, time);
        }
        let process = |thread: Option<TraceThread>| {
            Tgid(thread.and_then(|thread| threads.process(thread)).unwrap_or_default())
        };
        let time_of = |thread: Option<TraceThread>| {
            thread.and_then(|thread| times.get(&threads.number(thread)?.0))
        };
        for (loss, &ns) in &self.ns {
            let followed = self.followed.get(loss.victim.0 as usize).copied().unwrap_or_default();
            let victim = time_of(Some(loss.victim));
            if loss.is_doubtful && !victim.is_some_and(|time| gets_events(time, &followed)) {
                continue;
            }
            // Who kills a stopped thread does not let it go on.
            let ended_ns = threads.ended_ns(loss.victim).unwrap_or(u64::MAX);
            let is_killed = loss.kind == LossKind::Stopped
                && ended_ns <= followed.stopped_until_ns.saturating_add(MAX_KILL_NS);
            let actors = ActorLoss {
                kind: loss.kind,
                victim: process(Some(loss.victim)),
                at: process(loss.at),
                by: process(loss.by.filter(|_| !is_killed)),
                ns,
            };
            // Who computes may have waited briefly in truth.
            let is_sure = !matches!(loss.kind, LossKind::Awaits(_, HolderState::Computes));
            let computes = time_of(loss.at).filter(|_| !is_sure).map_or(1.0, computed_part);
            let known_ns = ((ns as f64 * computes) as u64).min(ns);
            all.push(ActorLoss { ns: known_ns, ..actors });
            all.push(ActorLoss { kind: LossKind::Unknown, ns: ns - known_ns, ..actors });
        }
        merged(all)
    }
}

/// Returns whether a wait was for the other thread's end, as by `pthread_join`.
fn is_for_end_of(link: &WaitLink, span: Option<TimeSpan>, facts: &[ThreadFacts]) -> bool {
    let other = facts.get(link.other.thread.0 as usize);
    let ended_ns = other.and_then(|other| other.ended_ns);
    link.cause == Some(WaitCause::Futex)
        && ended_ns.zip(span).is_some_and(|(ended_ns, span)| {
            let last_ns = span.to_ns().saturating_add(MAX_END_NS);
            (span.from_ns()..=last_ns).contains(&ended_ns)
        })
}

/// Returns the losses in a thread's account, apart from what was followed.
fn losses_of_account(time: &ThreadTime, followed: &FollowedTime) -> Vec<ActorLoss> {
    let none = Tgid(0);
    let lost = |kind, at, ns| ActorLoss { kind, victim: time.process, at, by: none, ns };
    let own = |kind, ns| lost(kind, time.process, ns);
    let mut all = vec![
        lost(LossKind::Storage, none, time.storage_ns()),
        lost(LossKind::PageFault, none, time.blocked_ns(WaitCause::PageFault)),
        lost(LossKind::MemoryLimit, none, time.blocked_ns(WaitCause::MemoryLimit)),
        lost(LossKind::HeldBack, none, time.blocked_ns(WaitCause::HeldBack)),
        lost(LossKind::Processor, none, time.runnable_ns().saturating_sub(followed.ready_ns)),
        own(LossKind::Frozen, time.blocked_ns(WaitCause::Frozen)),
        own(LossKind::Throttled, time.blocked_ns(WaitCause::Throttled)),
        own(
            LossKind::Stopped,
            time.blocked_ns(WaitCause::Stopped).saturating_sub(followed.stopped_ns),
        ),
    ];
    for (cause, awaited) in SURE_CAUSES {
        let ns = time.blocked_ns(cause).saturating_sub(followed.sure_ns[awaited as usize]);
        all.push(lost(LossKind::Awaits(awaited, HolderState::NotKnown), none, ns));
    }
    if gets_events(time, followed) {
        all.push(own(LossKind::Sleep, time.blocked_ns(WaitCause::Sleep)));
        all.push(lost(LossKind::Unknown, none, unfollowed_ns(time, followed)));
    }
    all
}

/// Returns the time of a thread's waits for others that were not followed: most were too brief.
fn unfollowed_ns(time: &ThreadTime, followed: &FollowedTime) -> u64 {
    let locks = [WaitCause::Futex, WaitCause::Other].map(|cause| time.blocked_ns(cause));
    locks[0].saturating_add(locks[1]).saturating_sub(followed.locks_ns)
}

/// Returns whether a thread gets its work by events. One that waits for others alone gets it from them.
fn gets_events(time: &ThreadTime, followed: &FollowedTime) -> bool {
    let events = [WaitCause::Poll, WaitCause::PipeSocket, WaitCause::AsyncIo];
    let events_ns =
        events.iter().fold(0, |sum: u64, &cause| sum.saturating_add(time.blocked_ns(cause)));
    let events_ns = events_ns.saturating_sub(followed.polls_ns);
    let doubtful_ns = [unfollowed_ns(time, followed), time.blocked_ns(WaitCause::Sleep)]
        .into_iter()
        .fold(followed.doubtful_ns, u64::saturating_add);
    events_ns > 0 && events_ns.saturating_mul(MAX_WAITS_PER_EVENT_WAIT) >= doubtful_ns
}

/// Returns the part of a time without rows in which a thread was not in a brief wait.
fn computed_part(time: &ThreadTime) -> f64 {
    let between_ns = time.cpu_ns().saturating_add(time.brief_ns());
    if between_ns == 0 { 1.0 } else { time.cpu_ns() as f64 / between_ns as f64 }
}

/// Sums losses that name the same processes, most first.
fn merged(mut losses: Vec<ActorLoss>) -> Vec<ActorLoss> {
    let actors = |loss: &ActorLoss| (loss.kind, loss.victim, loss.at, loss.by);
    losses.sort_unstable_by_key(actors);
    losses.dedup_by(|next, sum| {
        let is_same = actors(next) == actors(sum);
        if is_same {
            sum.ns.grow(next.ns);
        }
        is_same
    });
    losses.retain(|loss| loss.ns > 0);
    losses.sort_by_key(|loss| std::cmp::Reverse(loss.ns));
    losses
}

fn kept_from_running(kind: RootKind) -> Option<LossKind> {
    match kind {
        RootKind::Stopped => Some(LossKind::Stopped),
        RootKind::Frozen => Some(LossKind::Frozen),
        RootKind::Throttled => Some(LossKind::Throttled),
        _ => None,
    }
}
