//! Metric families and their samples, in the text format.

use std::fmt::{Display, Write as _};

/// Labels of a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(String);

impl Labels {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The same and one more.
    pub(super) fn with(&self, name: &str, value: impl Display) -> Self {
        let mut text = self.0.clone();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.to_string().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                c if luc_units::is_steering(c) => text.push(char::REPLACEMENT_CHARACTER),
                c => text.push(c),
            }
        }
        text.push('"');
        Self(text)
    }
}

/// The types that are used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// One family.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: String,
}

impl Family {
    /// One sample; what is no finite number is left out.
    pub(super) fn sample(&mut self, suffix: &str, labels: &Labels, value: f64) {
        if !value.is_finite() {
            return;
        }
        let (name, samples) = (self.name, &mut self.samples);
        // Writing to a string cannot fail.
        let _ = if labels.0.is_empty() {
            writeln!(samples, "{name}{suffix} {value}")
        } else {
            writeln!(samples, "{name}{suffix}{{{}}} {value}", labels.0)
        };
    }

    /// Units that names end in.
    fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes", "ratio"].into_iter().find(|unit| {
            let rest = self.name.strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        })
    }
}

/// All families, in the order of their first samples; the samples of each stand together.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<Family>);

impl Families {
    pub(super) fn family(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &'static str,
    ) -> &mut Family {
        let index = self.0.iter().position(|family| family.name == name);
        let index = index.unwrap_or_else(|| {
            self.0.push(Family {
                name,
                kind,
                help,
                samples: String::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for family in &self.0 {
            let (name, kind) = (family.name, family.kind.name());
            let _ = writeln!(text, "# TYPE {name} {kind}");
            if let Some(unit) = family.unit() {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            let _ = writeln!(text, "# HELP {name} {}", family.help);
            text.push_str(&family.samples);
        }
        text.push_str("# EOF\n");
        text
    }
}
