//! Judges whether the first finding names the planted cause.

use std::collections::BTreeSet;

use luc_twin_truth::{Direction, Folder, Kind, MessageKind, Truth, WorkKind};

use super::front_end;
use crate::answer::{Answer, Finding};
use crate::cause::{Expected, Judgement, findings_on};

/// Minimum share of findings that are shown to people.
const MIN_SHARE: f64 = 0.02;

/// Judges the first finding. With `has_hosts` each process of the twin is on a host of its own.
pub(super) fn judge(kind: Kind, folder: &Folder, answer: &Answer, has_hosts: bool) -> Judgement {
    let address = front_end(folder).and_then(served_at).unwrap_or_default();
    let findings = findings_on(answer, &address);
    Judgement::new(findings.first(), |first| match expected(kind, folder) {
        Some(expected) if has_hosts => expected.compare(first),
        Some(expected) => {
            let host = None;
            Expected { host, ..expected }.compare(first)
        }
        // A thread that only ticks is no cause.
        None => {
            let ticks = |finding: &Finding| {
                let mut planted = folder.planted();
                finding.share >= MIN_SHARE
                    && planted.any(|(_, row)| finding.who.thread == Some(row.thread))
            };
            let named = findings.iter().any(ticks);
            Vec::from_iter(named.then_some("a thread that only ticks is named"))
        }
    })
}

/// Returns the expected finding; `None` if the trouble causes nothing.
fn expected(kind: Kind, folder: &Folder) -> Option<Expected> {
    let (process, planted) = folder.planted().next()?;
    let holders = folder.planted().map(|(_, row)| row.holder).collect();
    let of = |kind, threads| Expected {
        kind,
        process: Some(process.header.process),
        host: Some(process.header.host.clone()),
        threads,
        ..Expected::default()
    };
    Some(match kind {
        Kind::Cpu => of("computes", workers(process, WorkKind::Planted)),
        Kind::Disk => of("device", workers(process, WorkKind::Planted)),
        Kind::Journal => of("fsync", holders),
        Kind::Lock => Expected { waiter_cause: Some("futex"), ..of("timer", holders) },
        Kind::Pool => of("busy_with_others", workers(process, WorkKind::Queue)),
        Kind::Larger => of("computes", workers(process, WorkKind::Search)),
        Kind::Quota => of("throttled", BTreeSet::new()),
        Kind::Loss => Expected { is_sent_again: true, ..of("network", BTreeSet::new()) },
        Kind::Share => {
            let front_end = front_end(folder)?;
            Expected {
                process: Some(front_end.header.process),
                host: Some(front_end.header.host.clone()),
                ..of("busy_with_others", shared(folder, process, front_end))
            }
        }
        Kind::Stop => Expected {
            holder: Some(planted.holder),
            ..of("stopped", workers(process, WorkKind::Search))
        },
        Kind::Rate => {
            let front_end = front_end(folder)?;
            Expected {
                process: Some(front_end.header.process),
                host: Some(front_end.header.host.clone()),
                holder: Some(process.header.process),
                ..of("held_back", BTreeSet::new())
            }
        }
        Kind::Writer => Expected {
            beside: Some(planted.holder),
            ..of("device", workers(process, WorkKind::Planted))
        },
        Kind::Tick => return None,
    })
}

/// Returns the threads that did work of a kind.
fn workers(process: &Truth, kind: WorkKind) -> BTreeSet<u32> {
    let work = process.work().filter(|work| work.kind == kind);
    work.map(|work| work.thread).collect()
}

/// Returns the front end's threads of the connection that two clients share.
fn shared(folder: &Folder, client: &Truth, front_end: &Truth) -> BTreeSet<u32> {
    let sharers: BTreeSet<u32> =
        folder.planted().flat_map(|(_, row)| [row.thread, row.holder]).collect();
    let sent = client
        .messages()
        .filter(|one| one.direction == Direction::Sent && sharers.contains(&one.thread));
    let ends: BTreeSet<_> = sent.map(|one| one.local).collect();
    let served = front_end.messages();
    served.filter(|one| ends.contains(&one.remote)).map(|one| one.thread).collect()
}

/// Returns the address that a front end listens on.
fn served_at(front_end: &Truth) -> Option<String> {
    let mut queries = front_end.messages();
    let query = queries.find(|one| one.kind == MessageKind::Query)?;
    Some(query.local.to_string())
}
