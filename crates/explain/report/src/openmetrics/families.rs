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

/// Which of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    OpenMetrics,
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
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
    /// Its name where it has one. Prometheus' format has no info, and OpenMetrics' would be refused by its readers.
    fn name(self, style: Style) -> Option<&'static str> {
        match (self, style) {
            (Self::Counter, _) => Some("counter"),
            (Self::Histogram, _) => Some("histogram"),
            (Self::Gauge, _) | (Self::Info, Style::Prometheus) => Some("gauge"),
            (Self::Info, Style::OpenMetrics) => None,
        }
    }
}

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
            self.0.push(Family { name, kind, help, samples: String::new() });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    pub(super) fn text(&self, style: Style) -> String {
        let mut text = String::new();
        let is_open = style == Style::OpenMetrics;
        for family in &self.0 {
            // Where families of counters have another name than their samples.
            let total = match family.kind {
                Kind::Counter if !is_open => "_total",
                _ => "",
            };
            let name = format!("{}{total}", family.name);
            let _ = writeln!(text, "# HELP {name} {}", family.help);
            if let Some(kind) = family.kind.name(style) {
                let _ = writeln!(text, "# TYPE {name} {kind}");
            }
            if let Some(unit) = family.unit().filter(|_| is_open) {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            text.push_str(&family.samples);
        }
        if is_open {
            text.push_str("# EOF\n");
        }
        text
    }
}
