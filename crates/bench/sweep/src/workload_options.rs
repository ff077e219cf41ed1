//! Options that a plan may give a built-in workload, and their values.

use std::collections::BTreeMap;

use luc_workload::option_units::{duration_ns, file_size_bytes, seconds_ns};
use luc_workload::workers::Arrivals;
use toml::Value;

use super::builtin_workload::BuiltinWorkload;
use super::error::SweepError;
use super::time_scale::TimeScale;
use luc_workload::name_suggestion::meant;

#[derive(Debug, Clone, Copy)]
enum OptionKind {
    Seconds,
    Duration,
    Arrivals,
    Size,
    Count,
    Factor,
    Flag,
    Choice(&'static [&'static str]),
}

const TIMED: &[(&str, OptionKind)] = &[
    ("seconds", OptionKind::Seconds),
    ("warmup", OptionKind::Duration),
    ("think", OptionKind::Duration),
    ("think-distribution", OptionKind::Choice(&["constant", "exponential"])),
    ("slow-clients", OptionKind::Count),
    ("slow-factor", OptionKind::Factor),
    ("processes", OptionKind::Flag),
];
const DIRECTORIES: (&str, OptionKind) = ("directories", OptionKind::Choice(&["one", "own"]));
const ROUNDS: (&str, OptionKind) = ("rounds", OptionKind::Count);
const ARRIVALS: (&str, OptionKind) = ("arrivals", OptionKind::Arrivals);
const METARATES: &[(&str, OptionKind)] =
    &[("file-size", OptionKind::Size), DIRECTORIES, ("keep", OptionKind::Count), ROUNDS, ARRIVALS];
const VARMAIL: &[(&str, OptionKind)] = &[PARAMETERS, DIRECTORIES, ROUNDS, ARRIVALS];
const COMMIT: &[(&str, OptionKind)] = &[
    ("work", OptionKind::Choice(&["create", "replace", "append", "preallocated", "overwrite"])),
    ROUNDS,
    ("file-size", OptionKind::Size),
];
const CALL: (&str, OptionKind) = ("call", OptionKind::Choice(&["fdatasync", "fsync"]));
const APPEND: &[(&str, OptionKind)] =
    &[("record-size", OptionKind::Size), ("preallocate", OptionKind::Size), CALL];
const OVERWRITE: &[(&str, OptionKind)] = &[
    ("file-size", OptionKind::Size),
    ("record-size", OptionKind::Size),
    ("offsets", OptionKind::Choice(&["consecutive", "random"])),
    CALL,
];
const PARAMETERS: (&str, OptionKind) = ("parameters", OptionKind::Choice(&["filebench", "luc"]));
const DURABILITY: OptionKind = OptionKind::Choice(&["none", "dsync", "sync", "fsync"]);
const OLTP: &[(&str, OptionKind)] = &[
    PARAMETERS,
    ("readers", OptionKind::Count),
    ("files", OptionKind::Count),
    ("file-size", OptionKind::Size),
    ("io-size", OptionKind::Size),
    ("log-io-size", OptionKind::Size),
    ("durability", DURABILITY),
    ("log-durability", DURABILITY),
    ("write-stores", OptionKind::Count),
];
const INITIAL_WRITE: &[(&str, OptionKind)] = &[
    ("processes", OptionKind::Flag),
    ("file-size", OptionKind::Size),
    ("record-size", OptionKind::Size),
    ("include", OptionKind::Choice(&["fsync", "close", "fsync,close"])),
    ROUNDS,
    DIRECTORIES,
    ARRIVALS,
    ("copy-per-kib", OptionKind::Duration),
];

