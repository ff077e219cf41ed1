//! One run of a service: its clients' time, the disk's counts, and the reports of `luc run`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::catalogue::{SECONDS, Service};
use crate::disks::{Disk, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, MAX_STOLEN_SHARE, line, of_disk, read_json};
use crate::rounds;
use crate::steal::with_stolen_share;

/// User for services that refuse to run as root: nobody.
const USER: &str = "nobody";
const GROUP: &str = "nogroup";
const USER_ID: u32 = 65_534;

/// Maximum attempts at a run that the machine's host disturbs. The last one counts in any case.
const MAX_TRIES: usize = 4;

/// Way in which a service is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Stock,
    /// Under `luc run`, which chooses the library or the notifier.
    Auto,
    /// Under `luc run --reach notify`.
    Notified,
}

impl Way {
    /// Returns the ways that differ. `luc run` takes the notifier for static programs and Go programs, and the library
    /// for all others.
    pub(super) fn of(service: &Service) -> &'static [Self] {
        if service.only_notified {
            &[Self::Stock, Self::Auto]
        } else {
            &[Self::Stock, Self::Auto, Self::Notified]
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Auto => "auto",
            Self::Notified => "notify",
        }
    }
}

/// Returns the requests of each client.
pub(super) fn work(harness: &Harness, service: &Service) -> f64 {
    let seconds = harness.options.seconds.unwrap_or(SECONDS);
    (service.work * seconds / SECONDS).round().max(5.0)
}

/// A service, prepared on a disk of its own.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    harness: &'a Harness,
    service: &'static Service,
    disk: Disk<'a>,
    script: PathBuf,
    folder: PathBuf,
}

impl<'a> Stage<'a> {
    pub(super) fn prepare(
        harness: &'a Harness,
        service: &'static Service,
    ) -> Result<Self, EvaluateError> {
        let disk = Disk::create(harness, &EXT4)?;
        let folder = disk.mount.join("service");
        fs::create_dir(&folder).map_err(EvaluateError::file("make", &folder))?;
        if !service.as_root {
            let id = Some(USER_ID);
            chown(&folder, id, id).map_err(EvaluateError::file("hand over", &folder))?;
        }
        let stage = Self { harness, service, disk, script: scripts(harness, service)?, folder };
        harness.execute(&mut stage.command(&[], "prepare"), &[0])?;
        Ok(stage)
    }

    /// Makes a run, and repeats it while the machine's host takes too much of the processors' time.
    pub(super) fn undisturbed(&self, way: Way) -> Result<Value, EvaluateError> {
        let mut disturbed = Vec::new();
        loop {
            let mut run = self.run_service(way)?;
            let stolen_share = run["stolen_share"].as_f64().unwrap_or(0.0);
            if stolen_share <= MAX_STOLEN_SHARE || disturbed.len() + 1 == MAX_TRIES {
                run["disturbed"] = Value::Array(disturbed);
                return Ok(run);
            }
            disturbed.push(run);
        }
    }

    fn run_service(&self, way: Way) -> Result<Value, EvaluateError> {
        let mut command = self.command(&[], "run");
        if way != Way::Stock {
            command.env("SERVICE_REACH", way.name());
        }
        self.disk.settle()?;
        let before = self.disk.counts()?;
        let (finished, stolen_share) =
            with_stolen_share(|| self.harness.execute(&mut command, &every_status()))?;
        let after = self.disk.counts()?;
        let reports = reports(&self.folder)?;
        let commits = after.commits.zip(before.commits);
        Ok(json!({
            "seconds": phase(&self.folder), "flushes": after.flushes - before.flushes,
            "commits": commits.map(|(after, before)| after - before),
            "luc": (way != Way::Stock).then(|| summary(&reports, self.disk.device())), "status": finished.status,
            "said": finished.said, "stolen_share": stolen_share, "command": line(&command),
        }))
    }

    /// Makes one more run without luc, recorded by root. Returns the parts of the calls' time, and the version of the
    /// service.
    pub(super) fn recorded(&self) -> Result<Value, EvaluateError> {
        let trace = self.harness.path("trace");
        let luc = self.harness.luc_path().display().to_string();
        let file = trace.display().to_string();
        let record = [&*luc, "record", "--quiet", "--out", &file, "--"];
        self.disk.settle()?;
        self.harness.execute(&mut self.command(&record, "run"), &every_status())?;
        let syncs = &rounds::explain(self.harness, &self.disk, &trace)?["syncs"];
        Ok(json!({
            "syncs": syncs["latency"]["count"], "parts": syncs["parts"],
            "version": self.harness.package_version(self.service.package)?,
        }))
    }

