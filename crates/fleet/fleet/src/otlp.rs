//! Spans of OpenTelemetry: the JSON of OTLP, as far as `luc-fleet` reads and writes it.
//!
//! - [`read_spans`]: what programs wrote of their requests, also as Tempo and Jaeger give it away.
//! - [`mod@write`]: the messages that `luc-fleet report --otlp` makes.
//!
//! The crate `opentelemetry-proto` has all messages, but needs the whole SDK for it, with executors and random numbers:
//! tests of `luc-fleet` read and write with it what is written and read here.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod read;
pub(crate) mod write;

pub use read::{Span, SpanError, Spans, parse, read_spans};
