//! Runs that outlive an interrupted evaluation. The next evaluation with the same seed takes them over.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::Harness;
use crate::write_json;

/// Runs of an earlier, unfinished evaluation, and of this one.
#[derive(Debug)]
pub struct Runs<'a> {
    harness: &'a Harness,
    path: PathBuf,
    earlier: Vec<Value>,
}

impl<'a> Runs<'a> {
    /// Reads the runs made so far.
    pub fn open(harness: &'a Harness) -> Self {
        let path = harness.options.out.join("raw").join(format!("{}.partial.json", harness.part));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let data: Value = serde_json::from_str(&text).unwrap_or_default();
        let same = data["options"]["seed"] == json!(harness.options.seed);
        let earlier = data["runs"].as_array().filter(|_| same).cloned();
        Self { harness, path, earlier: earlier.unwrap_or_default() }
    }

    /// Returns the result of run `key`, if an earlier evaluation has made it.
    pub fn earlier_result(&self, key: &Value) -> Option<&Value> {
        let run = self.earlier.iter().find(|run| run["key"] == *key)?;
        Some(&run["result"])
    }

    /// Returns the result of run `key`: an earlier one, or that of `make`, which is written down at once.
    pub fn get(
        &self,
        key: &Value,
        make: impl FnOnce() -> Result<Value, EvaluateError>,
    ) -> Result<Value, EvaluateError> {
        let result = match self.earlier_result(key) {
            Some(result) => result.clone(),
            None => make()?,
        };
        self.harness.keep(json!({ "key": key, "result": result }));
        let mut runs = self.harness.runs().as_array().cloned().unwrap_or_default();
        let is_new = |run: &&Value| runs.iter().all(|done| done["key"] != run["key"]);
        // What comes later stays known, should this evaluation be interrupted, too.
        let later: Vec<Value> = self.earlier.iter().filter(is_new).cloned().collect();
        runs.extend(later);
        write_json(
            &self.path,
            &json!({ "part": self.harness.part, "options": { "seed": self.harness.options.seed },
                     "runs": runs }),
        )?;
        Ok(result)
    }
}
