//! One run: its variables, what is before, beside and after it, and its figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::Runner;
use super::beside::Beside;
use super::layer::{Layer, RunCell};
use super::templates::{Variables, words};
use crate::disks::Disk;
use crate::error::EvaluateError;
use crate::harness::line;
use crate::machine;
use crate::steal::with_stolen_share;

/// File of a command's output, for what comes after.
const OUTPUT: &str = "output";

impl Runner<'_> {
    pub(super) fn keys(
        &self,
        cell: &RunCell,
        with: &Variables,
    ) -> Result<Map<String, Value>, EvaluateError> {
        let default = [("cell", "subject"), ("setting", "setting"), ("repeat", "round")];
        let default = || default.map(|(name, of)| (name.to_owned(), of.to_owned())).into();
        self.eval_all(Some(&cell.does.keys.clone().unwrap_or_else(default)), with)
    }

    pub(super) fn eval_all(
        &self,
        expressions: Option<&BTreeMap<String, String>>,
        with: &Variables,
    ) -> Result<Map<String, Value>, EvaluateError> {
        let found = expressions.into_iter().flatten();
        found.map(|(name, of)| Ok((name.clone(), self.templates.eval(of, with)?))).collect()
    }

    /// Returns the variables of a run; those of its disk are empty until there is one.
    pub(super) fn variables(
        &self,
        cell: &RunCell,
        round: usize,
        disk: Option<&Disk<'_>>,
    ) -> Result<Variables, EvaluateError> {
        let (all, failed) = self.known_variables(cell, round, disk);
        failed.map_or(Ok(all), Err)
    }

    /// Returns the variables that have a value, and why another has none.
    pub(super) fn known_variables(
        &self,
        cell: &RunCell,
        round: usize,
        disk: Option<&Disk<'_>>,
    ) -> (Variables, Option<EvaluateError>) {
        let mut all = self.base.clone();
        let mut set = |name: &str, value: Value| all.insert(name.to_owned(), value);
        set("round", json!(round));
        set("subject", json!(cell.subject));
        set("setting", json!(cell.setting));
        set("mount", json!(disk.map_or(Path::new(""), |disk| &disk.mount)));
        set("device", json!(disk.map_or("", Disk::device)));
        let merged: BTreeMap<&String, &Value> = cell.sets.iter().flatten().collect();
        let (mut texts, constants): (Vec<_>, Vec<_>) =
            merged.into_iter().partition(|(_, value)| value.is_string());
        all.extend(constants.into_iter().map(|(name, value)| (name.clone(), value.clone())));
        // A text waits for those that it names.
        loop {
            let (before, mut failed) = (texts.len(), None);
            texts.retain(|(name, text)| {
                let value = self.value(text.as_str().unwrap_or_default(), &all);
                value
                    .map(|value| drop(all.insert((*name).clone(), value)))
                    .map_err(|error| failed = Some(error))
                    .is_err()
            });
            if texts.len() == before {
                return (all, failed);
            }
        }
    }

    fn value(&self, text: &str, with: &Variables) -> Result<Value, EvaluateError> {
        match text.strip_prefix("= ") {
            Some(expression) => self.templates.eval(expression, with),
            None => Ok(self.templates.fill(text, with)?.into()),
        }
    }

    pub(super) fn wrong(&self, reason: String) -> EvaluateError {
        EvaluateError::Run { part: self.harness.part, reason }
    }

    pub(super) fn shell(&self, script: &str, with: &Variables) -> Result<String, EvaluateError> {
        let script = self.templates.fill(script, with)?;
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &script]);
        Ok(self.harness.execute(&mut command, &[0])?.stdout)
    }

    /// Makes a run once. Returns its record without keys.
    pub(super) fn make(
        &self,
        cell: &RunCell,
        round: usize,
        shown: &mut String,
    ) -> Result<(Variables, f64), EvaluateError> {
        // 1. The disk, and what comes before.
        let does = &cell.does;
        let mut disks = self.disks.borrow_mut();
        let mut wanted = Vec::new();
        if let Some(text) = &does.disk {
            wanted = words(&self.templates.fill(text, &self.variables(cell, round, None)?)?);
            if !disks.iter().any(|(known, _)| *known == wanted) {
                disks.push((wanted.clone(), Disk::create_with(self.harness, wanted.clone())?));
            }
        }
        let disk = disks.iter().find(|(known, _)| *known == wanted).map(|(_, disk)| disk);
        let mut with = self.variables(cell, round, disk)?;
        let place = (wanted, cell.subject.clone());
        if let Some(script) = &does.prepare
            && !self.prepared.borrow().contains(&place)
        {
            self.shell(script, &with)?;
            self.prepared.borrow_mut().push(place);
        }
        does.before.iter().try_for_each(|script| self.shell(script, &with).map(drop))?;
        disk.map(Disk::settle).transpose()?;
        let counts = disk.map(Disk::counts).transpose()?;
        let fill = |script: &String| self.templates.fill(script, &with);
        let beside =
            does.beside.as_ref().map(fill).transpose()?.filter(|script| !script.is_empty());
        let beside = beside.map(|script| Beside::start(self.harness, script)).transpose()?;
        // 2. The run.
        with.insert("beside".to_owned(), beside.as_ref().map_or("", Beside::begun).into());
        let started = machine::now()?;
        let began = Instant::now();
        let ((found, command), stolen_share) = with_stolen_share(|| self.work(does, &with))?;
        let took_s = began.elapsed().as_secs_f64();
        // 3. What comes after.
        let said = beside.map(Beside::stop).transpose()?;
        with.insert("beside".to_owned(), json!(said));
        with.insert("took_s".to_owned(), json!(took_s));
        with.extend(found);
        if let (Some(disk), Some(before)) = (disk, counts) {
            let after = disk.counts()?;
            let commits = after.commits.zip(before.commits).map(|(after, before)| after - before);
            with.insert("flushes".to_owned(), json!(after.flushes - before.flushes));
            with.insert("commits".to_owned(), json!(commits));
        }
        does.after.iter().try_for_each(|script| self.shell(script, &with).map(drop))?;
        // 4. The figures.
        with.extend(self.eval_all(does.find.as_ref(), &with)?);
        let mut record = self.eval_all(does.figures.as_ref(), &with)?;
        if let Some(Value::Object(all)) = record.remove("*") {
            record.extend(all);
        }
        with.extend(record.clone());
        if let Some(check) = does.check.as_ref()
            && !self.templates.is_true(check, &with)?
        {
            return Err(self.wrong(format!("{} is not so: {check}", cell.title())));
        }
        *shown = self.templates.fill(&self.plan.progress, &with)?;
        record.extend([
            ("command".to_owned(), json!(command)),
            ("started".to_owned(), json!(started)),
            ("took_s".to_owned(), json!(took_s)),
            ("load".to_owned(), json!(machine::load())),
        ]);
        Ok((record, stolen_share))
    }

    /// Runs the command, or boots the guest. Returns what the figures are found in, and the command line.
    fn work(&self, does: &Layer, with: &Variables) -> Result<(Variables, String), EvaluateError> {
        if let Some(guest) = &does.guest {
            return guest.boot(self.harness, &self.kernels, &self.templates, with);
        }
        let text = self.templates.fill(does.command.as_deref().unwrap_or_default(), with)?;
        let words = words(&text);
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| self.wrong("a run has neither a command nor a guest".to_owned()))?;
        let mut command = Command::new(program);
        command.args(arguments);
        let statuses = does.statuses.clone().unwrap_or_else(|| vec![0]);
        let statuses = if statuses.is_empty() { (0..=255).collect() } else { statuses };
        let done = self.harness.execute(&mut command, &statuses)?;
        let output = self.harness.path(OUTPUT);
        fs::write(&output, &done.stdout).map_err(EvaluateError::file("write", &output))?;
        let found = json!({ "stdout": done.stdout, "said": done.said, "status": done.status });
        Ok((found.as_object().cloned().unwrap_or_default(), line(&command)))
    }
}
