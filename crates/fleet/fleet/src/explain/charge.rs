//! To whom and to what the parts of a path are charged.

use std::collections::{BTreeMap, HashMap};

use luc_events::Cause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    Before, Charge, Effects, EndId, Link, Part, PartKind, Path, Ran, Running, Sample, ThreadId,
};

use super::kind::Kind;
use super::roots::Roots;
use crate::disks::Owner;
use crate::joined::Joined;

/// What a part of a request's time is charged to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Whose time it is.
    pub(super) process: Process,
    pub(super) kind: Kind,
    /// Which of its threads: their name without numbers.
    pub(super) who: String,
    /// The threads of the same process that wait for those.
    pub(super) waiter: Option<String>,
    /// For whom of another process they wait, or who sent the message.
    pub(super) holder: Option<(Process, String)>,
}

/// A process of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) host: HostId,
    pub(super) id: Option<u32>,
}

/// Some time, what it is charged to, and more about it.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) key: Key,
    pub(super) ns: u64,
    /// The thread that is charged.
    pub(super) thread: u32,
    pub(super) cause: Option<&'static str>,
    /// Why the threads of the same process waited for it.
    pub(super) waiter_cause: Option<&'static str>,
    /// Whether it is charged for a processor that another thread waited for.
    pub(super) kept_others: bool,
    /// Where a message came in.
    pub(super) end: Option<EndId>,
    /// What the disk that it waited for moved meanwhile: bytes, and whose they were.
    pub(super) moved: Vec<(Process, String, u64)>,
}

/// What is needed to charge paths.
#[derive(Debug)]
pub(super) struct Charger<'a> {
    pub(super) joined: &'a Joined,
    pub(super) effects: &'a Effects<'a>,
    pub(super) running: &'a Running<'a>,
    pub(super) roots: &'a Roots,
}

