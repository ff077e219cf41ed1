//! Tests of reading spans in all forms.

use super::*;

fn parsed(text: &str) -> Vec<ProgramSpan> {
    let found = parse(text.as_bytes()).expect("read");
    assert_eq!(found.left_out, None);
    found.spans
}

const SPANS: &str = r#"{"resourceSpans": [{
        "resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "web"}}]},
        "scopeSpans": [{"scope": {"name": "x"}, "spans": [
            {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174", "name": "GET /\u001b[2J",
             "kind": 2, "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": "1544712661000000000",
             "attributes": [{"key": "network.peer.address", "value": {"stringValue": "::ffff:10.0.0.1"}},
                            {"key": "network.peer.port", "value": {"intValue": "5001"}},
                            {"key": "url.path", "value": {"stringValue": "/never"}},
                            {"key": "other", "value": {"arrayValue": {"values": [{"boolValue": true}]}}}]},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b175",
             "parentSpanId": "eee19b7ec3c1b174", "name": "inner", "kind": "SPAN_KIND_SERVER",
             "startTimeUnixNano": 1, "endTimeUnixNano": 2},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b176",
             "parentSpanId": "eee19b7ec3c1b175", "name": "retry", "kind": 3,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": [
                {"key": "server.address", "value": {"stringValue": "db.example"}},
                {"key": "server.port", "value": {"intValue": 5432}}]},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b177",
             "parentSpanId": "eee19b7ec3c1b176", "name": "SELECT", "kind": 3, "attributes": [],
             "startTimeUnixNano": "1", "endTimeUnixNano": "2"},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b178", "name": "work", "kind": 1,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2"}]}]}]}
        {"resourceSpans": []}
        {}"#;

#[test]
fn spans_of_servers_and_clients_are_read() {
    let spans = parsed(SPANS);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, [luc_units::plain("GET /\x1b[2J").as_str(), "SELECT"]);
    let server = &spans[0];
    assert!(server.is_server);
    assert_eq!(server.trace_text(), "5b8efff798038103d269b633813fc60c");
    assert_eq!(server.span_id, 0xeee1_9b7e_c3c1_b174);
    assert_eq!(server.host.as_deref(), Some("web"));
    assert_eq!(server.peer_address, "10.0.0.1".parse().ok());
    assert_eq!(server.peer_port, Some(5001));
    assert_eq!(server.end_ns - server.start_ns, 1_000_000_000);
    assert_eq!(spans[1].parent_id, 0xeee1_9b7e_c3c1_b176);
}

#[test]
fn a_method_alone_has_the_path_beside_it() {
    let text = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [
            {"traceId": "1", "spanId": "1", "name": "GET", "kind": 2,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2",
             "attributes": [{"key": "url.path", "value": {"stringValue": "/search"}}]}]}]}]}"#;
    assert_eq!(parsed(text)[0].name, "GET /search");
}

