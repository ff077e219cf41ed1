//! The results so far: a line of JSON for each finished repeat, on the disk before the next begins.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::root_owned;
use luc_power::energy::RunEnergy;
use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::counters::CounterValues;
use super::error::SweepError;
use super::plan::SweepPlan;
use super::repeat_environment::RepeatEnvironment;

/// Time for the cleanup after a killed sweep.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(45);

/// Result of one finished repeat, a line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RepeatRecord {
    pub key: String,
    /// Number of the repeat, from 0.
    pub round: usize,
    pub value: f64,
    /// Values of its series that were cut as warm-up; `None` where the figure is one number.
    pub warm_up: Option<usize>,
    pub environment: RepeatEnvironment,
    /// Energy of the repeat; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<RunEnergy>,
    /// Figure over mean power, if the figure is a rate: operations per joule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_gross_joule: Option<f64>,
    /// Figure over mean power above the idle machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_net_joule: Option<f64>,
    #[serde(default, skip_serializing_if = "CounterValues::is_empty")]
    pub counters: CounterValues,
    /// Attempts before it that the hypervisor disturbed, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<DiscardedRepeat>,
}

/// An attempt at a repeat during which the hypervisor took more than the plan's `stop.stolen`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiscardedRepeat {
    pub value: f64,
    /// Share of the processors' time that the hypervisor took.
    pub stolen_share: f64,
}

/// A point that cannot be measured, in a plan that goes on without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointFailure {
    pub key: String,
    /// Number of the repeat, from 0.
    pub round: usize,
    pub failed: String,
}

/// Records and failures in a sweep's file of results.
#[derive(Debug, Default)]
pub(super) struct RecordedResults {
    pub(super) records: Vec<RepeatRecord>,
    pub(super) failures: Vec<PointFailure>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JournalLine {
    Made(Box<RepeatRecord>),
    Failed(PointFailure),
}

/// File of a sweep's results, open and locked.
#[derive(Debug)]
pub(super) struct ResultsJournal {
    file: File,
    lock: File,
    path: PathBuf,
}

impl ResultsJournal {
    /// Opens or creates the results in the folder `out`. Cuts a half-written last line of a killed sweep. Refuses a
    /// folder with other content, or with results of another plan, and leaves it unchanged.
    pub(super) fn open(
        out: &Path,
        plan: &SweepPlan,
    ) -> Result<(Self, RecordedResults), SweepError> {
        refuse_foreign(out)?;
        // Readable for all and writable for the owner only, whatever the umask.
        let made = DirBuilder::new().recursive(true).mode(0o755).create(out);
        made.map_err(SweepError::io("make", out))?;
        check_owner(out)?;
        let lock = lock(out)?;
        let path = out.join("results.jsonl");
        let open = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = open.map_err(SweepError::io("open", &path))?;
        let mut journal = Self { file, lock, path };
        let text = journal.text()?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        // Serialized, as in the file.
        let head = line(&plan.head()?);
        let begun = text[..whole].lines().next();
        if begun.map_or(!head.starts_with(&text), |first| first != head.trim_end()) {
            return Err(SweepError::OtherPlan(journal.path));
        }
        if whole < text.len() {
            let cut = journal.file.set_len(whole as u64);
            cut.map_err(SweepError::io("cut", &journal.path))?;
        }
        if begun.is_none() {
            journal.write(&head)?;
            // Makes the names of the file and of its folder durable.
            for folder in [Some(out), out.parent()].into_iter().flatten() {
                let _ = File::open(folder).and_then(|folder| folder.sync_all());
            }
        }
        let results = journal.read_back()?;
        Ok((journal, results))
    }

    /// Keeps a repeat: it is on the disk when this returns.
    pub(super) fn append(&mut self, record: &RepeatRecord) -> Result<(), SweepError> {
        self.write(&line(&serde_json::json!(record)))
    }

    /// Keeps that a point cannot be measured.
    pub(super) fn append_failure(&mut self, failure: &PointFailure) -> Result<(), SweepError> {
        self.write(&line(&serde_json::json!(failure)))
    }

    pub(super) fn read_back(&mut self) -> Result<RecordedResults, SweepError> {
        let text = self.text()?;
        results(&text, &self.path)
    }

    /// Returns a copy of the lock on the folder, which is held until all copies are closed.
    pub(super) fn lock_copy(&self) -> Result<File, SweepError> {
        self.lock.try_clone().map_err(SweepError::io("hold", &self.path))
    }

