//! Is the first cause that is named the one that was planted?

use std::collections::BTreeSet;

use luc_twin_truth::{Direction, Folder, Kind, MessageKind, Truth, WorkKind};
use serde::Serialize;

use super::front_end;
use crate::answer::{Answer, Finding, Party};

/// Findings below are not shown to people.
const LEAST_SHARE: f64 = 0.02;

/// What is said first, and whether it is right.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Judgement {
    /// The first finding's sentence; empty: there is none.
    pub(super) first: String,
    pub(super) share: f64,
    pub(super) share_low: f64,
    pub(super) share_high: f64,
    /// What is wrong with it.
    pub(super) wrong: Vec<&'static str>,
}

impl Judgement {
    pub(super) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// What the first finding must say.
#[derive(Debug, Default)]
struct Expected {
    kind: &'static str,
    process: Option<u32>,
    /// `None`: all is one host's.
    host: Option<String>,
    /// One of these; empty: any.
    threads: BTreeSet<u32>,
    /// Why others wait for it.
    waiter_cause: Option<&'static str>,
    /// Whether segments were sent again.
    is_sent_again: bool,
    /// The process that ended the waits, or that sent the messages.
    holder: Option<u32>,
    /// The process for which the disk worked most beside.
    beside: Option<u32>,
}

/// `has_hosts`: each process of the twin is on a host of its own.
pub(super) fn judge(kind: Kind, folder: &Folder, answer: &Answer, has_hosts: bool) -> Judgement {
    let address = front_end(folder).and_then(served_at).unwrap_or_default();
    let findings = answer
        .findings
        .iter()
        .find(|group| group.address == address);
    let findings = findings.map_or(&[][..], |group| &group.findings);
    let Some(first) = findings.first() else {
        return Judgement {
            first: String::new(),
            share: 0.0,
            share_low: 0.0,
            share_high: 0.0,
            wrong: vec!["no finding"],
        };
    };
    let wrong = match expected(kind, folder) {
        Some(expected) if has_hosts => compare(&expected, first),
        Some(expected) => {
            let host = None;
            compare(&Expected { host, ..expected }, first)
        }
        // A thread that only ticks is no cause.
        None => {
            let ticks = |finding: &Finding| {
                let mut planted = folder.planted();
                finding.share >= LEAST_SHARE
                    && planted.any(|(_, row)| finding.who.thread == Some(row.thread))
            };
            let named = findings.iter().any(ticks);
            Vec::from_iter(named.then_some("a thread that only ticks is named"))
        }
    };
    Judgement {
        first: first.text.clone(),
        share: first.share,
        share_low: first.share_low,
        share_high: first.share_high,
        wrong,
    }
}

fn compare(expected: &Expected, first: &Finding) -> Vec<&'static str> {
    let who = &first.who;
    let is_thread_right = expected.threads.is_empty()
        || who
            .thread
            .is_some_and(|thread| expected.threads.contains(&thread));
    let of = |party: &Party| party.process_id;
    let waiter_cause = first.waiter.as_ref().and_then(|one| one.cause.as_deref());
    let all = [
        (first.kind == expected.kind, "cause"),
        (who.process_id == expected.process, "process"),
        (
            expected.host.as_ref().is_none_or(|host| *host == who.host),
            "host",
        ),
        (is_thread_right, "thread"),
        (
            expected.waiter_cause.is_none() || waiter_cause == expected.waiter_cause,
            "why others wait for it",
        ),
        (
            !expected.is_sent_again || first.retransmits > 0,
            "segments that were sent again",
        ),
        (
            expected.holder.is_none() || first.holder.as_ref().and_then(of) == expected.holder,
            "holder",
        ),
        (
            expected.beside.is_none()
                || first.beside.as_ref().and_then(|one| of(&one.who)) == expected.beside,
            "for whom the disk worked",
        ),
    ];
    let wrong = all.into_iter().filter(|(is_right, _)| !is_right);
    wrong.map(|(_, what)| what).collect()
}

