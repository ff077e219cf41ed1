//! Reads the forms in which spans are written. Each field is looked up by all of its names, as writers differ:
//! protobuf's JSON allows `traceId` and `trace_id`, null for what is missing, and ids in base64.

use serde_json::Value;

/// Spans of one process.
#[derive(Debug, Default)]
pub(super) struct ProcessSpans {
    /// Key of the process if each span is a document.
    pub(super) process: Option<String>,
    pub(super) host: Option<String>,
    /// Spans, or reasons why they cannot be read.
    pub(super) spans: Vec<Result<ParsedSpan, String>>,
}

#[derive(Debug)]
pub(super) struct ParsedSpan {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) parent_id: u64,
    pub(super) name: String,
    pub(super) kind: ReadSpanKind,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) attributes: SpanAttributes,
}

/// Kind of a span as a program wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadSpanKind {
    Server,
    Client,
    Other,
}

/// Reads the spans of a document; `None`: its form is unknown.
pub(super) fn read_document(document: &Value) -> Option<Vec<ProcessSpans>> {
    if let Some(documents) = document.as_array() {
        let all: Vec<_> = documents.iter().filter_map(read_document).collect();
        let is_known = documents.is_empty() || !all.is_empty();
        return is_known.then(|| all.into_iter().flatten().collect());
    }
    let fields = document.as_object()?;
    // Tempo's answers have the trace in a field of its own, or its processes as batches.
    if let Some(trace) = field(document, &["trace"]) {
        return read_document(trace);
    }
    if let Some(processes) = field(document, &["resourceSpans", "resource_spans", "batches"]) {
        return Some(processes.as_array()?.iter().map(read_resource).collect());
    }
    // Jaeger's answers.
    if let Some(traces) = field(document, &["data"]) {
        return Some(traces.as_array()?.iter().flat_map(read_jaeger_trace).collect());
    }
    // A span as SDKs print it on a console.
    if field(document, &["context"]).is_some() && fields.contains_key("name") {
        return Some(vec![read_console_span(document)]);
    }
    fields.values().all(Value::is_null).then(Vec::new)
}

/// Returns the first of these fields that is there, and not null.
fn field<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    let found = names.iter().find_map(|name| value.get(name))?;
    Some(found).filter(|found| !found.is_null())
}

fn list<'a>(value: &'a Value, names: &[&str]) -> impl Iterator<Item = &'a Value> {
    field(value, names).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, names: &[&str]) -> Option<String> {
    field(value, names)?.as_str().map(str::to_owned)
}

fn read_resource(process: &Value) -> ProcessSpans {
    let resource = field(process, &["resource"]).unwrap_or(&Value::Null);
    let scopes = list(
        process,
        &[
            "scopeSpans",
            "scope_spans",
            "instrumentationLibrarySpans",
            "instrumentation_library_spans",
        ],
    );
    ProcessSpans {
        process: None,
        host: SpanAttributes::of(resource).text(&["host.name"]),
        spans: scopes.flat_map(|scope| list(scope, &["spans"])).map(read_otlp_span).collect(),
    }
}

fn read_otlp_span(span: &Value) -> Result<ParsedSpan, String> {
    let kind = match field(span, &["kind"]) {
        Some(Value::Number(number)) => match number.as_u64() {
            Some(2) => ReadSpanKind::Server,
            Some(3) => ReadSpanKind::Client,
            _ => ReadSpanKind::Other,
        },
        Some(Value::String(name)) => ReadSpanKind::of(name),
        _ => ReadSpanKind::Other,
    };
    let time = |names| field(span, names).map(parse_number).transpose();
    let start_ns = time(&["startTimeUnixNano", "start_time_unix_nano"])?;
    let end_ns = time(&["endTimeUnixNano", "end_time_unix_nano"])?;
    UncheckedSpan {
        trace_id: field(span, &["traceId", "trace_id"]),
        span_id: field(span, &["spanId", "span_id"]),
        parent_id: field(span, &["parentSpanId", "parent_span_id"]),
        start_ns,
        end_ns,
        name: text(span, &["name"]),
        kind,
        attributes: SpanAttributes::of(span),
    }
    .check()
}

