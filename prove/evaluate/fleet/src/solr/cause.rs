//! Is the first cause that is named the one that was planted?

use std::collections::BTreeSet;

use serde::Serialize;

use super::trouble::Trouble;
use crate::answer::{Answer, Finding};

/// What is said first, and whether it is right.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Judgement {
    /// The first finding's sentence; empty: there is none.
    pub(super) first: String,
    pub(super) share: f64,
    /// What is wrong with it.
    pub(super) wrong: Vec<&'static str>,
}

/// What the first finding must say.
#[derive(Debug)]
pub(super) struct Expected<'e> {
    pub(super) trouble: Trouble,
    pub(super) process: u32,
    /// One of these.
    pub(super) threads: &'e BTreeSet<u32>,
    /// `None`: all is one host's.
    pub(super) host: Option<&'e str>,
}

/// Judges what is said of the requests to the front end's address.
pub(super) fn judge(answer: &Answer, address: &str, expected: &Expected<'_>) -> Judgement {
    let groups = answer.findings.iter();
    let group = groups.clone().find(|group| group.address == address);
    let Some(first) = group.and_then(|group| group.findings.first()) else {
        return Judgement {
            wrong: vec!["no finding"],
            ..Judgement::default()
        };
    };
    Judgement {
        first: first.text.clone(),
        share: first.share,
        wrong: compare(expected, first),
    }
}

fn compare(expected: &Expected<'_>, first: &Finding) -> Vec<&'static str> {
    let kind = match expected.trouble {
        Trouble::Hog => "computes",
        Trouble::Disk => "storage",
        Trouble::Loss => "network",
        Trouble::Stop => "other",
    };
    let who = &first.who;
    let is_of = |thread: u32| expected.threads.contains(&thread);
    let all = [
        (first.kind == kind, "cause"),
        (who.process_id == Some(expected.process), "process"),
        (expected.host.is_none_or(|host| host == who.host), "host"),
        (who.thread.is_some_and(is_of), "thread"),
        (
            expected.trouble != Trouble::Loss || first.retransmits > 0,
            "segments that were sent again",
        ),
    ];
    let wrong = all.into_iter().filter(|(is_right, _)| !is_right);
    wrong.map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_is_wrong_is_named() {
        let finding = |kind: &str, host: &str, process: u32, thread: u32, retransmits: u64| {
            let finding: Finding = serde_json::from_value(serde_json::json!({
                "text": "", "kind": kind, "retransmits": retransmits, "time_ns": 1, "share": 1.0, "share_low": 1.0,
                "share_high": 1.0, "waiter": null,
                "who": { "host": host, "process_id": process, "thread": thread },
            }))
            .expect("a finding");
            finding
        };
        let threads = BTreeSet::from([8, 9]);
        let mut expected = Expected {
            trouble: Trouble::Loss,
            process: 7,
            threads: &threads,
            host: Some("shard-0"),
        };
        assert!(compare(&expected, &finding("network", "shard-0", 7, 9, 3)).is_empty());
        assert_eq!(
            compare(&expected, &finding("storage", "shard-1", 6, 7, 0)),
            [
                "cause",
                "process",
                "host",
                "thread",
                "segments that were sent again"
            ]
        );
        expected.host = None;
        expected.trouble = Trouble::Disk;
        assert!(compare(&expected, &finding("storage", "all", 7, 8, 0)).is_empty());
    }
}
