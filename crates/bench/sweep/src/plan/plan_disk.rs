//! The emulated disk of a plan.

use std::path::{Path, PathBuf};

use luc_disk::ModelSpec;
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use super::super::error::SweepError;
use super::{PlanDuration, PlanSize};

/// Parameters of the emulated disk, as `luc disk create` takes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanDisk {
    /// Name of the model, or a TOML file, relative to the plan.
    pub model: String,
    /// Absolute path of that file.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Size, as in 512M.
    pub size: PlanSize,
    /// Time of a flush. This and the next two go with model fixed only.
    pub flush: Option<PlanDuration>,
    pub write: Option<PlanDuration>,
    pub read: Option<PlanDuration>,
}

/// A target's own values of the emulated disk; the others are the plan's, and so is the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetDisk {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<PlanSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<PlanDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<PlanDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<PlanDuration>,
}

impl Default for PlanDisk {
    fn default() -> Self {
        Self {
            model: "fixed".to_owned(),
            file: None,
            size: PlanSize::of_bytes(1 << 30),
            flush: None,
            write: None,
            read: None,
        }
    }
}

impl PlanDisk {
    /// Returns whether it is an emulated disk of `luc disk` even in guests. There, the disk with constant times is a
    /// kernel module.
    pub(crate) fn is_modelled(&self) -> bool {
        self.model != "fixed"
    }

    /// Returns this one with a target's `own` values.
    pub(super) fn with(&self, own: Option<&TargetDisk>) -> Self {
        let own = own.cloned().unwrap_or_default();
        let plan = self.clone();
        Self {
            size: own.size.unwrap_or(plan.size),
            flush: own.flush.or(plan.flush),
            write: own.write.or(plan.write),
            read: own.read.or(plan.read),
            ..plan
        }
    }

    /// Returns the file of its model, if it has one. Paths in a plan that is no file stay unchanged.
    pub(crate) fn path(&self) -> Option<&Path> {
        let own = Some(Path::new(&self.model)).filter(|_| self.model.ends_with(".toml"));
        self.file.as_deref().or(own)
    }

    pub(crate) fn spec(&self) -> Result<ModelSpec, luc_disk::Error> {
        match self.path() {
            Some(path) => ModelSpec::from_toml_file(path),
            None => ModelSpec::from_name(&self.model),
        }
    }

    /// Returns the words of `luc disk create`.
    pub(crate) fn words(&self) -> Vec<String> {
        let file = self.file.as_ref();
        let model = file.map_or(self.model.clone(), |file| file.display().to_string());
        let mut words = vec!["--model".to_owned(), model];
        words.extend(["--size".to_owned(), self.size.to_string()]);
        for (option, value) in self.costs() {
            words.extend(value.iter().flat_map(|value| [format!("--{option}"), value.to_string()]));
        }
        words
    }

    /// Finds the model's file beside the plan.
    pub(super) fn find_file(&mut self, plan: &Path) -> Result<(), SweepError> {
        if self.model.ends_with(".toml") {
            let file = plan.parent().unwrap_or(Path::new("")).join(&self.model);
            let whole = std::path::absolute(&file).map_err(SweepError::io("find", &file))?;
            self.file = Some(whole);
        }
        Ok(())
    }

    pub(super) fn costs(&self) -> [(&'static str, &Option<PlanDuration>); 3] {
        [("flush", &self.flush), ("write", &self.write), ("read", &self.read)]
    }
}