fn read_jaeger_trace(trace: &Value) -> Vec<ProcessSpans> {
    let mut groups: Vec<ProcessSpans> = Vec::new();
    for span in list(trace, &["spans"]) {
        let process = text(span, &["processID"]).unwrap_or_default();
        let found = read_jaeger_span(span);
        match groups.iter_mut().find(|group| group.process.as_deref() == Some(&process)) {
            Some(group) => group.spans.push(found),
            None => {
                let about = trace.get("processes").and_then(|all| all.get(&process));
                let tags = SpanAttributes::of(about.unwrap_or(&Value::Null));
                groups.push(ProcessSpans {
                    process: Some(process),
                    host: tags.text(&["host.name", "hostname"]),
                    spans: vec![found],
                });
            }
        }
    }
    // Another trace has other processes by these names.
    groups.iter_mut().for_each(|group| group.process = None);
    groups
}

fn read_jaeger_span(span: &Value) -> Result<ParsedSpan, String> {
    let references = list(span, &["references"]);
    let parent = references
        .filter(|one| text(one, &["refType"]).as_deref() != Some("FOLLOWS_FROM"))
        .find_map(|one| field(one, &["spanID", "spanId"]));
    let attributes = SpanAttributes::of(span);
    let us = |names| field(span, names).map(parse_number).transpose();
    let start_us = us(&["startTime"])?;
    let end_us =
        us(&["duration"])?.zip(start_us).map(|(length, start)| length.saturating_add(start));
    let ns = |us: Option<u64>| us.map(|us| us.saturating_mul(1000));
    UncheckedSpan {
        trace_id: field(span, &["traceID", "traceId"]),
        span_id: field(span, &["spanID", "spanId"]),
        parent_id: parent.or_else(|| field(span, &["parentSpanID"])),
        start_ns: ns(start_us),
        end_ns: ns(end_us),
        name: text(span, &["operationName"]),
        kind: attributes
            .text(&["span.kind"])
            .map_or(ReadSpanKind::Other, |kind| ReadSpanKind::of(&kind)),
        attributes,
    }
    .check()
}

fn read_console_span(span: &Value) -> ProcessSpans {
    let resource = field(span, &["resource"]).unwrap_or(&Value::Null);
    let context = field(span, &["context"]).unwrap_or(&Value::Null);
    let read = || {
        let time = |names| field(span, names).map(parse_date).transpose();
        UncheckedSpan {
            start_ns: time(&["start_time"])?,
            end_ns: time(&["end_time"])?,
            trace_id: field(context, &["trace_id", "traceId"]),
            span_id: field(context, &["span_id", "spanId"]),
            parent_id: field(span, &["parent_id", "parentId"]),
            name: text(span, &["name"]),
            kind: text(span, &["kind"]).map_or(ReadSpanKind::Other, |kind| ReadSpanKind::of(&kind)),
            attributes: SpanAttributes::of(span),
        }
        .check()
    };
    ProcessSpans {
        process: Some(resource.to_string()),
        host: SpanAttributes::of(resource).text(&["host.name"]),
        spans: vec![read()],
    }
}

impl ReadSpanKind {
    fn of(name: &str) -> Self {
        let name = name.rsplit(['.', '_']).next().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "server" | "2" => Self::Server,
            "client" | "3" => Self::Client,
            _ => Self::Other,
        }
    }
}

/// Fields of a span that all forms have.
struct UncheckedSpan<'v> {
    trace_id: Option<&'v Value>,
    span_id: Option<&'v Value>,
    parent_id: Option<&'v Value>,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    name: Option<String>,
    kind: ReadSpanKind,
    attributes: SpanAttributes,
}

impl UncheckedSpan<'_> {
    fn check(self) -> Result<ParsedSpan, String> {
        let start_ns = self.start_ns.filter(|&ns| ns > 0).ok_or("it has no start")?;
        let end_ns = self.end_ns.filter(|&ns| ns > 0).ok_or("it has no end")?;
        if end_ns < start_ns {
            return Err("it ends before it begins".to_owned());
        }
        let needed = |id: Option<&Value>| parse_id(id.ok_or("it has no id")?);
        Ok(ParsedSpan {
            trace_id: needed(self.trace_id)?,
            span_id: to_span_id(needed(self.span_id)?)?,
            parent_id: to_span_id(self.parent_id.map_or(Ok(0), parse_id)?)?,
            name: self.name.unwrap_or_default(),
            kind: self.kind,
            start_ns,
            end_ns,
            attributes: self.attributes,
        })
    }
}

