//! Tests spans for OpenTelemetry.

use std::collections::{BTreeMap, HashMap, HashSet};

use luc_fleet::report::otlp;
use luc_fleet::{ExplanationOptions, JoinedTraces, explain};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::{CLIENT, chosen, joined, planted, written};
use crate::planted_hosts::BEGIN_NS;

pub(super) fn json(joined: &JoinedTraces) -> Vec<u8> {
    written(joined, chosen(None, 5), |report, out| otlp::write(report, out))
}

/// A span with its resource's host and process.
pub(super) struct FoundSpan {
    host: String,
    pub(super) process: String,
    pub(super) span: Span,
}

impl FoundSpan {
    fn attribute(&self, key: &str) -> Option<Value> {
        let all = &self.span.attributes;
        all.iter().find(|attribute| attribute.key == key)?.value.clone()?.value
    }

    fn number(&self, key: &str) -> Option<i64> {
        match self.attribute(key)? {
            Value::IntValue(number) => Some(number),
            other => panic!("{key}: {other:?}"),
        }
    }
}

/// All spans, by their ids. The types are OpenTelemetry's own.
pub(super) fn spans(json: &[u8]) -> HashMap<Vec<u8>, FoundSpan> {
    let request: ExportTraceServiceRequest = serde_json::from_slice(json).expect("decoded");
    let mut all = HashMap::new();
    for of_resource in request.resource_spans {
        let attributes = of_resource.resource.expect("a resource").attributes;
        let text = |key: &str| {
            let found = attributes.iter().find(|attribute| attribute.key == key);
            match found.and_then(|found| found.value.clone()?.value) {
                Some(Value::StringValue(text)) => text,
                other => panic!("{key}: {other:?}"),
            }
        };
        for of_scope in of_resource.scope_spans {
            for span in of_scope.spans {
                assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
                assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
                let found = FoundSpan {
                    host: text("host.name"),
                    process: text("service.name"),
                    span: span.clone(),
                };
                assert!(all.insert(span.span_id, found).is_none(), "an id comes twice");
            }
        }
    }
    all
}

#[test]
fn spans_are_the_tree_of_calls_and_the_path() {
    let joined = joined(planted());
    let written_once = json(&joined);
    assert_eq!(written_once, json(&joined), "ids are the same each time");
    let all = spans(&written_once);
    let mut traces: BTreeMap<Vec<u8>, Vec<&FoundSpan>> = BTreeMap::new();
    for found in all.values() {
        traces.entry(found.span.trace_id.clone()).or_default().push(found);
    }
    assert_eq!(traces.len(), 5);
    for trace in traces.values() {
        let roots: Vec<&&FoundSpan> =
            trace.iter().filter(|found| found.span.parent_span_id.is_empty()).collect();
        let [root] = roots[..] else {
            panic!("{} roots", roots.len());
        };
        let number = root.number("luc.request.number").expect("a number") as usize;
        let wanted = ExplanationOptions { request: Some(number), rows: false };
        let request = explain(&joined, wanted).expect("explained").request;
        let request = request.expect("a request");
        assert_eq!((root.host.as_str(), root.process.as_str()), ("client", "clientd"));
        let began_ns = CLIENT.monotonic_ns(BEGIN_NS) + request.request.began_ns;
        let began_ns = began_ns + 1_700_000_000_000_000_000;
        assert_eq!(root.span.start_time_unix_nano, began_ns);
        let end_ns = began_ns + request.request.time_ns;
        assert_eq!(root.span.end_time_unix_nano, end_ns);
        // Client, server, and the client of the third.
        let below = |parent: &FoundSpan, kind: i32| -> Vec<&&FoundSpan> {
            let is_below = |found: &&&FoundSpan| {
                found.span.parent_span_id == parent.span.span_id && found.span.kind == kind
            };
            trace.iter().filter(is_below).collect()
        };
        let servers = below(root, 2);
        let [server] = servers[..] else {
            panic!("{} servers", servers.len());
        };
        assert_eq!(server.host, "server");
        let error_ns = request.calls[0].server_after_error_ns;
        assert_eq!(server.number("luc.clock.error_ns"), error_ns.map(|ns| ns as i64));
        let thirds = below(server, 3);
        let [third] = thirds[..] else {
            panic!("{} calls of the server", thirds.len());
        };
        assert_eq!(third.number("server.port"), Some(5_432));
        assert_eq!(
            third.attribute("luc.evidence"),
            Some(Value::StringValue("same thread".to_owned()))
        );
        assert_eq!(below(third, 2).len() + below(third, 3).len(), 0);
        // The path is below the root, and its parts follow each other.
        let paths = below(root, 1);
        let [path] = paths[..] else {
            panic!("{} paths", paths.len());
        };
        let mut parts = below(path, 1);
        parts.sort_by_key(|part| part.span.start_time_unix_nano);
        assert_eq!(parts.len(), request.path.len());
        let mut at_ns = began_ns;
        for (part, said) in parts.iter().zip(&request.path) {
            assert_eq!(part.span.start_time_unix_nano, at_ns);
            at_ns = part.span.end_time_unix_nano;
            assert_eq!((&part.host, &part.span.name[..]), (&said.host, said.what));
            assert_eq!(part.number("thread.id"), said.thread.map(i64::from));
        }
        assert_eq!(at_ns, end_ns);
        assert_eq!(trace.len(), 4 + parts.len());
    }
    // One alone.
    let one = written(&joined, chosen(Some(2), 5), |report, out| otlp::write(report, out));
    let one = spans(&one);
    assert!(one.keys().all(|id| all.contains_key(id)));
    let traces: HashSet<_> = one.values().map(|found| &found.span.trace_id).collect();
    assert_eq!(traces.len(), 1);
}
