//! The messages of OTLP in their JSON encoding, as far as they are read.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// `ExportTraceServiceRequest`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    #[serde(default)]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans {
    #[serde(default)]
    pub(super) resource: Resource,
    #[serde(default)]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Resource {
    #[serde(default)]
    pub(super) attributes: Attributes,
}

#[derive(Debug, Deserialize)]
pub(super) struct ScopeSpans {
    #[serde(default)]
    pub(super) spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub(super) trace_id: Id,
    pub(super) span_id: Id64,
    #[serde(default)]
    pub(super) parent_span_id: Id64,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: Kind,
    pub(super) start_time_unix_nano: Number,
    pub(super) end_time_unix_nano: Number,
    #[serde(default)]
    pub(super) attributes: Attributes,
}

/// An id of 16 bytes in hexadecimal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Id(pub(super) u128);

/// One of 8 bytes; 0: none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Id64(pub(super) u64);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let id = u128::from_str_radix(&text, 16);
        id.map(Self)
            .map_err(|_| Error::custom("an id is not in hexadecimal"))
    }
}

impl<'de> Deserialize<'de> for Id64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self(0));
        }
        let id = u64::from_str_radix(&text, 16);
        id.map(Self)
            .map_err(|_| Error::custom("an id is not in hexadecimal"))
    }
}

/// `SpanKind`, as a number or by its name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind(u64);

impl Kind {
    pub(super) fn is_server(self) -> bool {
        self.0 == 2
    }

    pub(super) fn is_client(self) -> bool {
        self.0 == 3
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Name(String),
        }
        let number = match Written::deserialize(deserializer)? {
            Written::Number(number) => number,
            Written::Name(name) => match name.as_str() {
                "SPAN_KIND_SERVER" => 2,
                "SPAN_KIND_CLIENT" => 3,
                _ => 0,
            },
        };
        Ok(Self(number))
    }
}

/// A number of 64 bits: text, as JSON's numbers do not have as many, or a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                let number = text.parse();
                number
                    .map(Number)
                    .map_err(|_| E::custom("a time is not a number"))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// `KeyValue`s
#[derive(Debug, Default, Deserialize)]
pub(super) struct Attributes(Vec<Attribute>);

#[derive(Debug, Deserialize)]
struct Attribute {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: serde_json::Value,
}

impl Attributes {
    /// The text of the first of these keys that is there.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        let text = self.value(keys, "stringValue")?.as_str()?;
        Some(text.to_owned())
    }

    /// The port of the first of these keys that is there.
    pub(super) fn port(&self, keys: &[&str]) -> Option<u16> {
        let number = self.value(keys, "intValue")?;
        let number = match number.as_str() {
            Some(text) => text.parse().ok()?,
            None => number.as_u64()?,
        };
        u16::try_from(number).ok()
    }

    fn value(&self, keys: &[&str], kind: &str) -> Option<&serde_json::Value> {
        keys.iter().find_map(|key| {
            let found = self.0.iter().find(|attribute| attribute.key == *key)?;
            found.value.get(kind)
        })
    }
}
