//! Judges whether each request is assigned to the one that it was made for.

use std::collections::HashMap;

use luc_twin_truth::{Direction, Folder, Message, MessageKind};

use super::front_end;
use crate::answer::{RequestRow, Rows};
use crate::calls::Calls;

/// Counts the front end's questions by judgement.
pub(super) fn count(folder: &Folder, rows: &Rows) -> Calls {
    let mut calls = Calls::default();
    let Some(front_end) = front_end(folder) else {
        return calls;
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
        let ends = (question.local.to_string(), question.remote.to_string());
        let end = (true, ends.0.as_str(), ends.1.as_str());
        let sent = by_end.get(&end).into_iter().flatten();
        let row = sent.copied().find(|row| row.has(question.first_byte));
        calls.count(row, rows, |cause| {
            queries.get(&question.parent).is_some_and(|query| {
                cause.local == query.local.to_string()
                    && cause.remote == query.remote.to_string()
                    && !cause.is_sent
                    && cause.has(query.first_byte)
            })
        });
    }
    calls
}
