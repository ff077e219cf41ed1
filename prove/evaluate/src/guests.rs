//! What the parts that run guests share: guests side by side, results kept as soon as they are there, and
//! what tells builds apart.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::interrupt;
use luc_vm::Outcome;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::progress::Progress;
use super::{EvaluateError, Options};

/// How often the user's patience is asked after.
const POLL: Duration = Duration::from_millis(200);

/// Makes `missing`, `--jobs` at a time, until the budget is spent; `keep` gets each as soon as it is there. `name`
/// is for the progress of `part`.
pub(super) fn run_all<G, R>(
    part: &'static str,
    options: &Options,
    missing: VecDeque<G>,
    name: impl Fn(&G) -> String,
    make: impl Fn(&G) -> Result<R, EvaluateError> + Send + Sync + 'static,
    mut keep: impl FnMut(&G, R) -> Result<(), EvaluateError>,
) -> Result<(), EvaluateError>
where
    G: Send + 'static,
    R: Send + 'static,
{
    let deadline = options.budget.map(|budget| Instant::now() + budget);
    let mut progress = Progress::new(part, missing.len());
    let queue = Arc::new(Mutex::new(missing));
    let make = Arc::new(make);
    let (sender, outcomes) = mpsc::channel();
    for _ in 0..options.jobs.max(1) {
        let (make, queue, sender) = (make.clone(), queue.clone(), sender.clone());
        // Not joined: a guest ends with its thread, and that with the process.
        thread::spawn(move || worker(&*make, &queue, deadline, &sender));
    }
    drop(sender);
    loop {
        match outcomes.recv_timeout(POLL) {
            Ok((group, made)) => {
                keep(&group, made?)?;
                progress.step(&name(&group));
            }
            Err(RecvTimeoutError::Timeout) if interrupt::interrupted() => {
                return Err(EvaluateError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// That the guest of the group `name` ended well and its kernel complained of nothing.
pub(super) fn check(outcome: &Outcome, name: &str) -> Result<(), EvaluateError> {
    let failed = |said: String| EvaluateError::Command {
        command: format!("the guest of {name}"),
        how: format!("status {}", outcome.status),
        said,
    };
    if outcome.status != 0 {
        return Err(failed(outcome.text().trim().to_owned()));
    }
    match outcome.complaints().first() {
        Some(complaint) => Err(failed(format!("the kernel complained: {complaint}"))),
        None => Ok(()),
    }
}

/// Takes groups until there are no more, time is up, or nobody listens.
fn worker<G, R>(
    make: &(impl Fn(&G) -> Result<R, EvaluateError> + ?Sized),
    queue: &Mutex<VecDeque<G>>,
    deadline: Option<Instant>,
    sender: &mpsc::Sender<(G, Result<R, EvaluateError>)>,
) {
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(group) = next else { return };
        let made = make(&group);
        if sender.send((group, made)).is_err() {
            return;
        }
    }
}

/// A group's cells and what made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record<C> {
    group: String,
    build: String,
    cells: Vec<C>,
}

/// The file.
#[derive(Debug, Deserialize)]
struct Stored<C> {
    groups: Vec<Record<C>>,
}

/// All groups that have been measured, by name: on disk as soon as they are there.
#[derive(Debug)]
pub(super) struct Results<C> {
    part: &'static str,
    path: PathBuf,
    kernel: String,
    groups: BTreeMap<String, Record<C>>,
}

impl<C: Serialize + DeserializeOwned> Results<C> {
    /// Those of an earlier run, if there are any.
    pub(super) fn open(
        part: &'static str,
        path: &Path,
        kernel: &str,
    ) -> Result<Self, EvaluateError> {
        let groups = match fs::read(path) {
            Ok(bytes) => {
                let stored: Stored<C> =
                    serde_json::from_slice(&bytes).map_err(|error| EvaluateError::File {
                        what: "resume from (remove it to start anew)",
                        path: path.to_owned(),
                        reason: error.into(),
                    })?;
                let named = |record: Record<C>| (record.group.clone(), record);
                stored.groups.into_iter().map(named).collect()
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(EvaluateError::file("read", path)(error)),
        };
        Ok(Self {
            part,
            path: path.to_owned(),
            kernel: kernel.to_owned(),
            groups,
        })
    }

    /// Whether nothing has been measured.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether a group is there, whatever build made it.
    pub(super) fn is_there(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Whether a group is there and of this build.
    pub(super) fn has(&self, group: &str, build: &str) -> bool {
        self.groups
            .get(group)
            .is_some_and(|record| record.build == build)
    }

    /// A group's cells.
    pub(super) fn cells(&self, group: &str) -> Option<&[C]> {
        Some(&self.groups.get(group)?.cells)
    }

    /// Keeps a group's cells.
    pub(super) fn add(
        &mut self,
        group: String,
        build: String,
        cells: Vec<C>,
    ) -> Result<(), EvaluateError> {
        let record = Record {
            group: group.clone(),
            build,
            cells,
        };
        self.groups.insert(group, record);
        self.save()
    }

    /// Writes the file: one line per cell, replaced as a whole.
    fn save(&self) -> Result<(), EvaluateError> {
        let mut text = String::from("{\n");
        for (key, value) in [
            ("part", json!(self.part)),
            ("made_by", json!(format!("make evaluate-{}", self.part))),
            ("kernel", json!(self.kernel)),
        ] {
            text += &format!("\"{key}\": {value},\n");
        }
        text += "\"groups\": [\n";
        let groups: Vec<String> = self
            .groups
            .values()
            .map(|record| {
                let cells: Vec<String> = record
                    .cells
                    .iter()
                    .filter_map(|cell| serde_json::to_string(cell).ok())
                    .collect();
                format!(
                    "{{\"group\": {}, \"build\": {}, \"cells\": [\n{}]}}",
                    json!(record.group),
                    json!(record.build),
                    cells.join(",\n")
                )
            })
            .collect();
        text += &groups.join(",\n");
        text += "]}\n";
        let partial = self.path.with_extension("json.new");
        fs::write(&partial, text).map_err(EvaluateError::file("write", &partial))?;
        fs::rename(&partial, &self.path).map_err(EvaluateError::file("write", &self.path))
    }
}

/// FNV-1a, 64 bits: tells builds apart, no more.
#[derive(Debug)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    pub(super) fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}
