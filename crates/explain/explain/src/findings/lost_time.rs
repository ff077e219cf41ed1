//! Findings from the roots of threads' waits: what keeps them from their work beside files and disks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use luc_events::Tgid;

use super::actors::{grouped_names, in_words};
use super::finding_inputs::evidence;
use super::{FigureUnit, Finding, FindingFigure, FindingKind};
use crate::actor::Actor;
use crate::fast_hash::FastMap;
use crate::report::{TimeAccount, TraceReport};
use crate::saturating_grow::SaturatingGrow as _;
use crate::wait_losses::{ActorLoss, Awaited, HolderState, LossKind};

/// Minimum part of the trace's length that threads lost in all. Less matters to nobody.
const MIN_PART_OF_TRACE: u64 = 50;

/// Finds what threads lost time to, beside calls on files that have rows.
///
/// Waits in these calls, and for contended disks, have findings of their own: `in_findings_ns`.
pub(super) fn in_threads(
    report: &TraceReport,
    losses: &[ActorLoss],
    in_findings_ns: u64,
) -> Vec<Finding> {
    let length_ns = report.trace.end_ns.saturating_sub(report.trace.start_ns);
    let accounts = report.accounts.processes.iter();
    let accounts: AccountsByProcess<'_> =
        accounts.map(|account| (account.process.unwrap_or_default(), account)).collect();
    let accounts = &accounts;
    let of = |kind| Losses { report, accounts, all: of_kind(losses, |loss| loss.kind == kind) };
    let mut found = vec![
        of(LossKind::Stopped).stopped(),
        of(LossKind::Frozen).frozen(),
        of(LossKind::Throttled).throttled(),
        of(LossKind::Processor).processor(&of(LossKind::ProcessorLook)),
        of(LossKind::PageFault).page_faults(),
        of(LossKind::MemoryLimit).memory_limit(),
        of(LossKind::HeldBack).held_back(),
        of(LossKind::Storage).device(in_findings_ns),
    ];
    found.extend(of(LossKind::Sleep).by_name_of(|loss| loss.at).iter().map(Losses::sleep));
    for awaited in [Awaited::Lock, Awaited::Flock, Awaited::PipeReader, Awaited::FileServer] {
        let is_meant =
            |loss: &ActorLoss| matches!(loss.kind, LossKind::Awaits(one, _) if one == awaited);
        let waits = Losses { report, accounts, all: of_kind(losses, is_meant) };
        let by_holder = waits.by_name_of(|loss| loss.at);
        found.extend(by_holder.iter().map(|waits| waits.for_another(awaited)));
    }
    found.retain(|finding| finding.cost_ns > 0 && finding.cost_ns >= length_ns / MIN_PART_OF_TRACE);
    found
}

fn of_kind(losses: &[ActorLoss], is_meant: impl Fn(&ActorLoss) -> bool) -> Vec<ActorLoss> {
    losses.iter().copied().filter(|loss| is_meant(loss)).collect()
}

type AccountsByProcess<'a> = FastMap<Tgid, &'a TimeAccount>;

/// Losses of one kind.
struct Losses<'a> {
    report: &'a TraceReport,
    accounts: &'a AccountsByProcess<'a>,
    all: Vec<ActorLoss>,
}

