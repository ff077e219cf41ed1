//! The options that a plan may give a built-in workload, and what their values must be.

use toml::Value;

use super::error::SweepError;
use super::plan::{Bench, meant};
use crate::units::{duration_ns, file_size_bytes, seconds_ns};

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Seconds,
    Duration,
    Size,
    Count,
    Flag,
    Choice(&'static [&'static str]),
}

const TIMED: &[(&str, Kind)] = &[
    ("seconds", Kind::Seconds),
    ("warmup", Kind::Duration),
    ("think", Kind::Duration),
    ("processes", Kind::Flag),
];
const METARATES: &[(&str, Kind)] = &[
    ("file-size", Kind::Size),
    ("directory-per-client", Kind::Flag),
];
const PARAMETERS: (&str, Kind) = ("parameters", Kind::Choice(&["filebench", "luc"]));
const DURABILITY: Kind = Kind::Choice(&["none", "dsync", "sync", "fsync"]);
const OLTP: &[(&str, Kind)] = &[
    PARAMETERS,
    ("readers", Kind::Count),
    ("files", Kind::Count),
    ("file-size", Kind::Size),
    ("io-size", Kind::Size),
    ("log-io-size", Kind::Size),
    ("durability", DURABILITY),
    ("log-durability", DURABILITY),
    ("write-stores", Kind::Count),
];
const INITIAL_WRITE: &[(&str, Kind)] = &[
    ("processes", Kind::Flag),
    ("file-size", Kind::Size),
    ("record-size", Kind::Size),
    ("include", Kind::Choice(&["fsync", "close", "fsync,close"])),
    ("rounds", Kind::Count),
];

fn known(bench: Bench) -> Vec<(&'static str, Kind)> {
    let parts: [&[(&str, Kind)]; 2] = match bench {
        Bench::Metarates => [TIMED, METARATES],
        Bench::Varmail => [TIMED, &[PARAMETERS]],
        Bench::Oltp => [TIMED, OLTP],
        Bench::InitialWrite => [INITIAL_WRITE, &[]],
    };
    parts.concat()
}

/// The words of one option on the command line of `luc bench`. Errors: the name with the nearest, or the value.
pub(super) fn words(bench: Bench, name: &str, value: &Value) -> Result<Vec<String>, SweepError> {
    let known = known(bench);
    let Some((_, kind)) = known.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let hint = meant(name, &names);
        return Err(SweepError::Plan(format!(
            "{} has no option '{name}' in a plan{hint}",
            bench.name()
        )));
    };
    let option = format!("--{name}");
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let wrong = |right: &str| SweepError::Plan(format!("{name} = {value}: write {right}"));
    match kind {
        Kind::Flag => {
            let set = value.as_bool().ok_or_else(|| wrong("true or false"))?;
            return Ok(if set { vec![option] } else { Vec::new() });
        }
        Kind::Seconds => {
            let seconds = text.parse().map_err(|_| wrong("a number of seconds"))?;
            seconds_ns(name, seconds)?;
        }
        Kind::Duration => {
            duration_ns(name, &text)?;
        }
        Kind::Size => {
            file_size_bytes(name, &text)?;
        }
        Kind::Count => {
            text.parse::<usize>().map_err(|_| wrong("a whole number"))?;
        }
        Kind::Choice(choices) if !choices.contains(&text.as_str()) => {
            return Err(wrong(&format!("one of {}", choices.join(", "))));
        }
        Kind::Choice(_) => {}
    }
    Ok(vec![option, text])
}