/// Parses the text of a command line as a plan's value.
pub fn option_value(text: &str) -> Value {
    match text {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        text => match text.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

/// Options that a plan gives to a workload file's run.
#[derive(Debug)]
pub(super) struct PersonalityOptions {
    /// Length of the run; the file's own without.
    pub(super) seconds: Option<f64>,
    /// Whether caches are dropped when its files are made.
    cold: bool,
    /// Variables of the workload file, as `name=value`.
    pub(super) set: Vec<String>,
    /// Whether one of them has the number of threads.
    pub(super) heeds_threads: bool,
}

impl PersonalityOptions {
    /// Parses the plan's options, with `{threads}` replaced.
    pub(super) fn of(
        options: &BTreeMap<String, Value>,
        threads: usize,
    ) -> Result<Self, SweepError> {
        let mut found = Self { seconds: None, cold: false, set: Vec::new(), heeds_threads: false };
        for (name, value) in options {
            let wrong = |right: &str| SweepError::Plan(format!("{name} = {value}: write {right}"));
            match name.as_str() {
                "seconds" => {
                    let seconds =
                        value.to_string().parse().map_err(|_| wrong("a number of seconds"))?;
                    seconds_ns(name, seconds)?;
                    found.seconds = Some(seconds);
                }
                "cold" => {
                    found.cold = value.as_bool().ok_or_else(|| wrong("true or false"))?;
                }
                "set" => {
                    let texts = value
                        .as_array()
                        .map(|values| values.iter().map(|value| value.as_str().map(str::to_owned)));
                    let texts: Option<Vec<String>> = texts.and_then(Iterator::collect);
                    for text in texts.ok_or_else(|| wrong("[\"name=value\", ...]"))? {
                        found.heeds_threads |= text.contains("{threads}");
                        found.set.push(text.replace("{threads}", &threads.to_string()));
                    }
                }
                _ => {
                    let hint = meant(name, &["seconds", "set", "cold"]);
                    return Err(SweepError::Plan(format!(
                        "a workload file has no option '{name}' in a plan{hint}"
                    )));
                }
            }
        }
        Ok(found)
    }

    /// Returns the words of the command line behind the file.
    pub(super) fn words(&self) -> Vec<String> {
        let seconds = self.seconds.map(|seconds| ["--seconds".to_owned(), seconds.to_string()]);
        let mut words: Vec<String> = seconds.into_iter().flatten().collect();
        words.extend(self.cold.then(|| "--cold".to_owned()));
        for pair in &self.set {
            words.extend(["--set".to_owned(), pair.clone()]);
        }
        words
    }
}

fn known(bench: BuiltinWorkload) -> Vec<(&'static str, OptionKind)> {
    let parts: [&[(&str, OptionKind)]; 2] = match bench {
        BuiltinWorkload::Metarates => [TIMED, METARATES],
        BuiltinWorkload::Varmail => [TIMED, VARMAIL],
        BuiltinWorkload::Oltp => [TIMED, OLTP],
        BuiltinWorkload::InitialWrite => [INITIAL_WRITE, &[]],
        BuiltinWorkload::Commit => [COMMIT, &[]],
        BuiltinWorkload::Append => [TIMED, APPEND],
        BuiltinWorkload::Overwrite => [TIMED, OVERWRITE],
    };
    parts.concat()
}

/// Returns the values of an option: the one, or all of a list.
pub(super) fn values(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    }
}

/// Returns the values' names in the report.
pub(super) fn labels(value: &Value) -> impl Iterator<Item = String> {
    values(value).into_iter().map(label)
}

/// Returns the value's name in the report.
pub(super) fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns an option's static name if the workload has that option.
pub(super) fn known_name(bench: BuiltinWorkload, name: &str) -> Option<&'static str> {
    let mut names = known(bench).into_iter().map(|(known, _)| known);
    names.find(|known| *known == name)
}

/// Returns the words of one option on the command line of `luc bench`. Errors: the name with the nearest, or the value.
pub(super) fn words(
    bench: BuiltinWorkload,
    name: &str,
    value: &Value,
    scale: TimeScale,
) -> Result<Vec<String>, SweepError> {
    // 1. The option, by its name.
    let known = known(bench);
    let Some((_, kind)) = known.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let hint = meant(name, &names);
        return Err(SweepError::Plan(format!(
            "{} has no option '{name}' in a plan{hint}",
            bench.name()
        )));
    };
    // 2. Its value, checked by its type, and times stretched.
    let option = format!("--{name}");
    let text = label(value);
    let wrong = |right: &str| SweepError::Plan(format!("{name} = {value}: write {right}"));
    match kind {
        OptionKind::Flag => {
            let set = value.as_bool().ok_or_else(|| wrong("true or false"))?;
            return Ok(if set { vec![option] } else { Vec::new() });
        }
        OptionKind::Seconds => {
            let seconds = text.parse().map_err(|_| wrong("a number of seconds"))?;
            let ns = scale.apply(seconds_ns(name, seconds)?);
            if scale != TimeScale::NONE {
                return Ok(vec![option, (ns as f64 / 1e9).to_string()]);
            }
        }
        OptionKind::Duration => {
            let ns = scale.apply(duration_ns(name, &text)?);
            if scale != TimeScale::NONE {
                return Ok(vec![option, format!("{ns}ns")]);
            }
        }
        OptionKind::Arrivals => {
            if text.starts_with("file:") {
                return Err(wrong(
                    "a time, as in 40us or exponential:40us: guests have no files of the host",
                ));
            }
            let arrivals = Arrivals::parse(&text)?;
            if scale != TimeScale::NONE {
                let arrivals = arrivals.stretched(|ns| scale.apply(ns));
                return Ok(vec![option, arrivals.to_string()]);
            }
        }
        OptionKind::Size => {
            file_size_bytes(name, &text)?;
        }
        OptionKind::Factor => {
            text.parse::<f64>().map_err(|_| wrong("a number"))?;
        }
        OptionKind::Count => {
            text.parse::<usize>().map_err(|_| wrong("a whole number"))?;
        }
        OptionKind::Choice(choices) if !choices.contains(&text.as_str()) => {
            return Err(wrong(&format!("one of {}", choices.join(", "))));
        }
        OptionKind::Choice(_) => {}
    }
    Ok(vec![option, text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_last_as_much_longer_as_other_times() {
        let twice = TimeScale { permille: 2060 };
        let words = |text: &str, scale| {
            words(BuiltinWorkload::Metarates, "arrivals", &text.into(), scale)
                .map(|words| words[1].clone())
        };
        for (text, stretched) in
            [("40us", "uniform:82.4us"), ("exponential:1ms", "exponential:2.06ms")]
        {
            assert_eq!(words(text, twice).expect(text), stretched);
            assert_eq!(words(text, TimeScale::NONE).expect(text), text);
        }
        for text in ["soon", "file:/x"] {
            let error = words(text, twice).expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