impl Charger<'_> {
    /// The time of a request by key, and all pieces. `node` is its place in [`Requests::parents`].
    ///
    /// [`Requests::parents`]: luc_fleet_requests::Requests::parents
    pub(super) fn sample(&self, path: &Path, node: u32) -> (Sample<Key>, Vec<Piece>) {
        let mut of_key: BTreeMap<&Key, HashMap<usize, u64>> = BTreeMap::new();
        let pieces: Vec<(usize, Piece)> = path
            .parts
            .iter()
            .enumerate()
            .flat_map(|(at, part)| {
                let pieces = self.pieces(path, part, node);
                pieces.into_iter().map(move |piece| (at, piece))
            })
            .collect();
        for (at, piece) in &pieces {
            *of_key.entry(&piece.key).or_default().entry(*at).or_default() += piece.ns;
        }
        let charge = |(key, parts): (&Key, HashMap<usize, u64>)| Charge {
            key: key.clone(),
            ns: parts.values().sum(),
            saved_ns: path.saved_ns(|at| parts.get(&at).copied().unwrap_or(0)),
        };
        let sample = Sample {
            time_ns: path.parts.iter().map(length_ns).sum(),
            charges: of_key.into_iter().map(charge).collect(),
        };
        (sample, pieces.into_iter().map(|(_, piece)| piece).collect())
    }

    /// What a part is charged to. The pieces sum to its length.
    fn pieces(&self, path: &Path, part: &Part, node: u32) -> Vec<Piece> {
        let chain: Vec<&Link> =
            path.chain(part).into_iter().filter_map(|link| path.links.get(link)).collect();
        // Nobody works who is kept from it.
        if self.is_kept_from_work(part) {
            return self.charged(&chain, part);
        }
        // Who is waited for may have worked for another request at first. The outermost one counts.
        let own = part.link.and_then(|link| path.links.get(link));
        let busy = chain.iter().find_map(|link| {
            let busy_ns = self.busy_until(link, node, own == Some(*link))?;
            let until_ns = busy_ns.min(part.end_ns);
            (until_ns > part.begin_ns).then_some((*link, until_ns))
        });
        let Some((link, until_ns)) = busy else {
            return self.charged(&chain, part);
        };
        let mut queue = self.piece(link.thread, Kind::Queue, until_ns - part.begin_ns);
        if !link.is_message {
            queue.key.waiter = Some(self.class(link.waiter));
            queue.waiter_cause = self.cause(link.waiter, link.off_ns).map(Cause::name);
        }
        let rest = Part {
            begin_ns: until_ns,
            own_ns: part
                .own_ns
                .map(|[_, end_ns]| [end_ns.saturating_sub(part.end_ns - until_ns), end_ns]),
            ..*part
        };
        let mut pieces = vec![queue];
        if rest.begin_ns < rest.end_ns {
            pieces.extend(self.charged(&chain, &rest));
        }
        pieces
    }

    /// Whether somebody outside keeps the thread from its work, for whatever request: one who has the processors, or has
    /// stopped it.
    fn is_kept_from_work(&self, part: &Part) -> bool {
        let cause = || self.cause(part.thread, part.wait_off_ns?);
        match part.kind {
            PartKind::Runnable { .. } => true,
            PartKind::Blocked => {
                matches!(cause(), Some(Cause::Stopped | Cause::Throttled | Cause::Frozen))
            }
            PartKind::Running | PartKind::Network { .. } | PartKind::Contradictory => false,
        }
    }

    /// Until when, on the clock of the host that has the request, the thread that ended a wait worked for another one.
    /// `is_own`: it is asked for the time of that thread itself.
    fn busy_until(&self, link: &Link, node: u32, is_own: bool) -> Option<u64> {
        let number = self.effects.request_at(link.thread, link.at_ns)?;
        let root = self.roots.of(number.0);
        // The answer to another client's request was waited for, as on a connection that several share.
        if link.is_message && root.is_some_and(|root| root != node) {
            return Some(link.home_ns);
        }
        match link.before {
            Before::MayCount => {}
            Before::OnlyForItself if is_own => {}
            Before::OnlyForItself | Before::WasFree => return None,
        }
        let until_ns = self.effects.on_another_before(link.thread, link.at_ns)?;
        link.home_ns.checked_sub(link.at_ns - until_ns)
    }

    /// What a part is charged to whose thread works for the request, or for nobody.
    fn charged(&self, chain: &[&Link], part: &Part) -> Vec<Piece> {
        let server = chain.iter().rposition(|link| link.is_message);
        let home = || chain.first().map_or(part.thread, |link| link.waiter);
        let mut who = server.map_or_else(home, |at| chain[at].thread);
        let process = self.process(who);
        let (mut waiter, mut outsider) = (None, None);
        for link in &chain[server.map_or(0, |at| at + 1)..] {
            let other = self.process(link.thread);
            if other.id.is_none() || other != process {
                outsider = Some(*link);
                break;
            }
            waiter.get_or_insert(*link);
            who = link.thread;
        }
        let ns = length_ns(part);
        let mut pieces = match (outsider, part.kind) {
            (Some(link), _) => {
                let cause = self.cause(who, link.off_ns);
                let mut piece = self.piece(who, Kind::of(cause), ns);
                piece.cause = cause.map(Cause::name);
                piece.key.holder = Some((self.process(link.thread), self.class(link.thread)));
                vec![piece]
            }
            (None, PartKind::Runnable { processor }) => self.runners(part, processor),
            (None, PartKind::Running) => vec![self.piece(who, Kind::Computes, ns)],
            (None, PartKind::Contradictory) => vec![self.piece(who, Kind::Contradictory, ns)],
            (None, PartKind::Blocked) => {
                let cause = part.wait_off_ns.and_then(|at_ns| self.cause(who, at_ns));
                let mut piece = self.piece(who, Kind::of(cause), ns);
                piece.cause = cause.map(Cause::name);
                if piece.key.kind == Kind::Storage {
                    piece.moved = self.moved(who, part);
                }
                vec![piece]
            }
            (None, PartKind::Network { from, to, .. }) => {
                let mut piece = self.piece(who, Kind::Network, ns);
                piece.key.holder = Some((self.process(from), self.class(from)));
                piece.end = Some(to);
                vec![piece]
            }
        };
        for piece in pieces.iter_mut().filter(|piece| !piece.kept_others) {
            if self.is_in_sync(who, part) && piece.key.kind != Kind::Contradictory {
                (piece.key.kind, piece.key.holder) = (Kind::Fsync, None);
            }
            if let Some(link) = waiter {
                piece.key.waiter = Some(self.class(link.waiter));
                piece.waiter_cause = self.cause(link.waiter, link.off_ns).map(Cause::name);
            }
        }
        pieces
    }

    /// Who had the processors while a thread could run: at first the one that it got, as far as somebody ran there; for
    /// the rest it waited for another one, and all of these are charged alike.
    fn runners(&self, part: &Part, processor: Option<u32>) -> Vec<Piece> {
        let ns = length_ns(part);
        let mut left_ns = ns;
        let mut pieces = Vec::new();
        if let Some([begin_ns, end_ns]) = part.own_ns {
            let host = part.thread.host;
            let processors = u64::from(self.joined.host(host).trace.processors.max(1));
            let ran = self.running.during(host, begin_ns, end_ns);
            let is_there = |one: &Ran| processor.is_some() && one.processor == processor;
            let (there, elsewhere): (Vec<Ran>, Vec<Ran>) = ran.into_iter().partition(is_there);
            let others = processors - u64::from(processor.is_some());
            for (ran, processors) in [(there, 1), (elsewhere, others)] {
                let all_ns: u128 = ran.iter().map(|one| u128::from(one.ran_ns)).sum();
                let all_ns = all_ns.max(u128::from(processors) * u128::from(ns)).max(1);
                let of_ns = left_ns;
                for one in ran {
                    let share_ns = u128::from(of_ns) * u128::from(one.ran_ns) / all_ns;
                    let share_ns = (share_ns as u64).min(left_ns);
                    left_ns -= share_ns;
                    let mut piece = self.piece(one.thread, Kind::Computes, share_ns);
                    piece.kept_others = true;
                    pieces.push(piece);
                }
            }
        }
        if left_ns > 0 {
            pieces.push(self.piece(part.thread, Kind::NoProcessor, left_ns));
        }
        pieces
    }

    fn piece(&self, who: ThreadId, kind: Kind, ns: u64) -> Piece {
        Piece {
            key: Key {
                process: self.process(who),
                kind,
                who: self.class(who),
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

    fn process(&self, thread: ThreadId) -> Process {
        Process { host: thread.host, id: self.joined.host(thread.host).process_of(thread.thread) }
    }

    /// Why a thread waited when a wait of it began.
    fn cause(&self, thread: ThreadId, off_ns: u64) -> Option<Cause> {
        self.joined.cause(thread, off_ns)
    }

    fn is_in_sync(&self, who: ThreadId, part: &Part) -> bool {
        let same_host = part.own_ns.filter(|_| who.host == part.thread.host);
        same_host.is_some_and(|[begin_ns, end_ns]| {
            let syncs = self.joined.host(who.host).syncs();
            syncs.has(who.thread.id, begin_ns.midpoint(end_ns))
        })
    }

    /// What the disks for which a thread waited moved meanwhile.
    fn moved(&self, who: ThreadId, part: &Part) -> Vec<(Process, String, u64)> {
        let Some([begin_ns, end_ns]) = part.own_ns.filter(|_| who.host == part.thread.host) else {
            return Vec::new();
        };
        let host = self.joined.host(who.host);
        let moved = host.disks().moved(who.thread.id, begin_ns, end_ns);
        let whose = |(owner, bytes): (Owner, u64)| {
            let thread =
                ThreadId { host: who.host, thread: host.tasks().thread(owner.thread, begin_ns) };
            let process = Process { host: who.host, id: Some(owner.process).filter(|&id| id != 0) };
            (process, self.class(thread), bytes)
        };
        moved.into_iter().map(whose).collect()
    }

    /// A thread's name without the numbers of a pool.
    fn class(&self, thread: ThreadId) -> String {
        let name = self.joined.host(thread.host).thread_name(thread.thread);
        let is_number = |c: char| c.is_ascii_digit() || " -_:#/.".contains(c);
        match name.trim_end_matches(is_number) {
            "" => name,
            class => class.to_owned(),
        }
    }
}

fn length_ns(part: &Part) -> u64 {
    part.end_ns - part.begin_ns
}