/// `None`: the trouble is the cause of nothing.
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
        Kind::Disk => of("storage", workers(process, WorkKind::Planted)),
        Kind::Journal => of("fsync", holders),
        Kind::Lock => Expected {
            waiter_cause: Some("futex"),
            ..of("timer", holders)
        },
        Kind::Pool => of("queue", workers(process, WorkKind::Queue)),
        Kind::Larger => of("computes", workers(process, WorkKind::Search)),
        Kind::Quota => of("throttled", BTreeSet::new()),
        Kind::Loss => Expected {
            is_sent_again: true,
            ..of("network", BTreeSet::new())
        },
        Kind::Share => {
            let front_end = front_end(folder)?;
            Expected {
                process: Some(front_end.header.process),
                host: Some(front_end.header.host.clone()),
                ..of("queue", shared(folder, process, front_end))
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
                ..of("network", BTreeSet::new())
            }
        }
        Kind::Writer => Expected {
            beside: Some(planted.holder),
            ..of("storage", workers(process, WorkKind::Planted))
        },
        Kind::Tick => return None,
    })
}

/// Threads that did work of a kind.
fn workers(process: &Truth, kind: WorkKind) -> BTreeSet<u32> {
    let work = process.work().filter(|work| work.kind == kind);
    work.map(|work| work.thread).collect()
}

/// The front end's threads of the connection that two clients share.
fn shared(folder: &Folder, client: &Truth, front_end: &Truth) -> BTreeSet<u32> {
    let sharers: BTreeSet<u32> = folder
        .planted()
        .flat_map(|(_, row)| [row.thread, row.holder])
        .collect();
    let sent = client
        .messages()
        .filter(|one| one.direction == Direction::Sent && sharers.contains(&one.thread));
    let ends: BTreeSet<_> = sent.map(|one| one.local).collect();
    let served = front_end.messages();
    served
        .filter(|one| ends.contains(&one.remote))
        .map(|one| one.thread)
        .collect()
}

/// Where a front end listens.
fn served_at(front_end: &Truth) -> Option<String> {
    let mut queries = front_end.messages();
    let query = queries.find(|one| one.kind == MessageKind::Query)?;
    Some(query.local.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Waiter;

    fn finding(kind: &str, process: u32, thread: u32) -> Finding {
        serde_json::from_value(serde_json::json!({
            "text": "", "kind": kind, "retransmits": 0, "time_ns": 1, "share": 1.0, "share_low": 1.0, "share_high": 1.0,
            "who": { "host": "a", "process_id": process, "thread": thread }, "waiter": null, "holder": null, "beside": null,
        }))
        .expect("a finding")
    }

    #[test]
    fn each_thing_that_is_wrong_is_named() {
        let expected = Expected {
            kind: "timer",
            process: Some(7),
            host: Some("a".to_owned()),
            threads: [8, 9].into(),
            waiter_cause: Some("futex"),
            is_sent_again: false,
            holder: None,
            beside: None,
        };
        let right = Finding {
            waiter: Some(Waiter {
                cause: Some("futex".to_owned()),
            }),
            ..finding("timer", 7, 9)
        };
        assert!(compare(&expected, &right).is_empty());
        let other = Finding {
            who: Party {
                host: "b".to_owned(),
                process_id: Some(6),
                thread: None,
            },
            ..finding("lock", 6, 0)
        };
        let wrong = compare(&expected, &other);
        assert_eq!(
            wrong,
            [
                "cause",
                "process",
                "host",
                "thread",
                "why others wait for it"
            ]
        );
        let lossy = Expected {
            is_sent_again: true,
            ..Expected::default()
        };
        assert!(compare(&lossy, &right).contains(&"segments that were sent again"));
        let held = Expected {
            holder: Some(5),
            beside: Some(4),
            ..Expected::default()
        };
        let wrong = compare(&held, &right);
        assert!(wrong.contains(&"holder") && wrong.contains(&"for whom the disk worked"));
    }
}
