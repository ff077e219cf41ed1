//! The cleanup process: it outlives the sweep and restores everything, whatever ended the sweep.
//!
//! It sleeps on a pipe from the sweep. Programs of the sweep run in its process group, so that it finds them all. It
//! holds the sweep's locks until it has finished. The same command given again waits for that, and so do other sweeps
//! on its devices. It ignores signals that are sent to a whole service or terminal. If it is killed nevertheless, the
//! sweep cleans up itself. If both are killed, the next `luc` that root runs restores from the `restore_note`.

mod process_groups;
mod restore_note;
mod state;

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use luc_power::frequency;
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use super::borrow_request::BorrowRequest;
use super::device::{self, HeldDevices};
use super::error::BorrowError;
pub use process_groups::SWEEP_VARIABLE;
use process_groups::{end_group, end_meter};
use restore_note::RestoreNote;
use state::BUSY_TIMEOUT;
pub use state::{CleanupState, name_of};

/// Signals that end a process by default and may be sent to a whole service, session or terminal.
const IGNORED_SIGNALS: [libc::c_int; 5] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE];

/// First line that the sweep writes to the pipe.
#[derive(Debug, Serialize, Deserialize)]
struct CleanupJob {
    state: CleanupState,
    note: Option<PathBuf>,
}

/// The sweep's handle of its cleanup process. Dropping it restores everything.
#[derive(Debug)]
pub struct CleanupProcess {
    pub state: CleanupState,
    pub luc: PathBuf,
    pub held: HeldDevices,
    child: Child,
    note: Option<RestoreNote>,
    _processors: Option<File>,
}

impl CleanupProcess {
    /// Removes leftovers of an earlier sweep, and starts the process. `results_lock` is the lock on the folder of
    /// results, which the process keeps until it has finished.
    ///
    /// # Errors
    /// [`BorrowError`]: leftovers cannot be removed, or the process cannot be started.
    pub fn start(
        request: &BorrowRequest<'_>,
        results_lock: File,
        held: HeldDevices,
    ) -> Result<Self, BorrowError> {
        // 1. Restore after an earlier sweep.
        let processors = lock_processors(request)?;
        let state = CleanupState::of(request)?;
        let mut note = RestoreNote::take(&state.disk)?;
        state.clear_patiently(BUSY_TIMEOUT)?;
        // 2. Record what may change, and start the process with copies of all locks.
        let spawned = (|| {
            // Again, now that devices of an earlier sweep have been given back.
            device::check(request)?;
            if let Some(note) = &mut note {
                note.write(&state)?;
            }
            let copy = processors.as_ref().map(File::try_clone).transpose();
            let copy = copy.map_err(BorrowError::io("hold", &state.processors))?;
            let mut command = command(request.luc, results_lock, copy);
            let started =
                RestoreNote::inherited(note.as_ref(), || held.inherited(|| command.spawn()));
            started.map_err(BorrowError::io("run", request.luc))
        })();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                // Nothing was changed yet.
                if let Some(note) = &note {
                    RestoreNote::remove(note.path());
                }
                return Err(error);
            }
        };
        // 3. Tell it what to restore, before anything is changed.
        let luc = request.luc.to_owned();
        let mut process = Self { state, luc, held, child, note, _processors: processors };
        let job = CleanupJob {
            state: process.state.clone(),
            note: process.note.as_ref().map(|note| note.path().to_owned()),
        };
        process.tell(&serde_json::json!(job).to_string())?;
        let group = process.group();
        if let Some(note) = &mut process.note {
            note.add(group)?;
        }
        process.held.claim()?;
        fs::create_dir_all(process.state.mount())
            .map_err(BorrowError::io("make", &process.state.work))?;
        Ok(process)
    }

    fn tell(&mut self, line: &str) -> Result<(), BorrowError> {
        let told = self.child.stdin.as_mut();
        told.map_or(Ok(()), |pipe| writeln!(pipe, "{line}"))
            .map_err(BorrowError::io("tell", &self.luc))
    }

    /// Names one more process group to be killed when the sweep has ended.
    ///
    /// # Errors
    /// [`BorrowError::File`]: note or pipe cannot be written.
    pub fn also_end(&mut self, group: i32) -> Result<(), BorrowError> {
        if let Some(note) = &mut self.note {
            note.add(group)?;
        }
        self.tell(&group.to_string())
    }

    /// Returns the process group for programs of the sweep.
    #[must_use]
    pub fn group(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Removes leftovers of a failed repeat, except the working folder.
    ///
    /// # Errors
    /// [`BorrowError`]: something stays busy.
    pub fn clear_repeat(&self) -> Result<(), BorrowError> {
        state::retry(BUSY_TIMEOUT, || {
            self.state.remove_repeat()?;
            self.held.claim()
        })
    }

    pub fn end_programs(&self) {
        end_group(self.group());
    }
}