    fn text(&mut self) -> Result<String, SweepError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(SweepError::io("read", &self.path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&mut self, text: &str) -> Result<(), SweepError> {
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(SweepError::io("write", &self.path))
    }
}

/// Reads the plan and the repeats that are written in the folder `out` so far. Nothing is locked or changed.
pub(super) fn read(out: &Path) -> Result<(SweepPlan, RecordedResults), SweepError> {
    #[derive(Deserialize)]
    struct Head {
        plan: SweepPlan,
    }
    let path = out.join("results.jsonl");
    let text = fs::read_to_string(&path).map_err(|_| SweepError::NoSweep(out.to_owned()))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let text = &text[..whole];
    let head = serde_json::from_str(text.lines().next().unwrap_or_default());
    let Head { plan } = head.map_err(|_| SweepError::NoSweep(out.to_owned()))?;
    Ok((plan, results(text, &path)?))
}

/// Parses the lines after the first of the file at `path`.
fn results(text: &str, path: &Path) -> Result<RecordedResults, SweepError> {
    let mut results = RecordedResults::default();
    for (at, line) in text.lines().enumerate().skip(1) {
        match serde_json::from_str(line) {
            Ok(JournalLine::Made(record)) => results.records.push(*record),
            Ok(JournalLine::Failed(failure)) => results.failures.push(failure),
            Err(_) => {
                return Err(SweepError::Journal { path: path.to_owned(), line: at + 1 });
            }
        }
    }
    Ok(results)
}

/// Checks that only root can have written the files from which root restores. They, and the folder `out`, must belong
/// to root or to the user who runs sudo.
pub(super) fn check_owner(out: &Path) -> Result<(), SweepError> {
    for name in ["", "devices.json", "processors.json"] {
        let path = if name.is_empty() { out.to_owned() } else { out.join(name) };
        if let Some(reason) = root_owned::doubt_at(&path) {
            return Err(SweepError::Doubtful { path, reason });
        }
    }
    Ok(())
}

/// Refuses a folder of something else, since a sweep replaces and removes files by their names.
fn refuse_foreign(out: &Path) -> Result<(), SweepError> {
    if out.join("results.jsonl").exists() {
        return Ok(());
    }
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(SweepError::io("list", out))?,
    };
    // A sweep that was killed at once may have left only its lock.
    if entries.flatten().any(|entry| entry.file_name() != "lock") {
        return Err(SweepError::Foreign(out.to_owned()));
    }
    Ok(())
}

fn line(value: &serde_json::Value) -> String {
    format!("{value}\n")
}

fn lock(out: &Path) -> Result<File, SweepError> {
    let path = out.join("lock");
    let file = File::create(&path).map_err(SweepError::io("make", &path))?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < CLEANUP_TIMEOUT => {
                sleep(Duration::from_millis(50));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(SweepError::Busy(out.to_owned())),
            Err(error) => return Err(SweepError::io("lock", &path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SweepPlan {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plan.toml");
        let text = "[[workload]]\nname = 'w'\ncommand = ['true']\n[[target]]\nname = 't'\ndirectory = '/'\n";
        fs::write(&path, text).expect("written");
        SweepPlan::read(&path).expect("fine")
    }

    #[test]
    fn folders_of_others_are_left_alone() {
        for (name, text) in
            [("work", "precious"), ("results.jsonl", "precious"), ("results.jsonl", "{}\nprecious")]
        {
            let out = tempfile::tempdir().expect("a folder");
            let file = out.path().join(name);
            fs::write(&file, text).expect("written");
            ResultsJournal::open(out.path(), &plan()).expect_err("refused");
            assert_eq!(fs::read_to_string(&file).expect("there"), text);
        }
    }

    #[test]
    fn discarded_attempts_are_kept_and_old_results_have_none() {
        let mut record = crate::test_plan::record("w,1,a,off", 0, 5.0);
        let old = line(&serde_json::json!(record));
        assert!(!old.contains("discarded"));
        record.discarded.push(DiscardedRepeat { value: 3.0, stolen_share: 0.2 });
        let new = line(&serde_json::json!(record));
        let both = format!("head\n{old}{new}");
        let read = results(&both, Path::new("r.jsonl")).expect("fine").records;
        assert!(read[0].discarded.is_empty());
        assert_eq!(read[1].discarded, record.discarded);
    }

    #[test]
    fn a_first_line_cut_short_is_begun_anew() {
        let out = tempfile::tempdir().expect("a folder");
        let file = out.path().join("results.jsonl");
        drop(ResultsJournal::open(out.path(), &plan()).expect("begun"));
        let whole = fs::read_to_string(&file).expect("there");
        for length in [0, 1, whole.len() - 1, whole.len()] {
            fs::write(&file, &whole[..length]).expect("written");
            let (_, results) = ResultsJournal::open(out.path(), &plan()).expect("opened");
            assert!(results.records.is_empty());
            assert_eq!(fs::read_to_string(&file).expect("there"), whole);
        }
    }
}
