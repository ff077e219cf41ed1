//! Compares the first finding on slow requests with the planted trouble.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::answer::{Answer, Finding, Party};

/// The first finding, and whether it is right.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judgement {
    /// Sentence of the first finding; empty if there is none.
    pub(crate) first: String,
    pub(crate) share: f64,
    pub(crate) share_low: f64,
    pub(crate) share_high: f64,
    /// Parts of it that are wrong.
    pub(crate) wrong: Vec<&'static str>,
}

impl Judgement {
    /// Judges the first finding. `wrong` returns its wrong parts.
    pub(crate) fn new(
        first: Option<&Finding>,
        wrong: impl FnOnce(&Finding) -> Vec<&'static str>,
    ) -> Self {
        match first {
            Some(first) => Self {
                first: first.text.clone(),
                share: first.share,
                share_low: first.share_low,
                share_high: first.share_high,
                wrong: wrong(first),
            },
            None => Self {
                first: String::new(),
                share: 0.0,
                share_low: 0.0,
                share_high: 0.0,
                wrong: vec!["no finding"],
            },
        }
    }

    pub(crate) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Returns the findings on the requests to an address.
pub(crate) fn findings_on<'a>(answer: &'a Answer, address: &str) -> &'a [Finding] {
    let mut groups = answer.findings.iter();
    let group = groups.find(|group| group.address == address);
    group.map_or(&[], |group| &group.findings)
}

/// Properties that the first finding must have.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) kind: &'static str,
    pub(crate) process: Option<u32>,
    /// `None` if there is only one host.
    pub(crate) host: Option<String>,
    /// One of these threads must be named; empty for any.
    pub(crate) threads: BTreeSet<u32>,
    /// Cause of the waiter's wait.
    pub(crate) waiter_cause: Option<&'static str>,
    /// Whether segments were retransmitted.
    pub(crate) is_sent_again: bool,
    /// Process that ended the waits, or that sent the messages.
    pub(crate) holder: Option<u32>,
    /// Process that the disk worked for most, beside the waiter.
    pub(crate) beside: Option<u32>,
}

impl Expected {
    /// Returns the wrong parts of the first finding.
    pub(crate) fn compare(&self, first: &Finding) -> Vec<&'static str> {
        let who = &first.who;
        let is_thread_right = self.threads.is_empty()
            || who.thread.is_some_and(|thread| self.threads.contains(&thread));
        let of = |party: &Party| party.process_id;
        let waiter_cause = first.waiter.as_ref().and_then(|one| one.cause.as_deref());
        let all = [
            (first.kind == self.kind, "cause"),
            (who.process_id == self.process, "process"),
            (self.host.as_ref().is_none_or(|host| *host == who.host), "host"),
            (is_thread_right, "thread"),
            (
                self.waiter_cause.is_none() || waiter_cause == self.waiter_cause,
                "why others wait for it",
            ),
            (!self.is_sent_again || first.retransmits > 0, "segments that were sent again"),
            (self.holder.is_none() || first.holder.as_ref().and_then(of) == self.holder, "holder"),
            (
                self.beside.is_none()
                    || first.beside.as_ref().and_then(|one| of(&one.who)) == self.beside,
                "for whom the disk worked",
            ),
        ];
        let wrong = all.into_iter().filter(|(is_right, _)| !is_right);
        wrong.map(|(_, what)| what).collect()
    }
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
            waiter: Some(Waiter { cause: Some("futex".to_owned()) }),
            ..finding("timer", 7, 9)
        };
        assert!(expected.compare(&right).is_empty());
        let other = Finding {
            who: Party { host: "b".to_owned(), process_id: Some(6), thread: None },
            ..finding("lock", 6, 0)
        };
        let wrong = expected.compare(&other);
        assert_eq!(wrong, ["cause", "process", "host", "thread", "why others wait for it"]);
        let lossy = Expected { is_sent_again: true, ..Expected::default() };
        assert!(lossy.compare(&right).contains(&"segments that were sent again"));
        let held = Expected { holder: Some(5), beside: Some(4), ..Expected::default() };
        let wrong = held.compare(&right);
        assert!(wrong.contains(&"holder") && wrong.contains(&"for whom the disk worked"));
        let nothing = Judgement::new(None, |_| Vec::new());
        assert!(!nothing.is_right());
    }
}
