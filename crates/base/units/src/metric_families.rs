//! Metric families and their samples, in OpenMetrics' text format or in Prometheus' older one.

use std::fmt::{Display, Write as _};

/// Labels of a sample.
#[derive(Clone, Debug, Default)]
pub struct MetricLabels(String);

impl MetricLabels {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the labels with one more.
    #[must_use]
    pub fn with(&self, name: &str, value: impl Display) -> Self {
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
                c if crate::is_steering(c) => text.push(char::REPLACEMENT_CHARACTER),
                c => text.push(c),
            }
        }
        text.push('"');
        Self(text)
    }
}

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricFormat {
    OpenMetrics,
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
}

/// The type of a family.
#[derive(Clone, Copy, Debug)]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl MetricType {
    /// Returns the name of the type, if the format has one. Prometheus' format has no info, and its readers would
    /// refuse that of OpenMetrics.
    fn name(self, style: MetricFormat) -> Option<&'static str> {
        match (self, style) {
            (Self::Counter, _) => Some("counter"),
            (Self::Histogram, _) => Some("histogram"),
            (Self::Gauge, _) | (Self::Info, MetricFormat::Prometheus) => Some("gauge"),
            (Self::Info, MetricFormat::OpenMetrics) => None,
        }
    }
}

/// Samples of one name, with what they mean.
#[derive(Debug)]
pub struct MetricFamily {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    samples: String,
}

impl MetricFamily {
    /// Adds a sample, unless its value is not finite.
    pub fn sample(&mut self, suffix: &str, labels: &MetricLabels, value: f64) {
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

    /// Returns the unit that the name ends in.
    fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes", "ratio"].into_iter().find(|unit| {
            let rest = self.name.strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        })
    }
}

/// All families, in the order of their first samples. The samples of a family follow each other.
#[derive(Debug, Default)]
pub struct MetricFamilies(Vec<MetricFamily>);

impl MetricFamilies {
    /// Returns the family of a name, which is made at its first use.
    pub fn family(
        &mut self,
        name: &'static str,
        kind: MetricType,
        help: &'static str,
    ) -> &mut MetricFamily {
        let index = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            self.0.push(MetricFamily { name, kind, help, samples: String::new() });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    /// Adds a sample of a counter.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &MetricLabels,
        total: f64,
    ) {
        self.family(name, MetricType::Counter, help).sample("_total", labels, total);
    }

    /// Adds a sample of a gauge.
    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &MetricLabels,
        value: f64,
    ) {
        self.family(name, MetricType::Gauge, help).sample("", labels, value);
    }

    /// Formats all families, each with its help and its type before its samples.
    #[must_use]
    pub fn text(&self, style: MetricFormat) -> String {
        let mut text = String::new();
        let is_open = style == MetricFormat::OpenMetrics;
        for family in &self.0 {
            // In Prometheus' format a family of counters has the name of its samples.
            let total = match family.kind {
                MetricType::Counter if !is_open => "_total",
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
