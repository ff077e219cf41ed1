//! Messages of `opentelemetry/proto/collector/trace/v1` and below, reduced to the fields that are written.

use serde::{Serialize, Serializer};

/// Message `ExportTraceServiceRequest` of OTLP.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OtlpRequest {
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

/// Spans of one process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceSpans {
    pub(crate) resource: OtlpResource,
    /// Spans by the library that made them.
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

/// Message `OtlpResource` of OTLP.
#[derive(Debug, Serialize)]
pub(crate) struct OtlpResource {
    /// Host, name and id of the process.
    pub(crate) attributes: Vec<OtlpAttribute>,
}

/// Spans of one library.
#[derive(Debug, Serialize)]
pub(crate) struct ScopeSpans {
    pub(crate) scope: OtlpScope,
    pub(crate) spans: Vec<OtlpSpan>,
}

/// Message `InstrumentationScope` of OTLP.
#[derive(Debug, Serialize)]
pub(crate) struct OtlpScope {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Span. Ids are in hexadecimal; times are ns since 1970 as text, as JSON's numbers have fewer than 64 bits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OtlpSpan {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span_id: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: OtlpSpanKind,
    pub(crate) start_time_unix_nano: String,
    pub(crate) end_time_unix_nano: String,
    pub(crate) attributes: Vec<OtlpAttribute>,
}

/// Kind of a span, by OTLP's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OtlpSpanKind {
    Internal = 1,
    /// Request as its server sees it.
    Server = 2,
    /// Request as its client sees it.
    Client = 3,
}

impl Serialize for OtlpSpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// Message `KeyValue` of OTLP.
#[derive(Debug, Serialize)]
pub(crate) struct OtlpAttribute {
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

impl OtlpAttribute {
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
