//! Runs that outlive an interrupted evaluation: the next one with the same seed takes them over.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::lab::Lab;
use crate::write_json;

/// The runs of an earlier, unfinished evaluation, and this one's.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    lab: &'a Lab,
    path: PathBuf,
    earlier: Vec<Value>,
}

impl<'a> Runs<'a> {
    /// Reads what there is.
    pub(super) fn open(lab: &'a Lab) -> Self {
        let path = lab
            .options
            .out
            .join("raw")
            .join(format!("{}.partial.json", lab.part));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let data: Value = serde_json::from_str(&text).unwrap_or_default();
        let same = data["options"]["seed"] == json!(lab.options.seed);
        let earlier = data["runs"].as_array().filter(|_| same).cloned();
        Self {
            lab,
            path,
            earlier: earlier.unwrap_or_default(),
        }
    }

    /// The result of run `key`: an earlier one, or that of `make`, which is written down at once.
    pub(super) fn get(
        &self,
        key: &Value,
        make: impl FnOnce() -> Result<Value, EvaluateError>,
    ) -> Result<Value, EvaluateError> {
        let earlier = self.earlier.iter().find(|run| run["key"] == *key);
        let result = match earlier {
            Some(run) => run["result"].clone(),
            None => make()?,
        };
        self.lab.keep(json!({ "key": key, "result": result }));
        write_json(
            &self.path,
            &json!({ "part": self.lab.part, "options": { "seed": self.lab.options.seed },
                     "runs": self.lab.runs() }),
        )?;
        Ok(result)
    }
}