impl Losses<'_> {
    fn sum_ns(&self) -> u64 {
        self.all.iter().fold(0, |sum, loss| sum.saturating_add(loss.ns))
    }

    /// Divides the losses by the name of a process, such as the lock's holder.
    fn by_name_of(&self, who: fn(&ActorLoss) -> Tgid) -> Vec<Self> {
        let mut groups: BTreeMap<String, Vec<ActorLoss>> = BTreeMap::new();
        for loss in &self.all {
            groups.entry(in_group(&self.actor(who(loss)))).or_default().push(*loss);
        }
        groups.into_values().map(|all| Self { all, ..*self }).collect()
    }

    /// Returns the processes that have a part in the losses, the largest part first.
    fn actors(&self, who: fn(&ActorLoss) -> Tgid) -> Vec<Actor> {
        self.times_of(who).into_iter().map(|(process, _)| self.actor(process)).collect()
    }

    fn times_of(&self, who: fn(&ActorLoss) -> Tgid) -> Vec<(Tgid, u64)> {
        let mut times: FastMap<Tgid, u64> = FastMap::default();
        for loss in self.all.iter().filter(|loss| !who(loss).is_none()) {
            times.entry(who(loss)).or_default().grow(loss.ns);
        }
        let mut times: Vec<(Tgid, u64)> = times.into_iter().collect();
        times.sort_by_key(|&(process, ns)| (Reverse(ns), process));
        times
    }

    fn actor(&self, process: Tgid) -> Actor {
        let account = self.accounts.get(&process);
        Actor {
            process,
            comm: account.map(|account| account.comm.clone()).unwrap_or_default(),
            cgroup: account.map(|account| account.cgroup).unwrap_or_default(),
        }
    }

    fn finding(
        &self,
        kind: FindingKind,
        sentence: String,
        victims: &[Actor],
        culprit: Option<Actor>,
    ) -> Finding {
        let working = &self.report.working;
        Finding {
            kind,
            sentence,
            dev: None,
            cost_ns: self.sum_ns(),
            share: 0.0,
            victim: victims.first().cloned(),
            culprit,
            evidence: vec![
                evidence("all working time", working.total_ns as f64, FigureUnit::Ns),
                evidence(
                    "share of it for files and disks",
                    working.share(working.storage_ns),
                    FigureUnit::Share,
                ),
                evidence(
                    "share of it of unknown cause",
                    working.share(working.unknown_ns),
                    FigureUnit::Share,
                ),
            ],
        }
    }

    fn stopped(&self) -> Finding {
        let whose = self.actors(|loss| loss.at);
        let culprit = self.actors(|loss| loss.by).into_iter().next();
        let let_go = culprit.as_ref().map(|by| format!("; {} sent SIGCONT", in_words(by)));
        let sentence = format!(
            "{} {} stopped by signals or a debugger{}",
            grouped_names(&whose),
            is_or_are(&whose),
            let_go.unwrap_or_default()
        );
        self.finding(FindingKind::Stopped, sentence, &whose, culprit)
    }

    fn frozen(&self) -> Finding {
        let whose = self.actors(|loss| loss.at);
        let sentence = format!(
            "{} {} kept from running: somebody freezes {}; `luc throttle status` says whether it is LUC, and why",
            grouped_names(&whose),
            is_or_are(&whose),
            cgroups_of(&whose)
        );
        let finding = self.finding(FindingKind::Frozen, sentence, &whose, None);
        let most = |of: fn(&TimeAccount) -> u64| {
            self.report.accounts.processes.iter().map(of).max().unwrap_or(0) as f64
        };
        let times = [
            evidence(
                "times that one was frozen, at most",
                most(|account| account.freezes),
                FigureUnit::Count,
            ),
            evidence(
                "the longest of these",
                most(|account| account.longest_frozen_ns),
                FigureUnit::Ns,
            ),
        ];
        with_evidence(finding, times)
    }

    fn throttled(&self) -> Finding {
        let whose = self.actors(|loss| loss.at);
        let sentence = format!(
            "{} {} kept from running: {} used up the quota of processor time; `cpu.max` there says how much that is",
            grouped_names(&whose),
            is_or_are(&whose),
            cgroups_of(&whose)
        );
        self.finding(FindingKind::Throttled, sentence, &whose, None)
    }

    /// Threads that are ready. Who had the processor is named if most of the looks at it tell.
    fn processor(&self, looks: &Self) -> Finding {
        let known = Self { all: of_kind(&looks.all, |look| !look.at.is_none()), ..*self };
        let most = known.by_name_of(|loss| loss.at).into_iter().max_by_key(Self::sum_ns);
        let most = most.filter(|_| known.sum_ns() >= looks.sum_ns() / 2);
        let runner = most.as_ref().and_then(|most| most.actors(|loss| loss.at).into_iter().next());
        let is_runner =
            |actor: &Actor| runner.as_ref().is_some_and(|one| in_group(one) == in_group(actor));
        let is_own = most.as_ref().is_some_and(|most| {
            let own = of_kind(&most.all, |loss| is_runner(&self.actor(loss.victim)));
            Self { all: own, ..*self }.sum_ns() > most.sum_ns() / 2
        });
        let mut victims = self.actors(|loss| loss.victim);
        let is_alone = victims.iter().all(is_runner);
        if !is_own && !is_alone {
            victims.retain(|victim| !is_runner(victim));
        }
        let why = match &runner {
            Some(_) if is_alone => "there are more such threads than processors".to_owned(),
            Some(runner) if is_own => format!(
                "there are more such threads than processors; {} has them most",
                in_words(runner)
            ),
            Some(runner) => format!("{} has the processor", in_words(runner)),
            None if self.is_of_all() => "others have the processor".to_owned(),
            None => "others have the processor; a recording of all processes names them".to_owned(),
        };
        let sentence =
            format!("{} {} ready to run, but {why}", grouped_names(&victims), is_or_are(&victims));
        let culprit = runner.clone().filter(|_| !is_alone);
        let finding = self.finding(FindingKind::ProcessorBound, sentence, &victims, culprit);
        let known_share = known.sum_ns() as f64 / looks.sum_ns().max(1) as f64;
        let figure = evidence(
            "share of the looks that tell who had the processor",
            known_share,
            FigureUnit::Share,
        );
        with_evidence(finding, [figure])
    }

    /// Returns whether all processes were recorded.
    fn is_of_all(&self) -> bool {
        self.report.trace.filters.is_empty() && self.report.trace.command.is_empty()
    }

    /// Finds that the victims wait for something, in words.
    fn waits(&self, kind: FindingKind, what: &str) -> Finding {
        let victims = self.actors(|loss| loss.victim);
        let verb = if victims.len() == 1 { "waits" } else { "wait" };
        let sentence = format!("{} {verb} for {what}", grouped_names(&victims));
        self.finding(kind, sentence, &victims, None)
    }

    fn page_faults(&self) -> Finding {
        let what = "pages of memory: of files that are mapped, of swap, or locked by others";
        self.waits(FindingKind::PageFaults, what)
    }

    fn memory_limit(&self) -> Finding {
        let what = "memory, which the kernel must free first: a cgroup is at its limit (`memory.high`, `memory.max`), \
                    or the machine has none left";
        self.waits(FindingKind::MemoryLimit, what)
    }

    fn held_back(&self) -> Finding {
        let what = "requests that no disk has yet: a limit of a cgroup holds them back (`io.max`, `io.latency`, \
                    `blkio.throttle.*`), or the disk's scheduler";
        self.waits(FindingKind::HeldBack, what)
    }

    /// Waits for disks in calls that have no row, most of them reads.
    fn device(&self, in_findings_ns: u64) -> Finding {
        let what = "disks, in reads and other calls that are not listed one by one";
        let finding = self.waits(FindingKind::DeviceBound, what);
        Finding { cost_ns: finding.cost_ns.saturating_sub(in_findings_ns), ..finding }
    }

    fn sleep(&self) -> Finding {
        let whose = self.actors(|loss| loss.at);
        let what = if whose.len() == 1 {
            "sleeps at work, for times that it sets itself"
        } else {
            "sleep at work, for times that they set themselves"
        };
        let sentence = format!("{} {what}", grouped_names(&whose));
        self.finding(FindingKind::Timer, sentence, &whose, None)
    }

    /// Waits for something that another thread has to give: a lock, a place in a pipe, an answer.
    fn for_another(&self, awaited: Awaited) -> Finding {
        let victims = self.actors(|loss| loss.victim);
        let holder = self.actors(|loss| loss.at).into_iter().next();
        let state_ns = |state| {
            let in_state =
                self.all.iter().filter(|loss| loss.kind == LossKind::Awaits(awaited, state));
            in_state.fold(0_u64, |sum, loss| sum.saturating_add(loss.ns))
        };
        let states = [
            (HolderState::NotKnown, ""),
            (HolderState::Computes, ", which computes meanwhile"),
            (HolderState::Sleeps, ", which sleeps meanwhile"),
            (
                HolderState::AwaitsEvents,
                ", which waits for a client, a server or a child of its own meanwhile",
            ),
        ];
        let most = states.into_iter().max_by_key(|&(state, _)| state_ns(state));
        let meanwhile = most.map_or("", |(_, doing)| doing);
        let verb = if victims.len() == 1 { "waits" } else { "wait" };
        let who = match &holder {
            Some(holder) if victims[..] == [holder.clone()] => {
                Some("another of its threads".to_owned())
            }
            Some(holder) => Some(in_words(holder)),
            None => None,
        };
        let other = || who.clone().unwrap_or_else(|| "another thread".to_owned());
        let what = match awaited {
            Awaited::Lock => format!("for a lock that {} has{meanwhile}", other()),
            Awaited::Flock => {
                format!("for a lock of a file (flock or fcntl) that {} has{meanwhile}", other())
            }
            Awaited::PipeReader => {
                format!("until {} reads from a full pipe{meanwhile}", other())
            }
            Awaited::FileServer => match &who {
                Some(who) => format!("for {who}, which serves a file system{meanwhile}"),
                None => "for whoever serves a file system (FUSE, NFS, SMB)".to_owned(),
            },
        };
        let kind = match awaited {
            Awaited::Lock | Awaited::Flock => FindingKind::Lock,
            Awaited::PipeReader => FindingKind::FullPipe,
            Awaited::FileServer => FindingKind::FileServer,
        };
        let sentence = format!("{} {verb} {what}", grouped_names(&victims));
        let finding = self.finding(kind, sentence, &victims, holder);
        let held = [
            (HolderState::Computes, "time in which the holder computed"),
            (HolderState::Sleeps, "time in which it slept"),
            (HolderState::AwaitsEvents, "time in which it waited for messages of others"),
        ];
        let figure = |(state, what)| evidence(what, state_ns(state) as f64, FigureUnit::Ns);
        with_evidence(finding, held.map(figure))
    }
}

fn with_evidence(mut finding: Finding, more: impl IntoIterator<Item = FindingFigure>) -> Finding {
    finding.evidence.extend(more);
    finding
}

/// Returns the name of an actor's group: processes of one name are one.
fn in_group(actor: &Actor) -> String {
    if actor.comm.is_empty() { in_words(actor) } else { actor.comm.clone() }
}

fn is_or_are(actors: &[Actor]) -> &'static str {
    if actors.len() == 1 { "is" } else { "are" }
}

fn cgroups_of(actors: &[Actor]) -> &'static str {
    if actors.len() == 1 { "its cgroup" } else { "their cgroups" }
}
