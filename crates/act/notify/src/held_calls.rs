//! The calls that wait for their answers, from the early write to the moment at which they may go on.
//!
//! They are looked at only if one may go: when its time has come, or when a round was released. So a call costs the
//! same however many are held.

use std::collections::BTreeMap;
use std::sync::Arc;

use luc_gate::figures::GatedCallKind;
use luc_gate::gate_policy::GatePolicy;
use luc_gate::rounds::{
    DurabilityNeed, HoldLimits, JoinedRound, RoundRole, RoundWaiter, Rounds, WaiterStep,
};

use crate::call_maker::CallMaker;
use crate::fetch_file::FileInode;
use crate::kept_file::KeptFile;
use crate::known_callers::CallerId;
use crate::release_watcher::{ReleaseWatcher, WatchedCall};
use crate::synced_file_systems::FileSystemId;

/// Interval between two looks at a round that has callers from elsewhere, where the watcher does not notice its
/// release.
const OTHERS_LOOK_INTERVAL_NS: u64 = 200_000;

/// Time for which callers from elsewhere are expected after they were last seen.
const OTHERS_EXPECTED_NS: u64 = 5_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NotifiedCall {
    pub(crate) who: CallMaker,
    pub(crate) caller: CallerId,
    pub(crate) kind: GatedCallKind,
    pub(crate) called_ns: u64,
}

/// A call that waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct HeldCall {
    pub(crate) call: NotifiedCall,
    pub(crate) file: Arc<KeptFile>,
    pub(crate) inode: FileInode,
    pub(crate) place: Option<FileSystemId>,
    /// Whether closing the file may wait for a server.
    pub(crate) is_servers: bool,
    /// Time that writing its data took.
    pub(crate) written_back_ns: u64,
}

/// A round to wait in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingRounds {
    pub(crate) rounds: &'static Rounds,
    /// Need that the rounds serve.
    pub(crate) of: DurabilityNeed,
}

/// Way in which a call joins a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinRequest<'a> {
    pub(crate) policy: &'a GatePolicy,
    pub(crate) role: RoundRole,
    pub(crate) limits: &'a HoldLimits,
}

/// A call that may go on.
#[derive(Clone, Debug)]
pub(crate) struct ReleasedCall {
    pub(crate) id: u64,
    pub(crate) held: HeldCall,
    /// The round that it was in.
    pub(crate) room: WaitingRounds,
    /// Its way through the round.
    pub(crate) joined: JoinedRound,
}

/// All calls that wait, by their numbers, and so in the order of their arrival.
#[derive(Debug)]
pub(crate) struct HeldCalls {
    calls: BTreeMap<u64, (HeldCall, Option<InRound>)>,
    /// The rounds that callers wait in, as they were at the last look.
    gathering: Vec<Gathering>,
    /// Time of the next look at all calls.
    look_ns: u64,
    /// Time at which callers from elsewhere were last seen in a round.
    others_ns: u64,
    /// Notices that they release one.
    watcher: Option<ReleaseWatcher>,
}

#[derive(Clone, Copy, Debug)]
struct InRound {
    room: WaitingRounds,
    waiting: RoundWaiter,
}

#[derive(Debug)]
struct Gathering {
    rounds: &'static Rounds,
    generation: u32,
    /// Number of its callers that are held here.
    callers: u32,
    /// Calls of these callers that go as soon as the round is released.
    calls: Vec<WatchedCall>,
}

