//! Order of the runs, and units of an interrupted measurement.

use luc_stats::seeded_random;
use rand::seq::SliceRandom as _;
use serde_json::{Map, Value, json};

use super::layer::{RunCell, cells};
use super::templates::Variables;
use super::{Extent, Order, Runner};
use crate::error::EvaluateError;
use crate::harness::elements;
use crate::progress::Progress;
use crate::steal;
use crate::write_json;

impl Runner<'_> {
    pub(super) fn make_all(&self) -> Result<(), EvaluateError> {
        // 1. The cells that there are and that are wanted.
        let mut cells = cells(&self.plan.all, &self.plan.subject, &self.plan.setting);
        cells.retain(|cell| self.harness.options.wants(&cell.title()));
        let mut kept = Vec::new();
        for mut cell in cells {
            let (with, _) = self.known_variables(&cell, 0, None);
            let holds = |when: &String| self.templates.is_true(when, &with);
            let conditions: Vec<bool> =
                cell.conditions.iter().map(holds).collect::<Result<_, _>>()?;
            if !conditions.contains(&false) {
                cell.rounds = self.rounds(&cell, &with)?;
                kept.push(cell);
            }
        }
        if kept.is_empty() {
            return Err(self.harness.options.no_cell());
        }
        // 2. Groups that are whole before the next begins.
        let is_group = |one: &RunCell, other: &RunCell| {
            self.plan.by == Extent::Round || one.subject == other.subject
        };
        let groups: Vec<&[RunCell]> = kept.chunk_by(is_group).collect();
        let rounds = |group: &&[RunCell]| group.iter().map(|cell| cell.rounds).max().unwrap_or(0);
        let of_round = |group: &&[RunCell], round| {
            self.units(group, round).iter().map(Vec::len).sum::<usize>()
        };
        let of_group =
            |group| (0..rounds(group)).map(|round| of_round(group, round)).sum::<usize>();
        let mut progress = Progress::new(self.harness.part, groups.iter().map(of_group).sum());
        // 3. The runs.
        for group in &groups {
            for round in 0..rounds(group) {
                for unit in self.units(group, round) {
                    self.make_unit(&unit, round, &mut progress)?;
                }
                self.remove_disks(Extent::Round);
            }
            self.remove_disks(Extent::Subject);
        }
        self.remove_disks(Extent::Part);
        Ok(())
    }

    /// Returns the number of a cell's rounds: its own, `--repeats`, or the part's.
    fn rounds(&self, cell: &RunCell, with: &Variables) -> Result<usize, EvaluateError> {
        let given = self.harness.options.repeats;
        let Some(own) = &cell.does.rounds else {
            return Ok(given.unwrap_or(self.plan.rounds));
        };
        let own = self.templates.eval(own, with)?.as_u64().unwrap_or(0) as usize;
        Ok(given.map_or(own, |given| given.min(own)))
    }

    /// Returns the units of a round, in their order.
    fn units<'c>(&self, group: &'c [RunCell], round: usize) -> Vec<Vec<&'c RunCell>> {
        let mut random = seeded_random::stream(self.harness.options.seed, round as u64);
        let mut cells: Vec<&RunCell> = group.iter().filter(|cell| round < cell.rounds).collect();
        let Some(around) = &self.plan.around else {
            if self.plan.order == Order::Random {
                cells.shuffle(&mut random);
            }
            return cells.into_iter().map(|cell| vec![cell]).collect();
        };
        let mut subjects: Vec<Vec<&RunCell>> =
            cells.chunk_by(|one, other| one.subject == other.subject).map(<[_]>::to_vec).collect();
        subjects.shuffle(&mut random);
        let mut unit = |own: Vec<&'c RunCell>| {
            let (ends, mut inner): (Vec<_>, Vec<_>) =
                own.into_iter().partition(|cell| cell.setting == *around);
            inner.shuffle(&mut random);
            [&ends[..], &inner[..], &ends[..]].concat()
        };
        subjects.into_iter().map(&mut unit).collect()
    }

    fn remove_disks(&self, at: Extent) {
        if self.plan.disk_for == at {
            self.disks.borrow_mut().clear();
            self.prepared.borrow_mut().retain(|(disk, _)| disk.is_empty());
        }
    }

    /// Makes a unit's runs, or takes them over from an interrupted measurement.
    fn make_unit(
        &self,
        unit: &[&RunCell],
        round: usize,
        progress: &mut Progress,
    ) -> Result<(), EvaluateError> {
        let keys = |cell: &&RunCell| self.keys(cell, &self.variables(cell, round, None)?);
        let keys: Vec<Map<String, Value>> = unit.iter().map(keys).collect::<Result<_, _>>()?;
        let is_of = |run: &Value, keys: &Map<String, Value>| {
            let names = if self.plan.keyed { &run["key"] } else { run };
            let same = keys.iter().all(|(name, value)| names[name] == *value);
            same && (!self.plan.keyed
                || names.as_object().is_some_and(|names| names.len() == keys.len()))
        };
        let of_unit = |run: &&Value| keys.iter().any(|keys| is_of(run, keys));
        let known: Vec<&Value> = self.earlier.iter().filter(of_unit).collect();
        let counts = known.iter().filter(|run| run["disturbed"] != json!(true)).count();
        if counts == unit.len() {
            for run in known {
                let nested = elements(&run["result"]["disturbed"]).len();
                for _ in 0..nested + usize::from(run["disturbed"] == json!(true)) {
                    self.harness.count_disturbed();
                }
                self.harness.keep(run.clone());
            }
            unit.iter().for_each(|cell| progress.step(&format!("{}: made before", cell.title())));
            return Ok(());
        }
        for (cell, keys) in unit.iter().zip(keys) {
            let mut tries = Vec::new();
            let mut shown = String::new();
            steal::undisturbed(self.harness, |may_repeat| {
                let (mut record, stolen_share) = self.make(cell, round, &mut shown)?;
                let may_repeat = may_repeat && self.plan.timed;
                let is_disturbed = steal::is_disturbed(may_repeat, stolen_share);
                record.insert("stolen_share".to_owned(), json!(stolen_share));
                record.insert("disturbed".to_owned(), json!(is_disturbed));
                tries.push(record);
                Ok(((), if self.plan.timed { stolen_share } else { 0.0 }))
            })?;
            self.keep(keys, tries);
            progress.step(&format!("{}: {shown}", cell.title()));
        }
        let options = &self.harness.options;
        write_json(
            &self.partial,
            &json!({ "part": self.harness.part, "runs": self.harness.runs(),
                     "options": { "seed": options.seed, "seconds": options.seconds, "cuts": options.cuts } }),
        )
    }

    /// Keeps all tries of a run. The last one counts.
    fn keep(&self, keys: Map<String, Value>, mut tries: Vec<Variables>) {
        if self.plan.keyed {
            let Some(mut last) = tries.pop() else { return };
            last.insert("disturbed".to_owned(), json!(tries));
            self.harness.keep(json!({ "key": keys, "result": last }));
        } else {
            for mut record in tries {
                record.extend(keys.clone());
                self.harness.keep(Value::Object(record));
            }
        }
    }
}
