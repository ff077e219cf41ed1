//! The raw data: every repeat's figure and what the page is made of, small enough to be kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::EvaluateError;
use super::data::{
    Data, Repeat, commits_per_fsync, commits_waited, delayed_percent, delays_per_file, fsync_ms,
    mean_delay_ms,
};

/// A figure of a repeat.
type Figure = fn(&Repeat) -> Option<f64>;

/// What is kept of each repeat besides its value.
const FIGURES: [(&str, Figure); 6] = [
    ("commits_waited", commits_waited),
    ("commits_per_fsync", commits_per_fsync),
    ("delayed_percent", delayed_percent),
    ("mean_delay_ms", mean_delay_ms),
    ("delays_per_file", delays_per_file),
    ("fsync_ms", fsync_ms),
];

/// Writes them: a line for each point, with a list of its repeats.
pub(super) fn write(path: &Path, kernel: &str, data: &Data) -> Result<(), EvaluateError> {
    let lines: Vec<String> = data
        .points()
        .map(|(key, repeats)| {
            let mut figures = BTreeMap::from([("value", list(repeats, |r| Some(r.value)))]);
            for (name, of) in FIGURES {
                let values = list(repeats, of);
                if values.iter().any(Option::is_some) {
                    figures.insert(name, values);
                }
            }
            let rounds: Vec<usize> = repeats.iter().map(|repeat| repeat.round).collect();
            json!({ "point": key, "rounds": rounds, "figures": figures }).to_string()
        })
        .collect();
    let text = format!(
        "{{\n\"part\": \"thesis\",\n\"made_by\": \"make evaluate-thesis\",\n\"kernel\": {},\n\
         \"point\": \"workload,threads,target,policy,mips\",\n\"points\": [\n{}\n]}}\n",
        json!(kernel),
        lines.join(",\n")
    );
    let partial = path.with_extension("json.new");
    fs::write(&partial, text).map_err(EvaluateError::file("write", &partial))?;
    fs::rename(&partial, path).map_err(EvaluateError::file("write", path))
}

/// Four significant digits, as in the tables.
fn list(repeats: &[Repeat], of: impl Fn(&Repeat) -> Option<f64>) -> Vec<Option<f64>> {
    let short = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
    repeats.iter().map(|repeat| of(repeat).map(short)).collect()
}
