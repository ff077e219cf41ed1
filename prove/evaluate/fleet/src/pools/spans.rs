//! Judges whether each span is assigned to its request.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use luc_harness::error::EvaluateError;
use luc_harness::harness::missing;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{RequestRow, Rows};
use crate::named::Named;

/// Numbers of spans, and of those assigned right and wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct SpanCounts {
    spans: u64,
    right: u64,
    wrong: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Spans {
    /// Spans of requests that the server received.
    received: SpanCounts,
    /// Spans of calls that it sent. One is right if it is assigned to a call for its request.
    sent: SpanCounts,
}

impl Spans {
    /// Judges by the names in the spans' paths and in the bytes of requests and calls.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn judge(
        path: &Path,
        asked: &[Named],
        calls: &[Named],
        rows: &Rows,
    ) -> Result<Self, EvaluateError> {
        let text = fs::read_to_string(path).map_err(EvaluateError::file("read", path))?;
        let mut names = HashMap::new();
        for line in text.lines() {
            let request: Value = serde_json::from_str(line)
                .map_err(|error| missing(&format!("the spans ({error})")))?;
            names.extend(spans(&request));
        }
        Ok(Self::of(&names, asked, calls, rows))
    }

    fn of(names: &HashMap<String, Name>, asked: &[Named], calls: &[Named], rows: &Rows) -> Self {
        let mut counted = Self::default();
        for name in names.values() {
            counted.of_side(name.is_sent).spans += 1;
        }
        let ends = |one: &Named, is_sent: bool| {
            let [from, to] = [one.from.to_string(), one.to.to_string()];
            // The server's end of a request, and of a call.
            if is_sent { (from, to) } else { (to, from) }
        };
        let mut truth: HashMap<(String, String), Vec<&Named>> = HashMap::new();
        for (all, is_sent) in [(asked, false), (calls, true)] {
            for one in all {
                truth.entry(ends(one, is_sent)).or_default().push(one);
            }
        }
        let name_of = |row: &RequestRow| {
            let of_end = truth.get(&(row.local.clone(), row.remote.clone()))?;
            let found = of_end.iter().find(|one| row.has(one.first_byte))?;
            Some(found.name)
        };
        for row in &rows.requests {
            let Some(span) = &row.span else { continue };
            let counts = counted.of_side(row.is_sent);
            let is_right = names
                .get(&span.span_id)
                .is_some_and(|name| name.is_sent == row.is_sent && name_of(row) == Some(name.name));
            *(if is_right { &mut counts.right } else { &mut counts.wrong }) += 1;
        }
        counted
    }

    fn of_side(&mut self, is_sent: bool) -> &mut SpanCounts {
        if is_sent { &mut self.sent } else { &mut self.received }
    }
}

/// Name in a span, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    name: u64,
    is_sent: bool,
}

/// Returns the spans of an exporter's request, by their ids.
fn spans(request: &Value) -> Vec<(String, Name)> {
    fn all<'a>(values: impl Iterator<Item = &'a Value>, key: &str) -> Vec<&'a Value> {
        values.filter_map(|value| value.get(key)?.as_array()).flatten().collect()
    }
    let of_processes = all([request].into_iter(), "resourceSpans");
    let of_scopes = all(of_processes.into_iter(), "scopeSpans");
    let spans = all(of_scopes.into_iter(), "spans");
    spans.into_iter().filter_map(name_span).collect()
}

fn name_span(span: &Value) -> Option<(String, Name)> {
    let is_sent = span.get("kind")?.as_u64()? == 3;
    let key = if is_sent { "url.full" } else { "url.path" };
    let attributes = span.get("attributes")?.as_array()?;
    let attribute =
        attributes.iter().find(|one| one.get("key").and_then(Value::as_str) == Some(key))?;
    let url = attribute.get("value")?.get("stringValue")?.as_str()?;
    // http://HOST/NAME/CALL, and /NAME.
    let place = if is_sent { 3 } else { 1 };
    let name = url.split('/').nth(place)?.parse().ok()?;
    let id = span.get("spanId")?.as_str()?.to_owned();
    Some((id, Name { name, is_sent }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_have_the_names_in_their_paths() {
        let span = |id: &str, kind: u64, key: &str, url: &str| {
            json!({
                "spanId": id, "kind": kind,
                "attributes": [{ "key": key, "value": { "stringValue": url } }]
            })
        };
        let request = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [
            span("a", 2, "url.path", "/00000012"),
            span("b", 3, "url.full", "http://127.0.0.1:80/00000012/2"),
            span("c", 1, "url.path", "/00000012"),
            span("d", 2, "url.path", "/favicon.ico"),
        ] }] }] });
        let read: HashMap<String, Name> = spans(&request).into_iter().collect();
        let name = |is_sent| Name { name: 12, is_sent };
        assert_eq!(read.get("a"), Some(&name(false)));
        assert_eq!(read.get("b"), Some(&name(true)));
        assert_eq!(read.get("d"), None);
    }

    #[test]
    fn a_span_is_right_where_the_request_has_its_name() {
        let named = |name, from: &str, to: &str, first_byte| Named {
            name,
            from: from.parse().expect("an address"),
            to: to.parse().expect("an address"),
            first_byte,
        };
        let (client, server, out, back_end) =
            ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4");
        let asked = [named(7, client, server, 0), named(8, client, server, 10)];
        let calls = [named(7, out, back_end, 0), named(8, out, back_end, 10)];
        let row = |is_sent, local: &str, remote: &str, first_byte, span: &str| {
            serde_json::from_value(json!({
                "is_sent": is_sent, "local": local, "remote": remote, "first_byte": first_byte, "bytes": 10,
                "asked": { "process": 1, "thread": 1, "at_ns": 1 }, "made_for": null, "evidence": null,
                "span": { "span_id": span }
            }))
            .expect("a row")
        };
        let rows = Rows {
            waits: Vec::new(),
            edges: Vec::new(),
            requests: vec![
                row(false, server, client, 0, "a"),
                row(false, server, client, 10, "a"),
                row(true, out, back_end, 10, "b"),
            ],
        };
        let name = |name, is_sent| Name { name, is_sent };
        let names = [("a", name(7, false)), ("b", name(8, true)), ("c", name(9, true))];
        let names = names.map(|(id, name)| (id.to_owned(), name)).into();
        let spans = Spans::of(&names, &asked, &calls, &rows);
        let counts = |spans, right, wrong| SpanCounts { spans, right, wrong };
        assert_eq!(spans.received, counts(1, 1, 1));
        assert_eq!(spans.sent, counts(2, 1, 0));
    }
}
