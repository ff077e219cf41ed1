//! The messages of `opentelemetry/proto/collector/trace/v1` and what is in them, as far as they are used, in their JSON
//! encoding.
//!
//! The crate `opentelemetry-proto` has all of them, but needs the whole SDK for it, with executors and random numbers:
//! tests read with it what is written here.

use serde::{Serialize, Serializer};

/// `ExportTraceServiceRequest`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) resource_spans: Vec<ResourceSpans>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans {
    pub(super) resource: Resource,
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Debug, Serialize)]
pub(super) struct Resource {
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeSpans {
    pub(super) scope: Scope,
    pub(super) spans: Vec<Span>,
}

/// `InstrumentationScope`
#[derive(Debug, Serialize)]
pub(super) struct Scope {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// Ids are in hexadecimal; times are ns since 1970, as text: JSON's numbers do not have 64 bits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_span_id: Option<String>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start_time_unix_nano: String,
    pub(super) end_time_unix_nano: String,
    pub(super) attributes: Vec<Attribute>,
}

/// Enumerations are numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// `KeyValue`
#[derive(Debug, Serialize)]
pub(super) struct Attribute {
    key: &'static str,
    value: Value,
}

/// `AnyValue`
#[derive(Debug, Serialize)]
enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Flag(bool),
    /// 64 bits, as text.
    #[serde(rename = "intValue")]
    Number(String),
}

impl Attribute {
    pub(super) fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self {
            key,
            value: Value::Text(text.into()),
        }
    }

    pub(super) fn flag(key: &'static str, value: bool) -> Self {
        Self {
            key,
            value: Value::Flag(value),
        }
    }

    /// The type has a sign: what is beyond its end is cut.
    pub(super) fn number(key: &'static str, number: u64) -> Self {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            key,
            value: Value::Number(number.to_string()),
        }
    }
}
