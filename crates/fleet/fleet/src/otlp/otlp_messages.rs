//! Messages of `opentelemetry/proto/collector/trace/v1` and below, reduced to the fields that are written.

use serde::{Serialize, Serializer};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

/// Spans of one process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceSpans {
    pub(crate) resource: Resource,
    /// Spans by the library that made them.
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Resource {
    /// Host, name and id of the process.
    pub(crate) attributes: Vec<Attribute>,
}

/// Spans of one library.
#[derive(Debug, Serialize)]
pub(crate) struct ScopeSpans {
    pub(crate) scope: Scope,
    pub(crate) spans: Vec<Span>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Scope {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Span. Ids are in hexadecimal; times are ns since 1970 as text, as JSON's numbers have fewer than 64 bits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span_id: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) start_time_unix_nano: String,
    pub(crate) end_time_unix_nano: String,
    pub(crate) attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum SpanKind {
    Internal = 1,
    /// Request as its server sees it.
    Server = 2,
    /// Request as its client sees it.
    Client = 3,
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Attribute {
    key: &'static str,
    value: Value,
}

#[derive(Debug, Serialize)]
enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Flag(bool),
    /// Number of 64 bits, as text.
    #[serde(rename = "intValue")]
    Number(String),
}

impl Attribute {
    #[must_use]
    pub(crate) fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, value: Value::Text(text.into()) }
    }

    #[must_use]
    pub(crate) fn flag(key: &'static str, value: bool) -> Self {
        Self { key, value: Value::Flag(value) }
    }

    /// Creates a number. OTLP's type is signed: larger values are cut.
    #[must_use]
    pub(crate) fn number(key: &'static str, number: u64) -> Self {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        Self { key, value: Value::Number(number.to_string()) }
    }
}