impl Drop for CleanupProcess {
    fn drop(&mut self) {
        // The child cannot wipe devices that this process has claimed.
        self.held.release_all();
        // Before `wait`, after which the child's number may be reused.
        self.end_programs();
        // The child cleans up at the end of the pipe.
        drop(self.child.stdin.take());
        if self.child.wait().is_ok_and(|status| status.success()) {
            return;
        }
        // It was killed, or something stayed busy.
        match self.state.clear_patiently(BUSY_TIMEOUT) {
            Ok(()) => {
                if let Some(note) = &self.note {
                    RestoreNote::remove(note.path());
                }
            }
            Err(error) => eprintln!(
                "luc: what the sweep has changed is not yet as it was ({}): {error}; give the same command again, or \
                 `luc sweep restore`",
                self.state.left().join(", ")
            ),
        }
    }
}

/// Builds the command of the process, which ignores signals from its first instruction.
fn command(luc: &Path, results: File, processors: Option<File>) -> Command {
    let mut command = Command::new(luc);
    command
        .args(["sweep", "--clean-up"])
        .stdin(Stdio::piped())
        .stdout(results)
        // It prints nothing: its standard streams hold the locks on results and processors.
        .stderr(processors.map_or_else(Stdio::null, Stdio::from))
        .current_dir("/")
        .process_group(0);
    let ignore = || {
        ignore_signals();
        Ok(())
    };
    // SAFETY: between fork and exec only signal(2) is called, which is async-signal-safe; nothing is allocated.
    unsafe { command.pre_exec(ignore) };
    command
}

