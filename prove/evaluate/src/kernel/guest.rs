//! One group in one guest: the script, the run in virtual time, and what came out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_vm::{Kernel, Mode, Outcome, Vm};
use serde_json::Value;

use super::super::EvaluateError;
use super::super::guests::{self, Fnv};
use super::cells::{FileSystem, Group, Rate, Setting, Sheet, Speed};
use super::results::Cell;

/// The distribution's kernel.
const VERSION: &str = "6.1";
/// Where the modules' sources are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");
/// What a group may take on a busy host.
const LIMIT: Duration = Duration::from_secs(3600);
/// What each cell does in the guest.
const PREAMBLE: &str = include_str!("cell.sh");
/// Changed when figures are taken otherwise from what a guest leaves.
const READING: &str = "2";

/// What all guests share.
#[derive(Debug)]
pub(super) struct GuestRunner {
    kernel: Kernel,
    luc: PathBuf,
    modules: [PathBuf; 2],
    /// Stands for all that a result depends on.
    build: String,
}

impl GuestRunner {
    /// Builds the modules into `work`, and finds the kernel.
    pub(super) fn open(luc: &Path, work: &Path) -> Result<Self, EvaluateError> {
        if let Some(reason) = luc_vm::missing() {
            return Err(reason.into());
        }
        let kernel = Kernel::find(VERSION)?;
        let module = |name: &str| kernel.build_module(&Path::new(SOURCES).join(name), work);
        let (luc_module, lagdisk) = (module("luc")?, module("lagdisk")?);
        let mut hash = Fnv::new();
        hash.add(kernel.release().as_bytes());
        hash.add(PREAMBLE.as_bytes());
        hash.add(READING.as_bytes());
        for path in [luc, &luc_module, &lagdisk] {
            hash.add(&fs::read(path).map_err(EvaluateError::file("read", path))?);
        }
        Ok(Self {
            kernel,
            luc: luc.to_owned(),
            modules: [luc_module, lagdisk],
            build: hash.hex(),
        })
    }

    /// Stands for the kernel, the modules, the benchmarks and the group's script: a result of another
    /// build is made again.
    pub(super) fn build(&self, group: Group) -> String {
        let mut hash = Fnv::new();
        hash.add(self.build.as_bytes());
        hash.add(script(group).as_bytes());
        hash.hex()
    }

    /// The kernel's release.
    pub(super) fn release(&self) -> &str {
        self.kernel.release()
    }

    /// Boots a guest and runs a group.
    pub(super) fn run(&self, group: Group) -> Result<Vec<Cell>, EvaluateError> {
        let mode = Mode::VirtualTime {
            shift: group.speed.shift,
        };
        let mut vm = Vm::new(&self.kernel)
            .mode(mode)
            .memory_mib(2048)
            .timeout(LIMIT)
            .program("mke2fs")
            .program("mkfs.xfs")
            .program(&self.luc)
            .script(script(group));
        for module in &self.modules {
            let name = module.file_name().unwrap_or_default();
            vm = vm.file(Path::new("/root").join(name), module);
        }
        let outcome = vm.run()?;
        guests::check(&outcome, &group.name())?;
        let cell = |(number, setting)| read(&outcome, group, number, setting);
        (1..).zip(group.settings()).map(cell).collect()
    }
}

/// The guest's script.
fn script(group: Group) -> String {
    let Group { load, speed, .. } = group;
    let disk = load.disk();
    let latency = |name, us: u64| format!("{name}_ns={}", speed.stretch(us * 1000));
    let latencies = [
        latency("write", disk.write_us),
        latency("flush", disk.flush_us),
        latency("read", disk.read_us),
    ]
    .join(" ");
    let mut script = PREAMBLE.to_owned();
    for setting in group.settings() {
        if let Sheet::Seed(seed) = group.sheet {
            // What draws nothing at random meets the kernel's ticks elsewhere.
            let _ = writeln!(script, "sleep 0.00{seed}");
        }
        let _ = writeln!(
            script,
            "cell {:?} '{}' '{latencies}' {}",
            setting.file_system,
            settings(*setting, load.delay_us(), speed),
            group.command()
        ); // a String takes any text
    }
    script
}

/// The module's settings, its times stretched as the disk's.
fn settings(setting: Setting, delay_us: u64, speed: Speed) -> String {
    let Some((policy, copy_out)) = setting.module else {
        return String::new();
    };
    let mut all = vec![format!("policy={policy}"), format!("copy_out={copy_out}")];
    match policy {
        "delay" => {
            all.push(format!("delay_us={}", speed.stretch(delay_us)));
            all.push("max_hold_us=50000".to_owned());
        }
        "pid" => {
            all.push(format!("timeout_us={}", speed.stretch(1000)));
            all.push(format!("max_hold_us={}", speed.stretch(20_000)));
        }
        _ => {}
    }
    all.join(" ")
}