fn to_span_id(id: u128) -> Result<u64, String> {
    u64::try_from(id).map_err(|_| "the id of a span has more than 8 bytes".to_owned())
}

/// Parses an id of 16 or 8 bytes: in hexadecimal as in OTLP, or in base64 as protobuf's JSON has bytes. Empty is 0.
fn parse_id(value: &Value) -> Result<u128, String> {
    let wrong = || "an id is not in hexadecimal".to_owned();
    let text = value.as_str().ok_or_else(wrong)?;
    let text = text.strip_prefix("0x").unwrap_or(text);
    if text.is_empty() {
        return Ok(0);
    }
    // Base64 of 8 or 16 bytes is padded.
    if text.ends_with('=') {
        return decode_base64(text).ok_or_else(wrong);
    }
    u128::from_str_radix(text, 16).map_err(|_| wrong())
}

/// Decodes at most 16 bytes.
fn decode_base64(text: &str) -> Option<u128> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    let value = bytes.iter().fold(0, |value: u128, &byte| value << 8 | u128::from(byte));
    (bytes.len() <= 16).then_some(value)
}

/// Parses a number of 64 bits: text, as JSON's numbers have fewer bits, or a number.
fn parse_number(value: &Value) -> Result<u64, String> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    number.ok_or_else(|| "a time is not a number".to_owned())
}

/// Parses a date like `2026-01-31T23:59:59.5Z`, to ns since 1970.
fn parse_date(value: &Value) -> Result<u64, String> {
    let wrong = || "a time is not written like 2026-01-31T23:59:59.5Z".to_owned();
    let text = value.as_str().and_then(|text| text.strip_suffix('Z')).ok_or_else(wrong)?;
    let (day, time) = text.split_once('T').ok_or_else(wrong)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let parts = |text: &str, between: char| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let [year, month, day] = parts(day, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = parts(time, ':').ok_or_else(wrong)?;
    let is_right =
        (1970..2262).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_right = is_right && hour < 24 && minute < 60 && second <= 60 && fraction.len() <= 9;
    let ns: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    if !is_right {
        return Err(wrong());
    }
    // Years begin in March here, so that a leap day comes last.
    let shifted = if month > 2 { year } else { year - 1 };
    let leap_days = shifted / 4 - shifted / 100 + shifted / 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * shifted + leap_days + of_year - 719_468;
    Ok((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + ns)
}

/// Attributes of a span: `KeyValue`s of OTLP, tags of Jaeger, or an object.
#[derive(Debug, Default)]
pub(super) struct SpanAttributes(Value);

impl SpanAttributes {
    fn of(value: &Value) -> Self {
        Self(field(value, &["attributes", "tags"]).cloned().unwrap_or_default())
    }

    /// Text of the first of these keys that is there.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        Some(self.value(keys)?.as_str()?.to_owned())
    }

    /// Port of the first of these keys that is there.
    pub(super) fn port(&self, keys: &[&str]) -> Option<u16> {
        u16::try_from(parse_number(self.value(keys)?).ok()?).ok()
    }

    fn value(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().find_map(|key| {
            let Some(list) = self.0.as_array() else {
                return self.0.get(key);
            };
            let is_it = |one: &&Value| one.get("key").and_then(Value::as_str) == Some(key);
            let value = list.iter().find(is_it)?.get("value")?;
            if value.is_object() {
                field(value, &["stringValue", "string_value", "intValue", "int_value"])
            } else {
                Some(value)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        let of = |text: &str| parse_date(&Value::from(text));
        assert_eq!(of("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(of("2026-01-31T23:59:59.5Z"), Ok(1_769_903_999_500_000_000));
        assert_eq!(of("2024-02-29T00:00:00.000001Z"), Ok(1_709_164_800_000_001_000));
        for text in ["", "2026-01-31", "2026-13-01T00:00:00Z", "9999-01-01T00:00:00Z"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
