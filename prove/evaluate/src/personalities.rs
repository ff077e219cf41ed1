//! Filebench's personalities beside their parameters, for part `personalities`.

use std::path::PathBuf;

use luc_filebench::personality_reference::{
    FlowopCounts, PersonalityParameters, ReferenceVerdict, STOCKS,
};
use serde::Deserialize;
use serde_json::json;

use crate::error::EvaluateError;
use crate::harness::{missing, read_json};

/// Filesets that take more than this are made smaller by their variables.
const ROOM_BYTES: u64 = 8 << 30;
/// Personalities that need more names than the original's to last.
///
/// Filebench does not delete an open file. A thread may wait for a processor or the disk with a file open. Each time
/// that all others overtake it, a name is lost.
const MORE_NAMES: &[(&str, &[&str])] =
    &[("compflow_demo", &["nfiles=7000"]), ("webproxy", &["nfiles=50000"])];

/// Options of `luc-evaluate personality`.
#[derive(Debug, Clone, clap::Args)]
pub struct PersonalityArguments {
    name: String,
    /// Output of the run; absent: print the run's options
    output: Option<PathBuf>,
}

/// Output of `luc bench filebench --json`.
#[derive(Debug, Default, Deserialize)]
struct Said {
    measured_s: f64,
    operations: Vec<Operation>,
    moved: Vec<Moved>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    operation: String,
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Moved {
    operation: String,
    bytes: u64,
}

/// Returns the options of a personality's run, or compares its output with the reference.
///
/// # Errors
/// [`EvaluateError`]: a name that no personality has, or a file that is wrong.
pub fn run(arguments: &PersonalityArguments) -> Result<String, EvaluateError> {
    let number = STOCKS.iter().position(|stock| stock.name == arguments.name);
    let number = number.ok_or_else(|| missing(&arguments.name))?;
    let stock = &STOCKS[number];
    let broken = |error: luc_filebench::FilebenchError| {
        missing(&format!("the personality {} ({error})", stock.name))
    };
    let whole = stock.load(&[]).map_err(broken)?;
    let is_small = whole.file_bytes() > ROOM_BYTES;
    let set = set(stock, is_small);
    let Some(output) = &arguments.output else {
        return Ok(set.iter().map(|pair| format!("--set {pair} ")).collect());
    };
    let workload = stock.load(set).map_err(broken)?;
    // A run that failed has said nothing.
    let said = read_json(output).ok().and_then(|said| serde_json::from_value::<Said>(said).ok());
    let has_ended = said.is_some();
    let Said { measured_s, operations, moved } = said.unwrap_or_default();
    let operations = operations.into_iter().map(|row| (row.operation, row.count));
    let bytes = moved.into_iter().map(|row| (row.operation, row.bytes));
    let counted = FlowopCounts { operations: operations.collect(), bytes: bytes.collect() };
    let mut verdict = if has_ended {
        stock.judge(&workload, is_small, &counted)
    } else {
        ReferenceVerdict::default()
    };
    verdict.wrong.extend(stock.differences(&whole));
    Ok(json!({
        "number": number, "threads": workload.clients(), "measured_s": measured_s, "counts": counted.operations,
        "bytes": counted.bytes, "sized": verdict.sized, "farthest": verdict.farthest, "wrong": verdict.wrong,
    })
    .to_string())
}

/// Returns the values for this run: small ones, or more names.
fn set(stock: &'static PersonalityParameters, is_small: bool) -> &'static [&'static str] {
    if is_small {
        return stock.small;
    }
    let more = MORE_NAMES.iter().find(|(name, _)| *name == stock.name);
    more.map_or(&[][..], |(_, set)| set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_measures_each_personality() {
        let page = include_str!("../../parts/personalities.toml");
        for stock in STOCKS {
            let line = format!("\n    {{ name = \"{}\" }},\n", stock.name);
            assert!(page.contains(&line), "{}", stock.name);
        }
    }

    #[test]
    fn a_run_that_said_nothing_has_no_figures() {
        let arguments = |output| PersonalityArguments { name: "webproxy".to_owned(), output };
        assert_eq!(run(&arguments(None)).expect("a personality"), "--set nfiles=50000 ");
        let said = run(&arguments(Some("/no/such/file".into()))).expect("a verdict");
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["measured_s"], 0.0);
        assert!(run(&PersonalityArguments { name: "nobody".to_owned(), output: None }).is_err());
    }
}