/// One cell's figures, at the speed that the guest stands for.
fn read(
    outcome: &Outcome,
    group: Group,
    number: usize,
    setting: &Setting,
) -> Result<Cell, EvaluateError> {
    let Group { load, speed, .. } = group;
    let missing = |what: &str| EvaluateError::Missing {
        what: format!("{what} of {}, {}", group.name(), setting.name),
    };
    let file = |kind: &str| outcome.file(&format!("{number}.{kind}"));
    let report = file("json").ok_or_else(|| missing("the report"))?;
    let report: Value = serde_json::from_str(&report).map_err(|_| missing("the report"))?;
    let rate = |rate: Rate| {
        let value = match rate {
            Rate::At(pointer, divisor) => report
                .pointer(pointer)
                .and_then(Value::as_f64)
                .map(|value| value / divisor),
            Rate::OfRounds(figure, divisor) => {
                mean_of_rounds(&report, figure).map(|value| value / divisor)
            }
            Rate::OfLatencies => rate_of_latencies(&report),
        };
        let value = value.ok_or_else(|| missing("the rate"))?;
        Ok::<_, EvaluateError>(round(speed.scale_rate(value)))
    };
    let latency = |operation: &str, figure: &str| -> Option<f64> {
        let rows = report["operations"].as_array()?;
        let mut rows = rows.iter().filter(|row| row["operation"] == operation);
        Some(round(speed.scale_time(rows.next()?[figure].as_f64()?)))
    };
    let stats = values(file("stats"));
    let disk = values(file("disk"));
    let nanoseconds = |name: &str| {
        let ns = *stats.get(name)? as f64;
        Some(round(speed.scale_time(ns) / 1e6))
    };
    let fsync = ["fsync", "logfsync", "fsyncfile2"];
    let is_ext4 = setting.file_system != FileSystem::Xfs;
    Ok(Cell {
        setting: setting.name.to_owned(),
        rate: rate(load.rate())?,
        second_rate: rate(load.second_rate())?,
        fsync_mean_us: fsync.iter().find_map(|name| latency(name, "mean_us")),
        write_mean_us: latency("write", "mean_us"),
        write_p99_us: latency("write", "p99_us"),
        flushes: disk.get("flushes").copied(),
        commits: stats.get("commits").copied().filter(|_| is_ext4),
        commits_by_fsync: stats.get("commits_by_fsync").copied(),
        fsyncs: stats.get("fsyncs").copied(),
        fsyncs_waited_two: stats.get("fsyncs_waited_two").copied(),
        holds: stats.get("holds").copied(),
        hold_ms: nanoseconds("hold_ns"),
        writes: stats.get("writes").copied(),
        writes_delayed: stats.get("writes_delayed").copied(),
        write_delay_ms: nanoseconds("write_delay_ns"),
        copies: stats.get("copies").copied(),
    })
}

fn mean_of_rounds(report: &Value, figure: &str) -> Option<f64> {
    let rounds = report["rounds"].as_array()?;
    let values: Option<Vec<f64>> = rounds.iter().map(|round| round[figure].as_f64()).collect();
    let values = values?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// N clients / mean latency of all operations, per second.
fn rate_of_latencies(report: &Value) -> Option<f64> {
    let clients = report["clients"].as_f64()?;
    let mut operations = 0.0;
    let mut total_us = 0.0;
    for row in report["operations"].as_array()? {
        let count = row["count"].as_f64()?;
        operations += count;
        total_us += count * row["mean_us"].as_f64()?;
    }
    (total_us > 0.0).then(|| clients * operations / total_us * 1e6)
}

/// Five significant digits: the raw data are to be read, and kept.
fn round(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Lines of a name and a number; other lines are left out.
fn values(text: Option<String>) -> BTreeMap<String, u64> {
    let text = text.unwrap_or_default();
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Load, SPEEDS, SWEEP};
    use super::*;

    fn group(speed: Speed) -> Group {
        Group {
            sheet: Sheet::Sweep,
            load: Load::Metarates(4),
            speed,
        }
    }

    #[test]
    fn a_script_has_a_cell_for_each_setting_with_stretched_times() {
        let text = script(group(SPEEDS[3]));
        let cells: Vec<&str> = text.lines().filter(|l| l.starts_with("cell E")).collect();
        assert_eq!(cells.len(), SWEEP.len());
        assert!(cells[0].contains("flush_ns=8484000"), "{}", cells[0]);
        assert!(cells[0].contains("--seconds 1.696"), "{}", cells[0]);
        assert!(
            cells[1].contains("'policy=delay copy_out=off delay_us=1414 "),
            "{}",
            cells[1]
        );
    }

    #[test]
    fn builds_differ_by_any_byte() {
        let hash = |parts: &[&str]| {
            let mut hash = Fnv::new();
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.hex()
        };
        assert_eq!(hash(&[]), "cbf29ce484222325");
        assert_eq!(hash(&["a"]), "af63dc4c8601ec8c");
        assert_ne!(script(group(SPEEDS[0])), script(group(SPEEDS[1])));
    }

    #[test]
    fn a_rate_of_latencies_is_clients_over_the_mean() {
        // Two clients, operations of 1 ms and 3 ms: 2 / 2 ms.
        let report = serde_json::json!({ "clients": 2, "operations": [
            { "count": 5, "mean_us": 1000.0 }, { "count": 5, "mean_us": 3000.0 } ] });
        let rate = rate_of_latencies(&report).expect("a rate");
        assert!((rate - 1000.0).abs() < 1e-9);
        assert_eq!(rate_of_latencies(&Value::Null), None);
    }

    #[test]
    fn values_are_numbers_by_name() {
        let values = values(Some("commits 12\nstate auto\n\nfsyncs 7\n".to_owned()));
        assert_eq!(values.get("commits"), Some(&12));
        assert_eq!(values.get("fsyncs"), Some(&7));
        assert_eq!(values.len(), 2);
        assert!((round(123_456.7) - 123_460.0).abs() < 1e-6);
    }
}