/// Two spans in the forms of other writers.
#[test]
fn other_forms_are_read() {
    let tempo = r#"{"batches": [{"resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "web"}}]},
            "instrumentationLibrarySpans": [{"spans": [
            {"traceId": "W47/95gDgQPSabYzgT/GDA==", "spanId": "7uGbfsPBsXQ=", "parentSpanId": null, "name": "GET /",
             "kind": "SPAN_KIND_SERVER", "startTimeUnixNano": "1544712660000001000", "endTimeUnixNano": "1544712660000003000",
             "attributes": [{"key": "net.peer.port", "value": {"intValue": "5001"}}]}]}]}]}"#;
    let answer = format!(r#"{{"trace": {}}}"#, tempo.replace("batches", "resourceSpans"));
    let snake = r#"[{"resource_spans": [{"resource": {"attributes": [{"key": "host.name", "value": {"string_value": "web"}}]},
            "scope_spans": [{"spans": [
            {"trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174", "parent_span_id": "", "name": "GET /",
             "kind": 2, "start_time_unix_nano": 1544712660000001000, "end_time_unix_nano": "1544712660000003000",
             "attributes": [{"key": "net.peer.port", "value": {"int_value": 5001}}]}]}]}]}]"#;
    let jaeger = r#"{"data": [{"traceID": "5b8efff798038103d269b633813fc60c", "spans": [
            {"traceID": "5b8efff798038103d269b633813fc60c", "spanID": "eee19b7ec3c1b174", "operationName": "GET /",
             "references": [], "startTime": 1544712660000001, "duration": 2, "processID": "p1",
             "tags": [{"key": "span.kind", "type": "string", "value": "server"},
                      {"key": "net.peer.port", "type": "int64", "value": 5001}]},
            {"traceID": "5b8efff798038103d269b633813fc60c", "spanID": "eee19b7ec3c1b175", "operationName": "inner",
             "references": [{"refType": "CHILD_OF", "spanID": "eee19b7ec3c1b174"}], "startTime": 1544712660000001,
             "duration": 1, "processID": "p1", "tags": [{"key": "span.kind", "value": "server"}]}],
            "processes": {"p1": {"serviceName": "x", "tags": [{"key": "hostname", "value": "web"}]}}}]}"#;
    let console = r#"{
    "name": "GET /",
    "context": {"trace_id": "0x5b8efff798038103d269b633813fc60c", "span_id": "0xeee19b7ec3c1b174", "trace_state": "[]"},
    "kind": "SpanKind.SERVER",
    "parent_id": null,
    "start_time": "2018-12-13T14:51:00.000001Z",
    "end_time": "2018-12-13T14:51:00.000003Z",
    "attributes": {"net.peer.port": 5001},
    "resource": {"attributes": {"host.name": "web"}}
}
{
    "name": "inner",
    "context": {"trace_id": "0x5b8efff798038103d269b633813fc60c", "span_id": "0xeee19b7ec3c1b175"},
    "kind": "SpanKind.SERVER",
    "parent_id": "0xeee19b7ec3c1b174",
    "start_time": "2018-12-13T14:51:00.000001Z",
    "end_time": "2018-12-13T14:51:00.000003Z",
    "resource": {"attributes": {"host.name": "web"}}
}"#;
    for text in [tempo, &answer, snake, jaeger, console] {
        let spans = parsed(text);
        let [span] = &spans[..] else {
            panic!("{text}: {spans:?}");
        };
        assert_eq!(span.trace_text(), "5b8efff798038103d269b633813fc60c", "{text}");
        assert_eq!((span.span_id, span.parent_id), (0xeee1_9b7e_c3c1_b174, 0));
        assert_eq!((span.name.as_str(), span.host.as_deref()), ("GET /", Some("web")));
        assert_eq!(span.peer_port, Some(5001));
        let times = (1_544_712_660_000_001_000, 1_544_712_660_000_003_000);
        assert_eq!((span.start_ns, span.end_ns), times);
    }
}

#[test]
fn what_cannot_be_read_is_left_out_and_said() {
    let span = |id: &str, end: &str| {
        format!(
            r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{{"traceId": "1", "spanId": "{id}", "kind": 2, "name": "x",
                "startTimeUnixNano": "1" {end}}}]}}]}}]}}"#
        )
        .replace('\n', " ")
    };
    let ended = r#", "endTimeUnixNano": "2""#;
    let (whole, open) = (span("1", ended), span("2", ""));
    let cut = &whole[..whole.len() - 9];
    for (text, read, said) in [
        (format!("{whole}\n{open}\n"), 1, "not read: 1 of 2 spans (it has no end)"),
        (format!("{whole}\n{cut}"), 1, "not read: 1 document (EOF"),
        (format!("{whole}\n{cut}\n{whole}\n"), 2, "not read: 1 document ("),
        (
            format!("{whole}\n{{\"logs\": []}}"),
            1,
            "not read: 1 document (a document has none of resourceSpans",
        ),
        (r#"{"batches": []}"#.to_owned(), 0, "it has no spans"),
        (String::new(), 0, "it has no spans"),
    ] {
        let found = parse(text.as_bytes()).expect("read");
        assert_eq!(found.spans.len(), read, "{text}");
        let left_out = found.left_out.unwrap_or_default();
        assert!(left_out.starts_with(said), "{text}: {left_out}");
    }
}

#[test]
fn what_is_no_span_is_refused() {
    for text in [
        "x",
        "{",
        r#"{"resourceLogs": []}"#,
        r#"{"resourceSpans": 3}"#,
        r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}"#,
        r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "00", "spanId": "00",
                "startTimeUnixNano": "-1"}]}]}]}"#,
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}
