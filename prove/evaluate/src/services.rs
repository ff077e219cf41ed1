//! Part `services`: programs of the distribution that nobody here wrote, unchanged, as `luc run
//! --compare` shows them to their users.
//!
//! Each has a script beside this file. It makes an instance of its own on an emulated disk, starts
//! it, drives eight clients for a fixed amount of work, stops it, and fails if a log has an error.

mod page;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_claims::report::Page;
use luc_stats::{Side, interleave};
use serde_json::{Value, json};

use super::disks::{Disk, EXT4};
use super::error::EvaluateError;
use super::harness::{Harness, line, read_json};
use super::progress::Progress;

/// The user that services which refuse to be root are run as, with `luc run`: nobody.
const USER: &str = "nobody";
const GROUP: &str = "nogroup";
const USER_ID: u32 = 65_534;

/// The run of each service takes about this long without the gate, s.
const SECONDS: f64 = 15.0;

/// Clients of each service; the scripts have the same number.
const CLIENTS: f64 = 8.0;

const COMMON: &str = include_str!("services/common.sh");

/// A service and its clients.
#[derive(Debug, Clone, Copy)]
struct Service {
    name: &'static str,
    /// What is done, for the page.
    about: &'static str,
    /// How the service itself brings its clients together, which leaves that much less to gain.
    own_batching: &'static str,
    /// The script's name and text.
    script: (&'static str, &'static str),
    /// The package whose version is shown.
    package: &'static str,
    instances: usize,
    /// Work of each client that takes about [`SECONDS`].
    work: f64,
    /// Whether it is run as root, or else as a user without rights.
    as_root: bool,
}

const SERVICES: [Service; 6] = [
    Service {
        name: "MariaDB, 8 clients",
        about: "one server; each client inserts row after row, a transaction each",
        own_batching: "one client at a time writes the log and synchronizes it for all that wait; \
                       mostly no other caller is there to share a flush with",
        script: ("mariadb.sh", include_str!("services/mariadb.sh")),
        package: "mariadb-server",
        instances: 1,
        work: 400.0,
        as_root: true,
    },
    Service {
        name: "MariaDB, 8 servers",
        about: "the same, each client with a server of its own",
        own_batching: "none between servers; each overwrites its log in place",
        script: ("mariadb.sh", include_str!("services/mariadb.sh")),
        package: "mariadb-server",
        instances: 8,
        work: 400.0,
        as_root: true,
    },
    Service {
        name: "Dovecot LMTP, 8 clients",
        about: "each client delivers mail after mail of 1 KiB to a maildir",
        own_batching: "none: each client has a process",
        script: ("dovecot.sh", include_str!("services/dovecot.sh")),
        package: "dovecot-lmtpd",
        instances: 1,
        work: 250.0,
        as_root: false,
    },
    Service {
        name: "RabbitMQ, 8 publishers",
        about: "each publishes persistent messages to a durable queue and waits for the \
                confirmation of each",
        own_batching: "none between queues: each has a process and a journal",
        script: ("rabbitmq.sh", include_str!("services/rabbitmq.sh")),
        package: "rabbitmq-server",
        instances: 1,
        work: 400.0,
        as_root: true,
    },
    Service {
        name: "SQLite, 8 writers",
        about: "each inserts row after row into a database of its own, a transaction each, \
                rollback journal",
        own_batching: "none",
        script: ("sqlite.sh", include_str!("services/sqlite.sh")),
        package: "sqlite3",
        instances: 8,
        work: 150.0,
        as_root: true,
    },
    Service {
        name: "PostgreSQL, 8 servers",
        about: "each client inserts row after row into a server of its own, a transaction each",
        own_batching: "none between servers; each overwrites its log in place (segments are used \
                       again), and a checkpoint may run beside",
        script: ("postgresql.sh", include_str!("services/postgresql.sh")),
        package: "postgresql",
        instances: 8,
        work: 300.0,
        as_root: false,
    },
];

/// What a comparison came to.
#[derive(Debug)]
struct Outcome {
    service: &'static Service,
    /// Requests of all clients in a run: transactions, mails, messages.
    requests: f64,
    /// The package's version.
    version: String,
    /// What `luc run --compare` wrote.
    report: Value,
    /// The device of the disk, as the report names it.
    device: String,
    /// How long the clients took in each run, s: with the gate and without. Empty if a run did not
    /// get that far.
    phases: (Vec<f64>, Vec<f64>),
    /// The comparison's exit status: that of the worst run.
    status: i32,
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let wanted: Vec<&'static Service> = SERVICES
        .iter()
        .filter(|service| harness.options.wants(service.name))
        .collect();
    harness.keep_processors_awake()?;
    harness.let_others_pass()?;
    let mut progress = Progress::new(harness.part, wanted.len());
    let mut outcomes = Vec::new();
    for service in wanted {
        let outcome = compare(harness, service, repeats)?;
        progress.step(service.name);
        outcomes.push(outcome);
    }
    Ok(page::page(&outcomes, repeats))
}