fn ignore_signals() {
    for signal in IGNORED_SIGNALS {
        // SAFETY: these signals may be ignored, and no handler is given.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Runs as the cleanup process: waits for the end of the pipe on standard input, then restores everything.
///
/// # Errors
/// [`BorrowError`]: something could not be removed or restored.
pub fn clean_up() -> Result<(), BorrowError> {
    // Another name, so that `killall luc` ends the sweep and not this process.
    let _ = rustix::thread::set_name(c"sweep-cleanup");
    ignore_signals();
    let stdin = Path::new("standard input");
    let mut pipe = BufReader::new(io::stdin());
    let mut job = String::new();
    pipe.read_line(&mut job).map_err(BorrowError::io("read", stdin))?;
    // A sweep that was killed before it wrote the job had changed nothing.
    let Ok(CleanupJob { state, note }) = serde_json::from_str(&job) else {
        return Ok(());
    };
    // The rest are further process groups. It ends with the sweep.
    let mut rest = String::new();
    pipe.read_to_string(&mut rest).map_err(BorrowError::io("read", stdin))?;
    end_group(std::process::id().cast_signed());
    for group in rest.lines().filter_map(|line| line.parse().ok()) {
        end_meter(group);
    }
    state.clear_patiently(BUSY_TIMEOUT)?;
    if let Some(note) = note {
        RestoreNote::remove(&note);
    }
    Ok(())
}

/// Resources that a cleanup restored, and the errors of those that it could not.
#[derive(Debug, Default)]
pub struct RestoredResources {
    /// One sentence for each sweep after which something was restored.
    pub restored: Vec<String>,
    pub failed: Vec<BorrowError>,
}

/// Restores after sweeps that were killed together with their cleanup processes; does nothing unless root. Sweeps whose
/// process or cleanup process lives are left alone.
#[must_use]
pub fn restore_left(timeout: Duration) -> RestoredResources {
    let mut outcome = RestoredResources::default();
    if !rustix::process::geteuid().is_root() {
        return outcome;
    }
    for note in RestoreNote::left() {
        match note.and_then(|note| restore(note, timeout)) {
            Ok(None) => {}
            Ok(Some(text)) => outcome.restored.push(text),
            Err(error) => outcome.failed.push(error),
        }
    }
    outcome
}

/// Restores from a note; returns a sentence about it if anything was left.
fn restore(mut note: RestoreNote, timeout: Duration) -> Result<Option<String>, BorrowError> {
    let mut restored = None;
    if let Some(content) = note.read()? {
        let state = content.state;
        // Another sweep may have borrowed the processors by now.
        let is_lent = state.processors.exists();
        let _lock = is_lent.then(|| frequency::lock(&state.sysfs)).transpose()?;
        for group in content.groups {
            group.end_left(&state.disk);
        }
        let left = state.left();
        state.clear_patiently(timeout)?;
        if !left.is_empty() {
            let out = state.out.display();
            restored = Some(format!("a killed sweep ({out}) had left {}", left.join(", ")));
        }
    }
    RestoreNote::remove(note.path());
    Ok(restored)
}

/// Restores after a sweep that was killed with its cleanup process after its last repeat.
///
/// # Errors
/// [`BorrowError`]: something could not be removed or restored.
pub fn clear_left(request: &BorrowRequest<'_>) -> Result<(), BorrowError> {
    let state = CleanupState::of(request)?;
    // A sweep with nothing to restore does not wait for other sweeps.
    let is_lent = state.processors.exists();
    let _lock = is_lent.then(|| lock_processors(request)).transpose()?;
    state.clear_patiently(BUSY_TIMEOUT)
}

/// Locks the processors' settings if the sweep changes them.
fn lock_processors(request: &BorrowRequest<'_>) -> Result<Option<File>, BorrowError> {
    Ok(request.frequency.map(|_| frequency::lock(request.sysfs)).transpose()?)
}

/// Parses a note and serializes it again; `None` if it is not one.
pub(super) fn saved(text: &str) -> Option<String> {
    let content = restore_note::parse(text)?;
    let groups = content.groups.into_iter().map(process_groups::ProcessGroup::text);
    Some(format!("{}\n{}", serde_json::json!(content.state), groups.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a valid text of each kind of [`crate::saved`].
    fn valid_texts() -> [String; 3] {
        let state = CleanupState::made_up(Path::new("/srv/out"));
        [
            r#"[{"path":"/dev/loop0","number":[7,0],"sequence":3,"boot":"b","scheduler":"none",
                "uuid":"235368ae-4691-49ec-9017-06acdf33967b"}]"#
                .to_owned(),
            r#"{"smt":"on","turbo":[["intel_pstate/no_turbo","0"]],"policies":[{"processor":"cpu0","governor":"powersave",
                "min_khz":1,"max_khz":2,"speed_khz":null}]}"#
                .to_owned(),
            format!("{}\n12 34\n", serde_json::json!(state)),
        ]
    }

    #[test]
    fn whole_texts_are_taken() {
        for (kind, text) in (0..).zip(valid_texts()) {
            let again = crate::saved(kind, &text).expect("taken");
            assert_eq!(crate::saved(kind, &again), Some(again));
        }
    }

    proptest! {
        #[test]
        fn changed_texts_are_refused_or_mean_one_thing(
            kind in 0_u8..3,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..8),
        ) {
            let mut text: Vec<char> = valid_texts()[usize::from(kind)].chars().collect();
            for (at, to) in changes {
                let at = at.index(text.len());
                text[at] = to;
            }
            let text: String = text.into_iter().collect();
            if let Some(again) = crate::saved(kind, &text) {
                prop_assert_eq!(crate::saved(kind, &again), Some(again));
            }
        }
    }
}
