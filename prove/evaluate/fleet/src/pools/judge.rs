//! Is each call put to the request that it was made for?

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::back_end::Call;
use super::clients::Asked;
use crate::answer::{RequestRow, Rows};

/// Calls of a server, by what is said of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) calls: u64,
    /// Right, by the evidence.
    pub(super) right: BTreeMap<String, u64>,
    /// Wrong, by the evidence.
    pub(super) wrong: BTreeMap<String, u64>,
    /// It is not said for which request it was made.
    pub(super) unknown: u64,
    /// There is no such call.
    pub(super) missing: u64,
}

impl Counts {
    pub(super) fn all_right(&self) -> u64 {
        self.right.values().sum()
    }

    pub(super) fn all_wrong(&self) -> u64 {
        self.wrong.values().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.unknown += other.unknown;
        self.missing += other.missing;
        for (all, more) in [
            (&mut self.right, &other.right),
            (&mut self.wrong, &other.wrong),
        ] {
            for (evidence, count) in more {
                *all.entry(evidence.clone()).or_default() += count;
            }
        }
    }
}

/// Compares what is said with what the clients and the back end have noted.
pub(super) fn count(asked: &[Asked], calls: &[Call], rows: &Rows) -> Counts {
    let mut sent: HashMap<(&str, &str), Vec<&RequestRow>> = HashMap::new();
    for row in rows.requests.iter().filter(|row| row.is_sent) {
        let ends = (row.local.as_str(), row.remote.as_str());
        sent.entry(ends).or_default().push(row);
    }
    let asked: HashMap<u64, &Asked> = asked.iter().map(|one| (one.name, one)).collect();
    let mut counts = Counts::default();
    for call in calls {
        counts.calls += 1;
        let ends = (call.from.to_string(), call.to.to_string());
        let rows_of_end = sent.get(&(ends.0.as_str(), ends.1.as_str()));
        let mut rows_of_end = rows_of_end.into_iter().flatten();
        let Some(row) = rows_of_end.find(|row| has(row, call.first_byte)) else {
            counts.missing += 1;
            continue;
        };
        let cause = row.made_for.and_then(|number| rows.requests.get(number));
        let Some(cause) = cause else {
            counts.unknown += 1;
            continue;
        };
        let is_right = asked.get(&call.name).is_some_and(|one| {
            !cause.is_sent
                && cause.local == one.to.to_string()
                && cause.remote == one.from.to_string()
                && has(cause, one.first_byte)
        });
        let of = if is_right {
            &mut counts.right
        } else {
            &mut counts.wrong
        };
        *of.entry(row.evidence.clone().unwrap_or_default())
            .or_default() += 1;
    }
    counts
}

/// Whether a byte is one of the request's.
fn has(row: &RequestRow, byte: u64) -> bool {
    (row.first_byte..row.first_byte.saturating_add(row.bytes)).contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Side;

    fn row(
        is_sent: bool,
        local: &str,
        remote: &str,
        first_byte: u64,
        made_for: Option<usize>,
    ) -> RequestRow {
        RequestRow {
            is_sent,
            local: local.to_owned(),
            remote: remote.to_owned(),
            first_byte,
            bytes: 10,
            asked: Side {
                process: 1,
                thread: 1,
                at_ns: 1,
            },
            made_for,
            evidence: made_for.map(|_| "effect".to_owned()),
        }
    }

    #[test]
    fn calls_are_right_wrong_or_not_known() {
        let (client, server, out, back_end) =
            ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4");
        let rows = Rows {
            edges: Vec::new(),
            requests: vec![
                row(false, server, client, 0, None),
                row(false, server, client, 10, None),
                row(true, out, back_end, 0, Some(0)),
                row(true, out, back_end, 10, Some(0)),
                row(true, out, back_end, 20, None),
            ],
        };
        let asked = [0, 10].map(|first_byte| Asked {
            name: first_byte / 10,
            from: client.parse().expect("an address"),
            to: server.parse().expect("an address"),
            first_byte,
        });
        // The second one is put to the first request; the last one was not seen.
        let calls = [(0, 0), (1, 10), (1, 20), (1, 30)].map(|(name, first_byte)| Call {
            name,
            from: out.parse().expect("an address"),
            to: back_end.parse().expect("an address"),
            first_byte,
        });
        let counts = count(&asked, &calls, &rows);
        let one = BTreeMap::from([("effect".to_owned(), 1)]);
        let expected = Counts {
            calls: 4,
            right: one.clone(),
            wrong: one,
            unknown: 1,
            missing: 1,
        };
        assert_eq!(counts, expected);
        let mut twice = counts.clone();
        twice.add(&counts);
        assert_eq!(
            (twice.calls, twice.all_right(), twice.all_wrong()),
            (8, 2, 2)
        );
    }
}
