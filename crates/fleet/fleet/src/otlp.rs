//! Reads and writes spans of OpenTelemetry, in the JSON of OTLP.
//!
//! - [`read_spans`]: reads spans that programs wrote of their requests, also in the forms of Tempo and Jaeger.
//! - [`mod@write`]: messages that `luc-fleet report --otlp` writes.
//!
//! The crate `opentelemetry-proto` has all messages, but needs the whole SDK, with executors and random numbers. Tests
//! use it to check what is read and written here.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod read;
pub(crate) mod write;

pub use read::{Span, SpanError, Spans, parse, read_spans};
