//! Charges the parts of a critical path to threads and to kinds of waits.

use std::collections::{BTreeMap, HashMap};

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    CriticalPath, CriticalPathPart, EarlierWork, Effects, EndId, PathLink, PathPartKind,
    ProcessorTime, RequestCost, RequestCosts, RunningTimes, ThreadId,
};

use super::client_roots::ClientRoots;
use crate::joined_traces::JoinedTraces;
use crate::others_disk_work::DiskOwner;
use crate::wait_kind::WaitKind;

/// Account that a part of a request's time is charged to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChargeKey {
    /// Process of the charged threads.
    pub(super) process: HostProcess,
    pub(super) kind: WaitKind,
    /// Name of the charged threads without the numbers of a pool.
    pub(super) who: String,
    /// Name of threads of the same process that wait for the charged ones.
    pub(super) waiter: Option<String>,
    /// Thread of another process that is waited for, or that sent the message.
    pub(super) holder: Option<NamedThreads>,
}

/// A process of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostProcess {
    pub(super) host: HostId,
    pub(super) id: Option<u32>,
}

/// Threads of one name of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedThreads {
    pub(super) process: HostProcess,
    /// Name without the numbers of a pool.
    pub(super) name: String,
}

/// Time that is charged to one account, with the evidence.
#[derive(Debug, Clone)]
pub(super) struct ChargedTime {
    pub(super) key: ChargeKey,
    pub(super) ns: u64,
    /// Id of the charged thread.
    pub(super) thread: u32,
    pub(super) cause: Option<&'static str>,
    /// Cause for which the waiting threads of the same process waited.
    pub(super) waiter_cause: Option<&'static str>,
    /// Whether the charged thread had a processor that another thread waited for.
    pub(super) kept_others: bool,
    /// End at which a message was received.
    pub(super) end: Option<EndId>,
    /// Bytes that the disk moved during the wait, by owner.
    pub(super) moved: Vec<(NamedThreads, u64)>,
}

/// Results that charging needs.
#[derive(Debug)]
pub(super) struct PathCharger<'a> {
    pub(super) joined: &'a JoinedTraces,
    pub(super) effects: &'a Effects<'a>,
    pub(super) running: &'a RunningTimes<'a>,
    pub(super) roots: &'a ClientRoots,
}