impl HeldCalls {
    pub(crate) fn new(watcher: Option<ReleaseWatcher>) -> Self {
        Self {
            calls: BTreeMap::new(),
            gathering: Vec::new(),
            look_ns: u64::MAX,
            others_ns: 0,
            watcher,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// All of them, by their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &HeldCall)> {
        self.calls.iter().map(|(&id, (held, _))| (id, held))
    }

    /// Takes a call whose data is being written.
    pub(crate) fn insert(&mut self, id: u64, held: HeldCall) {
        self.calls.insert(id, (held, None));
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut HeldCall> {
        self.calls.get_mut(&id).map(|(held, _)| held)
    }

    /// Gives a call up.
    pub(crate) fn remove(&mut self, id: u64) -> Option<HeldCall> {
        self.calls.remove(&id).map(|(held, _)| held)
    }

    /// Brings a call whose data is written into a round.
    pub(crate) fn join(
        &mut self,
        id: u64,
        room: WaitingRounds,
        request: JoinRequest<'_>,
        now_ns: u64,
    ) {
        let Some((held, _)) = self.calls.get(&id) else {
            return;
        };
        let JoinRequest { policy, role, limits } = request;
        let mut waiting = room.rounds.arrive(policy, role, now_ns, limits);
        match room.rounds.look(policy, &mut waiting, now_ns) {
            // It has filled the round, or its time is up: others go with it.
            WaiterStep::Go(_) => self.look_ns = 0,
            WaiterStep::WakeAt(ns) => {
                self.look_ns = self.look_ns.min(ns);
                note_gathering(&mut self.gathering, room.rounds, &waiting, id, held);
                if self.misses_others(now_ns) {
                    self.look_ns = self.look_ns.min(now_ns + OTHERS_LOOK_INTERVAL_NS);
                }
            }
        }
        if let Some((_, in_round)) = self.calls.get_mut(&id) {
            *in_round = Some(InRound { room, waiting });
        }
    }

    /// Takes out the calls that may go on at `now_ns`.
    pub(crate) fn take_ready(&mut self, policy: &GatePolicy, now_ns: u64) -> Vec<ReleasedCall> {
        let was_released =
            |gathering: &Gathering| gathering.rounds.gathering().0 != gathering.generation;
        let mut all = Vec::new();
        if now_ns < self.look_ns && !self.gathering.iter().any(was_released) {
            return all;
        }
        loop {
            let gone = self.look(policy, now_ns);
            if gone.is_empty() {
                return all;
            }
            // Who goes may have released its round, so others may go at the next look.
            all.extend(gone);
        }
    }

    /// Time of the next look; `u64::MAX` if only an event changes anything.
    pub(crate) fn look_ns(&self) -> u64 {
        self.look_ns
    }

    /// Looks at each call in a round once, and takes out those that may go.
    fn look(&mut self, policy: &GatePolicy, now_ns: u64) -> Vec<ReleasedCall> {
        let mut gone = Vec::new();
        self.look_ns = u64::MAX;
        self.gathering.clear();
        for (&id, (held, in_round)) in &mut self.calls {
            let Some(InRound { room, waiting }) = in_round else {
                continue;
            };
            match room.rounds.look(policy, waiting, now_ns) {
                WaiterStep::Go(joined) => {
                    gone.push(ReleasedCall { id, held: held.clone(), room: *room, joined })
                }
                WaiterStep::WakeAt(ns) => {
                    self.look_ns = self.look_ns.min(ns);
                    if !waiting.is_released() {
                        note_gathering(&mut self.gathering, room.rounds, waiting, id, held);
                    }
                }
            }
        }
        for gone in &gone {
            self.calls.remove(&gone.id);
        }
        if gone.iter().any(|one| went_with_others(one, &gone)) {
            self.others_ns = now_ns;
        }
        if self.misses_others(now_ns) && !self.gathering.is_empty() {
            self.look_ns = self.look_ns.min(now_ns + OTHERS_LOOK_INTERVAL_NS);
        }
        gone
    }

    /// Whether callers from elsewhere may release these rounds unnoticed.
    fn misses_others(&mut self, now_ns: u64) -> bool {
        if !self.sees_others(now_ns) {
            return false;
        }
        let Some(watcher) = &self.watcher else {
            return true;
        };
        let is_watched = |gathering: &Gathering| {
            watcher.watch(gathering.rounds, gathering.generation, &gathering.calls)
        };
        !self.gathering.iter().all(is_watched)
    }

    /// Whether callers from elsewhere were in these rounds recently.
    fn sees_others(&mut self, now_ns: u64) -> bool {
        let has_others = |gathering: &Gathering| gathering.rounds.gathering().1 > gathering.callers;
        if self.gathering.iter().any(has_others) {
            self.others_ns = now_ns;
        }
        self.others_ns != 0 && now_ns.saturating_sub(self.others_ns) < OTHERS_EXPECTED_NS
    }
}

/// Whether callers from elsewhere were released with this call. `gone` are all calls that go from here.
fn went_with_others(one: &ReleasedCall, gone: &[ReleasedCall]) -> bool {
    let generation = one.joined.generation;
    let is_with = |other: &&ReleasedCall| {
        std::ptr::eq(other.room.rounds, one.room.rounds) && other.joined.generation == generation
    };
    let from_here = gone.iter().filter(is_with).count();
    one.room.rounds.released_in(generation) as usize > from_here
}

/// Notes that a caller waits with this call in a round that gathers.
fn note_gathering(
    all: &mut Vec<Gathering>,
    rounds: &'static Rounds,
    waiting: &RoundWaiter,
    id: u64,
    held: &HeldCall,
) {
    let generation = waiting.generation();
    let is_this = |gathering: &Gathering| {
        std::ptr::eq(gathering.rounds, rounds) && gathering.generation == generation
    };
    let index = all.iter().position(is_this).unwrap_or_else(|| {
        all.push(Gathering { rounds, generation, callers: 0, calls: Vec::new() });
        all.len() - 1
    });
    all[index].callers += 1;
    if waiting.goes_at_once() {
        let file = Arc::clone(&held.file);
        all[index].calls.push(WatchedCall { id, file });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_gate::writeback_errors;

    fn call(thread: u32) -> HeldCall {
        let who = CallMaker { thread, process: 1, number: 0, fd: 3 };
        let file = std::fs::File::open("/dev/null").unwrap();
        HeldCall {
            file: Arc::new(KeptFile::new(file.into(), who)),
            inode: FileInode::default(),
            call: NotifiedCall {
                who,
                caller: CallerId::default(),
                kind: GatedCallKind::Fsync,
                called_ns: writeback_errors::now_ns(),
            },
            place: Some(FileSystemId(0)),
            is_servers: false,
            written_back_ns: 0,
        }
    }

    /// Rounds that a caller of policy `delay` may join.
    fn rounds(policy: &GatePolicy) -> &'static Rounds {
        // SAFETY: all zeros is the valid initial state.
        let rounds: Box<Rounds> = Box::new(unsafe { std::mem::zeroed() });
        rounds.start(policy);
        Box::leak(rounds)
    }

    const LIMITS: HoldLimits = HoldLimits { longest_ns: 20_000_000, own_call_ns: 0 };

    fn member(policy: &GatePolicy) -> JoinRequest<'_> {
        JoinRequest { policy, role: RoundRole::Member, limits: &LIMITS }
    }

    #[test]
    fn all_of_a_round_go_when_its_timer_runs_out_and_none_before() {
        let policy: GatePolicy = "delay:5ms".parse().unwrap();
        let room = WaitingRounds { rounds: rounds(&policy), of: DurabilityNeed::Commit };
        let mut calls = HeldCalls::new(None);
        let now_ns = writeback_errors::now_ns();
        for id in 1..=3 {
            calls.insert(id, call(id as u32));
            calls.join(id, room, member(&policy), now_ns);
        }
        // One whose data is not written yet.
        calls.insert(4, call(4));
        assert!(calls.take_ready(&policy, now_ns).is_empty());
        let look_ns = calls.look_ns();
        assert!((now_ns..=now_ns + 5_000_000).contains(&look_ns));
        let gone = calls.take_ready(&policy, now_ns + 6_000_000);
        assert_eq!(gone.iter().map(|gone| gone.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(calls.all().map(|(id, _)| id).collect::<Vec<_>>(), [4]);
        assert_eq!(calls.look_ns(), u64::MAX);
    }

    #[test]
    fn a_round_that_others_release_is_noticed() {
        let policy: GatePolicy = "delay:15ms".parse().unwrap();
        let rounds = rounds(&policy);
        let room = WaitingRounds { rounds, of: DurabilityNeed::Commit };
        let mut calls = HeldCalls::new(None);
        calls.insert(1, call(1));
        calls.join(1, room, member(&policy), writeback_errors::now_ns());
        // Another caller sleeps in the round; the first one here has the timer, which runs out for both.
        let other = std::thread::spawn(move || rounds.join(&policy, RoundRole::Member, &LIMITS));
        while rounds.gathering().1 < 2 {
            std::thread::yield_now();
        }
        let now_ns = writeback_errors::now_ns();
        assert!(calls.look(&policy, now_ns).is_empty());
        assert!(calls.look_ns() <= now_ns + OTHERS_LOOK_INTERVAL_NS);
        other.join().unwrap();
        assert_eq!(calls.take_ready(&policy, writeback_errors::now_ns()).len(), 1);
        assert!(calls.is_empty());
    }

    /// Two event loops with one caller each, as two `luc run`s of services on one journal: neither wakes the other.
    #[test]
    fn a_round_that_another_loop_releases_is_noticed_by_each() {
        let policy: GatePolicy = "delay:5ms".parse().unwrap();
        let room = WaitingRounds { rounds: rounds(&policy), of: DurabilityNeed::Commit };
        let (mut first, mut second) = (HeldCalls::new(None), HeldCalls::new(None));
        let now_ns = writeback_errors::now_ns();
        let both_join = |first: &mut HeldCalls, second: &mut HeldCalls, now_ns: u64| {
            for (calls, id) in [(&mut *first, 1), (&mut *second, 2)] {
                calls.insert(id, call(id as u32));
                calls.join(id, room, member(&policy), now_ns);
            }
            (first.look_ns(), second.look_ns())
        };
        // The second finds the first there; the first cannot know of anybody yet.
        let (_, second_looks_ns) = both_join(&mut first, &mut second, now_ns);
        assert!(second_looks_ns <= now_ns + OTHERS_LOOK_INTERVAL_NS);
        let later_ns = now_ns + 6_000_000;
        assert_eq!(first.take_ready(&policy, later_ns).len(), 1);
        assert_eq!(second.take_ready(&policy, later_ns).len(), 1);
        // From then on it does.
        let (first_looks_ns, _) = both_join(&mut first, &mut second, later_ns);
        assert!(first_looks_ns <= later_ns + OTHERS_LOOK_INTERVAL_NS);
    }
}
