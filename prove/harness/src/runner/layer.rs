//! Layers of a run: what every run does, what its subject's do, and what its setting's do.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::guest::GuestRun;

/// Part of a description of runs. Texts are templates, `when`, `rounds`, keys and figures are expressions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Layer {
    pub(super) name: String,
    /// Whether there are these runs.
    pub(super) when: Option<String>,
    /// Number of rounds; default: the part's.
    pub(super) rounds: Option<String>,
    /// Variables. A text is a template, which may name others, and after `= ` an expression.
    pub(super) set: Map<String, Value>,
    /// Words of `luc disk create`.
    pub(super) disk: Option<String>,
    /// Shell commands, once for each subject, on each disk.
    pub(super) prepare: Option<String>,
    /// Shell commands before and after each run, which are not measured.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Shell command that runs beside. It says `begun` when it has begun, and ends by SIGINT.
    pub(super) beside: Option<String>,
    /// Words of the command that is measured.
    pub(super) command: Option<String>,
    /// Guest that is booted instead.
    pub(super) guest: Option<GuestRun>,
    /// Exit statuses that are no errors; empty: all. Default: 0.
    pub(super) statuses: Option<Vec<i32>>,
    /// Names of a run in the raw data.
    pub(super) keys: Option<BTreeMap<String, String>>,
    /// Figures of the record; the mapping `*` is merged into it.
    pub(super) figures: Option<BTreeMap<String, String>>,
    /// Variables that are found after the run, for the figures.
    pub(super) find: Option<BTreeMap<String, String>>,
    /// Condition without which the measurement is wrong.
    pub(super) check: Option<String>,
}

/// A subject under a setting.
#[derive(Debug, Clone)]
pub(super) struct RunCell {
    pub(super) subject: String,
    pub(super) setting: String,
    /// Merged layers, without their `set` and `when`.
    pub(super) does: Layer,
    pub(super) sets: [Map<String, Value>; 3],
    pub(super) conditions: Vec<String>,
    /// Number of its rounds, once it is known.
    pub(super) rounds: usize,
}

impl Layer {
    /// Returns this layer with what `other` has in its place.
    fn below(&self, other: &Self) -> Self {
        macro_rules! either {
            ($($field:ident),*) => {
                Self {
                    $($field: other.$field.clone().or_else(|| self.$field.clone()),)*
                    ..Self::default()
                }
            };
        }
        either!(
            rounds, disk, prepare, before, after, beside, command, guest, statuses, keys, figures,
            find, check
        )
    }
}

/// Returns all subjects under all settings. Without subjects or settings there is one without a name.
pub(super) fn cells(all: &Layer, subjects: &[Layer], settings: &[Layer]) -> Vec<RunCell> {
    let unnamed = [Layer::default()];
    let some =
        |layers: &[Layer]| if layers.is_empty() { unnamed.to_vec() } else { layers.to_vec() };
    let settings = some(settings);
    let cell = |subject: &Layer, setting: &Layer| RunCell {
        subject: subject.name.clone(),
        setting: setting.name.clone(),
        does: all.below(subject).below(setting),
        sets: [&all.set, &subject.set, &setting.set].map(Clone::clone),
        conditions: [all, subject, setting].iter().filter_map(|layer| layer.when.clone()).collect(),
        rounds: 0,
    };
    let of = |subject: &Layer| settings.iter().map(|setting| cell(subject, setting)).collect();
    some(subjects).iter().flat_map(|subject| -> Vec<RunCell> { of(subject) }).collect()
}

impl RunCell {
    /// Returns its name, as `--only` and the progress have it.
    pub(super) fn title(&self) -> String {
        let names = [self.subject.as_str(), self.setting.as_str()];
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.join(", ")
    }
}
