//! Judges whether each call is assigned to the request that it was made for.

use std::collections::HashMap;

use crate::answer::{RequestRow, Rows};
use crate::calls::Calls;
use crate::named::Named;

/// Compares the answer with the noted bytes of requests and calls.
pub(crate) fn count(asked: &[Named], calls: &[Named], rows: &Rows) -> Calls {
    let mut sent: HashMap<(&str, &str), Vec<&RequestRow>> = HashMap::new();
    for row in rows.requests.iter().filter(|row| row.is_sent) {
        let ends = (row.local.as_str(), row.remote.as_str());
        sent.entry(ends).or_default().push(row);
    }
    let asked: HashMap<u64, &Named> = asked.iter().map(|one| (one.name, one)).collect();
    let mut counted = Calls::default();
    for call in calls {
        let ends = (call.from.to_string(), call.to.to_string());
        let rows_of_end = sent.get(&(ends.0.as_str(), ends.1.as_str()));
        let mut rows_of_end = rows_of_end.into_iter().flatten().copied();
        let row = rows_of_end.find(|row| row.has(call.first_byte));
        counted.count(row, rows, |cause| {
            asked.get(&call.name).is_some_and(|one| {
                !cause.is_sent
                    && cause.local == one.to.to_string()
                    && cause.remote == one.from.to_string()
                    && cause.has(one.first_byte)
            })
        });
    }
    counted
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
            asked: Side { process: 1, thread: 1, at_ns: 1 },
            made_for,
            evidence: made_for.map(|_| "effect".to_owned()),
            span: None,
        }
    }

    #[test]
    fn calls_are_right_wrong_or_not_known() {
        let (client, server, out, back_end) =
            ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4");
        let rows = Rows {
            waits: Vec::new(),
            edges: Vec::new(),
            requests: vec![
                row(false, server, client, 0, None),
                row(false, server, client, 10, None),
                row(true, out, back_end, 0, Some(0)),
                row(true, out, back_end, 10, Some(0)),
                row(true, out, back_end, 20, None),
            ],
        };
        let asked = [0, 10].map(|first_byte| Named {
            name: first_byte / 10,
            from: client.parse().expect("an address"),
            to: server.parse().expect("an address"),
            first_byte,
        });
        // The second one is put to the first request; the last one was not seen.
        let calls = [(0, 0), (1, 10), (1, 20), (1, 30)].map(|(name, first_byte)| Named {
            name,
            from: out.parse().expect("an address"),
            to: back_end.parse().expect("an address"),
            first_byte,
        });
        let counts = count(&asked, &calls, &rows);
        let one = BTreeMap::from([("effect".to_owned(), 1)]);
        let expected = Calls { calls: 4, right: one.clone(), wrong: one, unknown: 1, missing: 1 };
        assert_eq!(counts, expected);
    }
}
