//! Is each request put to the one that it was made for?

use std::collections::{BTreeMap, HashMap};

use luc_twin_truth::{Direction, Folder, Message, MessageKind};
use serde::Serialize;

use super::front_end;
use crate::answer::{RequestRow, Rows};

/// The front end's questions, by what is said of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) planted: u64,
    /// Right, by the evidence.
    pub(super) right: BTreeMap<String, u64>,
    /// Wrong, by the evidence.
    pub(super) wrong: BTreeMap<String, u64>,
    /// It is not said for which one it was made.
    pub(super) unknown: u64,
    /// There is no such request.
    pub(super) missing: u64,
}

impl Counts {
    pub(super) fn all_right(&self) -> u64 {
        self.right.values().sum()
    }

    pub(super) fn all_wrong(&self) -> u64 {
        self.wrong.values().sum()
    }
}

pub(super) fn count(folder: &Folder, rows: &Rows) -> Counts {
    let mut counts = Counts::default();
    let Some(front_end) = front_end(folder) else {
        return counts;
    };
    let mut by_end: HashMap<(bool, &str, &str), Vec<&RequestRow>> = HashMap::new();
    let of_front_end = |row: &&RequestRow| row.asked.process == front_end.header.process;
    for row in rows.requests.iter().filter(of_front_end) {
        let end = (row.is_sent, row.local.as_str(), row.remote.as_str());
        by_end.entry(end).or_default().push(row);
    }
    let queries: HashMap<u64, &Message> = front_end
        .messages()
        .filter(|one| one.kind == MessageKind::Query && one.direction == Direction::Received)
        .map(|query| (query.request, query))
        .collect();
    let is_question = |one: &&Message| one.kind.is_question() && one.direction == Direction::Sent;
    for question in front_end.messages().filter(is_question) {
        counts.planted += 1;
        let ends = (question.local.to_string(), question.remote.to_string());
        let end = (true, ends.0.as_str(), ends.1.as_str());
        let sent = by_end.get(&end).into_iter().flatten();
        let Some(row) = sent.copied().find(|row| has(row, question)) else {
            counts.missing += 1;
            continue;
        };
        let cause = row.made_for.and_then(|number| rows.requests.get(number));
        let Some(cause) = cause else {
            counts.unknown += 1;
            continue;
        };
        let is_right = queries.get(&question.parent).is_some_and(|query| {
            cause.local == query.local.to_string()
                && cause.remote == query.remote.to_string()
                && !cause.is_sent
                && has(cause, query)
        });
        let evidence = row.evidence.clone().unwrap_or_default();
        let of = if is_right {
            &mut counts.right
        } else {
            &mut counts.wrong
        };
        *of.entry(evidence).or_default() += 1;
    }
    counts
}

/// Whether a message is the request's, or a part of it.
fn has(row: &RequestRow, message: &Message) -> bool {
    (row.first_byte..row.first_byte + row.bytes).contains(&message.first_byte)
}