/// Prepares a service on a fresh disk and compares its runs.
fn compare(
    harness: &Harness,
    service: &'static Service,
    repeats: usize,
) -> Result<Outcome, EvaluateError> {
    let script = scripts(harness, service)?;
    let disk = Disk::create(harness, &EXT4)?;
    let folder = disk.mount.join("service");
    fs::create_dir(&folder).map_err(EvaluateError::file("make", &folder))?;
    if !service.as_root {
        let id = Some(USER_ID);
        chown(&folder, id, id).map_err(EvaluateError::file("hand over", &folder))?;
    }
    let seconds = harness.options.seconds.unwrap_or(SECONDS);
    let work = (service.work * seconds / SECONDS).round().max(5.0);
    let as_user = |words: &[&str], goal: &str| {
        let mut command = if service.as_root {
            Command::new(words[0])
        } else {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                USER,
                "--regid",
                GROUP,
                "--clear-groups",
                words[0],
            ]);
            command
        };
        command.args(&words[1..]);
        command.arg("bash").arg(&script).arg(&folder).arg(goal);
        command.env("SERVICE_WORK", work.to_string());
        command.env("SERVICE_INSTANCES", service.instances.to_string());
        command
    };
    let mut prepare = as_user(&["env"], "prepare");
    harness.execute(&mut prepare, &[0])?;
    disk.settle()?;

    let report_file = folder.join("comparison.json");
    let (luc, file) = (
        harness.luc_path().display().to_string(),
        report_file.display().to_string(),
    );
    let (repeats_word, seed) = (repeats.to_string(), harness.options.seed.to_string());
    let words = [
        &luc,
        "run",
        "--compare",
        &repeats_word,
        "--seed",
        &seed,
        "--json",
        &file,
        "--",
    ];
    let mut command = as_user(&words, "run");
    let accepted: Vec<i32> = (0..=255).collect();
    let finished = harness.execute(&mut command, &accepted)?;
    let report = read_json(&report_file)?;
    let phases = phases(&folder.join("phases"), repeats, harness.options.seed);
    let version = harness.package_version(service.package)?;
    harness.keep(json!({
        "cell": service.name,
        "package": service.package,
        "version": version,
        "work": work,
        "command": line(&command),
        "status": finished.status,
        "said": finished.said,
        "device": disk.device(),
        "phases_s": { "with": phases.0, "without": phases.1 },
        "comparison": report,
    }));
    Ok(Outcome {
        service,
        requests: work * CLIENTS,
        version,
        report,
        device: disk.device().to_owned(),
        phases,
        status: finished.status,
    })
}

/// Writes a service's script, and what all share, into the work directory.
fn scripts(harness: &Harness, service: &Service) -> Result<PathBuf, EvaluateError> {
    let write = |name: &str, text: &str| {
        let path = harness.path(name);
        fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
        Ok::<_, EvaluateError>(path)
    };
    write("common.sh", COMMON)?;
    write(service.script.0, service.script.1)
}

/// The times of the runs with the gate and without it, s, from the lines that the script has written:
/// one for each run, µs. A recorded run may follow them.
fn phases(file: &Path, repeats: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let times: Vec<f64> = text
        .lines()
        .map_while(|line| line.parse::<f64>().ok())
        .map(|us| us / 1e6)
        .collect();
    let order = interleave(repeats, seed);
    if times.len() < order.len() {
        return (Vec::new(), Vec::new());
    }
    let side = |wanted| {
        let pairs = order.iter().zip(&times);
        pairs
            .filter(|(side, _)| **side == wanted)
            .map(|(_, time)| *time)
            .collect()
    };
    (side(Side::With), side(Side::Without))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_prepares_and_runs() {
        assert!(COMMON.contains(&format!("\nclients={CLIENTS}\n")));
        for service in SERVICES {
            for word in ["common.sh\"", "prepare)", "run)", "drive "] {
                assert!(service.script.1.contains(word), "{}: {word}", service.name);
            }
        }
    }

    #[test]
    fn phases_go_with_the_order_of_the_runs() {
        let file = std::env::temp_dir().join(format!("luc-phases-{}", std::process::id()));
        let order = interleave(2, 7);
        let lines: String = order
            .iter()
            .map(|side| match side {
                Side::With => "1000000\n",
                Side::Without => "2000000\n",
            })
            .collect();
        fs::write(&file, format!("{lines}3000000\n")).expect("write");
        assert_eq!(phases(&file, 2, 7), (vec![1.0, 1.0], vec![2.0, 2.0]));
        assert_eq!(phases(&file, 9, 7), (vec![], vec![]));
        fs::remove_file(&file).expect("remove");
    }
}
