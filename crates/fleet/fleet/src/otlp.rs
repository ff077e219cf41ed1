//! Reads and writes spans of OpenTelemetry, in the JSON of OTLP.
//!
//! - [`read_spans()`]: reads spans that programs wrote of their requests, also in the forms of Tempo and Jaeger.
//! - [`otlp_messages`]: messages that `luc-fleet report --otlp` writes.
//!
//! The crate `opentelemetry-proto` has all messages, but needs the whole SDK, with executors and random numbers. Tests
//! use it to check what is read and written here.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

pub(crate) mod otlp_messages;
mod read_spans;

pub use read_spans::{ProgramSpan, ProgramSpans, SpanError, parse, read_spans};