    /// Returns the command line of the script, as the service's user. `before` comes before it, as root.
    fn command(&self, before: &[&str], goal: &str) -> Command {
        let user: &[&str] = if self.service.as_root {
            &[]
        } else {
            &["setpriv", "--reuid", USER, "--regid", GROUP, "--clear-groups"]
        };
        let script = self.script.display().to_string();
        let folder = self.folder.display().to_string();
        let words = [before, user, &["bash", &script, &folder, goal]].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env("SERVICE_LUC", self.harness.luc_path())
            .env("SERVICE_WORK", work(self.harness, self.service).to_string())
            .env("SERVICE_INSTANCES", self.service.instances.to_string())
            .env("SERVICE_SEED", self.harness.options.seed.to_string());
        if self.service.think_ms > 0 {
            command.env("SERVICE_THINK_MS", self.service.think_ms.to_string());
        }
        command
    }
}

/// Accepts any exit status: a run that fails is a result, too.
fn every_status() -> Vec<i32> {
    (0..=255).collect()
}

/// Writes a service's script, and those that it sources, into the work directory.
fn scripts(harness: &Harness, service: &Service) -> Result<PathBuf, EvaluateError> {
    let write = |name: &str, text: &str| {
        let path = harness.path(name);
        fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
        Ok::<_, EvaluateError>(path)
    };
    for (name, text) in service.shared {
        write(name, text)?;
    }
    write(service.script.0, service.script.1)
}

/// Returns the clients' time in s, which the script has written; `None` if it did not get that far.
fn phase(folder: &Path) -> Option<f64> {
    let path = folder.join("phase");
    let text = fs::read_to_string(&path).ok()?;
    // The next run must not take it for its own.
    fs::remove_file(&path).ok()?;
    text.trim().parse::<f64>().ok().map(|us| us / 1e6)
}

/// Returns the report of each `luc run` of a run, and removes the files.
fn reports(folder: &Path) -> Result<Vec<Value>, EvaluateError> {
    let failed = || EvaluateError::file("read", folder);
    let mut reports = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("luc-") && name.ends_with(".json") {
            reports.push(read_json(&path)?);
            fs::remove_file(&path).map_err(failed())?;
        }
    }
    Ok(reports)
}

/// Sums the reports of all `luc run`s of a run on the disk's file system. They share the rounds, and so the decision.
pub(super) fn summary(reports: &[Value], device: &str) -> Value {
    let rows: Vec<&Value> = reports.iter().map(|report| of_disk(report, device)).collect();
    let sum = |of: &dyn Fn(&Value) -> f64| -> f64 { rows.iter().map(|row| of(row)).sum() };
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let gated = sum(&|row| number(&row["gate"]["gated"]));
    let mean = |key: &str| {
        let total = sum(&|row| number(&row["gate"]["gated"]) * number(&row["gate"][key]));
        (gated > 0.0).then(|| total / gated)
    };
    let busiest = rows
        .iter()
        .max_by(|a, b| number(&a["gate"]["gated"]).total_cmp(&number(&b["gate"]["gated"])));
    let gate = busiest.map(|row| &row["gate"]);
    let mut unreached: BTreeMap<&str, u64> = BTreeMap::new();
    for program in reports.iter().filter_map(|report| report["unreached"].as_array()).flatten() {
        let name = program["program"].as_str().unwrap_or_default();
        *unreached.entry(name).or_default() += program["processes"].as_u64().unwrap_or(0);
    }
    let refused = reports.iter().find_map(|report| report["refused"].as_str());
    json!({
        "runs": reports.len(), "notified": reports.iter().filter(|report| !report["notified"].is_null()).count(),
        "calls": sum(&|row| ["fsyncs", "fdatasyncs", "msyncs"].iter().map(|kind| number(&row[*kind])).sum()),
        "gated": gated, "mean_wait_us": mean("mean_wait_us"), "mean_write_back_us": mean("mean_write_back_us"),
        "decision": gate.map(|gate| &gate["decision"]), "flush_decision": gate.map(|gate| &gate["flush_decision"]),
        "unreached": unreached, "refused": refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_instances_said_is_added_up() {
        let report = |gated: f64, wait: f64| {
            json!({ "notified": null, "refused": null,
                    "unreached": [{ "program": "postgres", "processes": 2 }],
                    "file_systems": [
                { "device": "loop9", "fsyncs": 99 },
                { "device": "loop1", "fsyncs": 3, "fdatasyncs": 4, "msyncs": 0,
                  "gate": { "gated": gated, "mean_wait_us": wait, "decision": { "state": "engaged" } } },
            ]})
        };
        let all = summary(&[report(1.0, 1000.0), report(3.0, 2000.0)], "loop1");
        assert_eq!(all["calls"], 14.0);
        assert_eq!(all["gated"], 4.0);
        assert_eq!(all["mean_wait_us"], 1750.0);
        assert_eq!(all["unreached"]["postgres"], 4);
        assert_eq!(all["decision"]["state"], "engaged");
        assert_eq!(all["notified"], 0);
        assert_eq!(summary(&[], "loop1")["calls"], 0.0);
    }
}