impl PathCharger<'_> {
    /// Sums a request's time by account, and returns all pieces. `node` is the request's place in
    /// [`Requests::parents`].
    ///
    /// [`Requests::parents`]: luc_fleet_requests::Requests::parents
    pub(super) fn sample(
        &self,
        path: &CriticalPath,
        node: u32,
    ) -> (RequestCosts<ChargeKey>, Vec<ChargedTime>) {
        let mut of_key: BTreeMap<&ChargeKey, HashMap<usize, u64>> = BTreeMap::new();
        let parts = path.parts.iter().enumerate();
        let pieces: Vec<(usize, ChargedTime)> = parts
            .flat_map(|(at, part)| {
                self.charge_part(path, part, node).into_iter().map(move |piece| (at, piece))
            })
            .collect();
        for (at, piece) in &pieces {
            *of_key.entry(&piece.key).or_default().entry(*at).or_default() += piece.ns;
        }
        let charge = |(key, parts): (&ChargeKey, HashMap<usize, u64>)| RequestCost {
            key: key.clone(),
            ns: parts.values().sum(),
            saved_ns: path.saved_ns(|at| parts.get(&at).copied().unwrap_or(0)),
        };
        let sample = RequestCosts {
            time_ns: path.parts.iter().map(length_ns).sum(),
            charges: of_key.into_iter().map(charge).collect(),
        };
        (sample, pieces.into_iter().map(|(_, piece)| piece).collect())
    }

    /// Charges a part. The pieces sum to its length.
    fn charge_part(
        &self,
        path: &CriticalPath,
        part: &CriticalPathPart,
        node: u32,
    ) -> Vec<ChargedTime> {
        // 1. A thread that is kept from its work does not work for another request.
        let chain: Vec<&PathLink> =
            path.chain(part).into_iter().filter_map(|link| path.links.get(link)).collect();
        if self.is_kept_from_work(part) {
            return self.charge_for_request(&chain, part);
        }
        // 2. The thread that is waited for may have worked for another request first. The outermost link counts.
        let own = part.link.and_then(|link| path.links.get(link));
        let busy = chain.iter().find_map(|link| {
            let busy_ns = self.find_busy_until(link, node, own == Some(*link))?;
            let until_ns = busy_ns.min(part.end_ns);
            (until_ns > part.begin_ns).then_some((*link, until_ns))
        });
        let Some((link, until_ns)) = busy else {
            return self.charge_for_request(&chain, part);
        };
        // 3. Split the part: it worked for another request first, then for this one.
        let mut queue = self.new_piece(link.thread, WaitKind::Queue, until_ns - part.begin_ns);
        if !link.is_message {
            queue.key.waiter = Some(self.pool_name(link.waiter));
            queue.waiter_cause = self.joined.cause(link.waiter, link.off_ns).map(WaitCause::name);
        }
        let rest = CriticalPathPart {
            begin_ns: until_ns,
            own_ns: part
                .own_ns
                .map(|[_, end_ns]| [end_ns.saturating_sub(part.end_ns - until_ns), end_ns]),
            ..*part
        };
        let mut pieces = vec![queue];
        if rest.begin_ns < rest.end_ns {
            pieces.extend(self.charge_for_request(&chain, &rest));
        }
        pieces
    }

    /// Whether something outside keeps the thread from any work: another thread has the processors, or the thread is
    /// stopped.
    fn is_kept_from_work(&self, part: &CriticalPathPart) -> bool {
        let cause = || self.joined.cause(part.thread, part.wait_off_ns?);
        match part.kind {
            PathPartKind::Runnable { .. } => true,
            PathPartKind::Blocked => {
                matches!(
                    cause(),
                    Some(WaitCause::Stopped | WaitCause::Throttled | WaitCause::Frozen)
                )
            }
            PathPartKind::Running | PathPartKind::Network { .. } | PathPartKind::Contradictory => {
                false
            }
        }
    }

    /// Time until which the thread that ended a wait worked for another request, on the clock of the request's host.
    /// `is_own`: the charged time is that thread's own.
    fn find_busy_until(&self, link: &PathLink, node: u32, is_own: bool) -> Option<u64> {
        let number = self.effects.request_at(link.thread, link.at_ns)?;
        let root = self.roots.of(number.0);
        // The answer to another client's request was waited for, as on a connection that several share.
        if link.is_message && root.is_some_and(|root| root != node) {
            return Some(link.home_ns);
        }
        match link.before {
            EarlierWork::MayCount => {}
            EarlierWork::OnlyForItself if is_own => {}
            EarlierWork::OnlyForItself | EarlierWork::WasFree => return None,
        }
        let until_ns = self.effects.on_another_before(link.thread, link.at_ns)?;
        link.home_ns.checked_sub(link.at_ns - until_ns)
    }

    /// Charges a part whose thread works for this request, or for none.
    fn charge_for_request(&self, chain: &[&PathLink], part: &CriticalPathPart) -> Vec<ChargedTime> {
        // 1. Follow the chain from the last server down to the thread that held all others up, or to another process.
        let server = chain.iter().rposition(|link| link.is_message);
        let home = || chain.first().map_or(part.thread, |link| link.waiter);
        let mut who = server.map_or_else(home, |at| chain[at].thread);
        let process = self.process_of(who);
        let (mut waiter, mut outsider) = (None, None);
        for link in &chain[server.map_or(0, |at| at + 1)..] {
            let other = self.process_of(link.thread);
            if other.id.is_none() || other != process {
                outsider = Some(*link);
                break;
            }
            waiter.get_or_insert(*link);
            who = link.thread;
        }
        // 2. Charge the part by what that thread did.
        let ns = length_ns(part);
        let mut pieces = match (outsider, part.kind) {
            (Some(link), _) => {
                let cause = self.joined.cause(who, link.off_ns);
                let mut piece = self.new_piece(who, WaitKind::of(cause), ns);
                piece.cause = cause.map(WaitCause::name);
                piece.key.holder = Some(self.named_threads(link.thread));
                vec![piece]
            }
            (None, PathPartKind::Runnable { processor }) => self.charge_runners(part, processor),
            (None, PathPartKind::Running) => vec![self.new_piece(who, WaitKind::Computes, ns)],
            (None, PathPartKind::Contradictory) => {
                vec![self.new_piece(who, WaitKind::Contradictory, ns)]
            }
            (None, PathPartKind::Blocked) => {
                let cause = part.wait_off_ns.and_then(|at_ns| self.joined.cause(who, at_ns));
                let mut piece = self.new_piece(who, WaitKind::of(cause), ns);
                piece.cause = cause.map(WaitCause::name);
                if piece.key.kind == WaitKind::Storage {
                    piece.moved = self.sum_moved(who, part);
                }
                vec![piece]
            }
            (None, PathPartKind::Network { from, to, .. }) => {
                let mut piece = self.new_piece(who, WaitKind::Network, ns);
                piece.key.holder = Some(self.named_threads(from));
                piece.end = Some(to);
                vec![piece]
            }
        };
        // 3. Add an fsync around it, and the threads that waited for it.
        for piece in pieces.iter_mut().filter(|piece| !piece.kept_others) {
            if self.is_in_sync(who, part) && piece.key.kind != WaitKind::Contradictory {
                (piece.key.kind, piece.key.holder) = (WaitKind::Fsync, None);
            }
            if let Some(link) = waiter {
                piece.key.waiter = Some(self.pool_name(link.waiter));
                piece.waiter_cause =
                    self.joined.cause(link.waiter, link.off_ns).map(WaitCause::name);
            }
        }
        pieces
    }

    /// Charges the threads that had the processors while a thread could run. First come threads on the processor that
    /// it then got. For the rest it waited for any other processor, and all threads there are charged in proportion.
    fn charge_runners(&self, part: &CriticalPathPart, processor: Option<u32>) -> Vec<ChargedTime> {
        let ns = length_ns(part);
        let mut left_ns = ns;
        let mut pieces = Vec::new();
        if let Some([begin_ns, end_ns]) = part.own_ns {
            let host = part.thread.host;
            let processors = u64::from(self.joined.host(host).trace.processors.max(1));
            let ran = self.running.during(host, begin_ns, end_ns);
            let is_there = |one: &ProcessorTime| processor.is_some() && one.processor == processor;
            let (there, elsewhere): (Vec<ProcessorTime>, Vec<ProcessorTime>) =
                ran.into_iter().partition(is_there);
            let others = processors - u64::from(processor.is_some());
            for (ran, processors) in [(there, 1), (elsewhere, others)] {
                let all_ns: u128 = ran.iter().map(|one| u128::from(one.ran_ns)).sum();
                let all_ns = all_ns.max(u128::from(processors) * u128::from(ns)).max(1);
                let of_ns = left_ns;
                for one in ran {
                    let share_ns = u128::from(of_ns) * u128::from(one.ran_ns) / all_ns;
                    let share_ns = (share_ns as u64).min(left_ns);
                    left_ns -= share_ns;
                    let mut piece = self.new_piece(one.thread, WaitKind::Computes, share_ns);
                    piece.kept_others = true;
                    pieces.push(piece);
                }
            }
        }
        if left_ns > 0 {
            pieces.push(self.new_piece(part.thread, WaitKind::NoProcessor, left_ns));
        }
        pieces
    }

    fn new_piece(&self, who: ThreadId, kind: WaitKind, ns: u64) -> ChargedTime {
        ChargedTime {
            key: ChargeKey {
                process: self.process_of(who),
                kind,
                who: self.pool_name(who),
                waiter: None,
                holder: None,
            },
            ns,
            thread: who.thread.id,
            cause: None,
            waiter_cause: None,
            kept_others: false,
            end: None,
            moved: Vec::new(),
        }
    }

    fn process_of(&self, thread: ThreadId) -> HostProcess {
        HostProcess {
            host: thread.host,
            id: self.joined.host(thread.host).process_of(thread.thread),
        }
    }

    fn is_in_sync(&self, who: ThreadId, part: &CriticalPathPart) -> bool {
        let same_host = part.own_ns.filter(|_| who.host == part.thread.host);
        same_host.is_some_and(|[begin_ns, end_ns]| {
            self.joined.host(who.host).syncs().has(who.thread.id, begin_ns.midpoint(end_ns))
        })
    }

    /// Bytes that the disks moved while a thread waited for them, by owner.
    fn sum_moved(&self, who: ThreadId, part: &CriticalPathPart) -> Vec<(NamedThreads, u64)> {
        let Some([begin_ns, end_ns]) = part.own_ns.filter(|_| who.host == part.thread.host) else {
            return Vec::new();
        };
        let host = self.joined.host(who.host);
        let moved = host.disks().moved(who.thread.id, begin_ns, end_ns);
        let whose = |(owner, bytes): (DiskOwner, u64)| {
            let thread =
                ThreadId { host: who.host, thread: host.tasks().thread(owner.thread, begin_ns) };
            let process =
                HostProcess { host: who.host, id: Some(owner.process).filter(|&id| id != 0) };
            (NamedThreads { process, name: self.pool_name(thread) }, bytes)
        };
        moved.into_iter().map(whose).collect()
    }

    fn named_threads(&self, thread: ThreadId) -> NamedThreads {
        NamedThreads { process: self.process_of(thread), name: self.pool_name(thread) }
    }

    /// Name of a thread without the numbers of a pool.
    fn pool_name(&self, thread: ThreadId) -> String {
        let name = self.joined.host(thread.host).thread_name(thread.thread);
        let is_number = |c: char| c.is_ascii_digit() || " -_:#/.".contains(c);
        match name.trim_end_matches(is_number) {
            "" => name,
            name => name.to_owned(),
        }
    }
}

fn length_ns(part: &CriticalPathPart) -> u64 {
    part.end_ns - part.begin_ns
}
