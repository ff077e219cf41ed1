//! The cleanup process: it outlives the sweep and clears up after it, whatever ended it.
//!
//! It sleeps on a pipe from the sweep. Programs of the sweep run in its process group, so that it finds them all; it
//! holds the sweep's locks, so that the same command given again, and any other sweep on its devices, waits until all
//! is clear. Signals that mean a whole service or terminal do not end it. If it was killed nevertheless, the sweep clears
//! up itself; if both were killed, the next `luc` that root runs does, by the `note`.

mod note;
mod programs;
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

use super::device::{self, Held};
use super::error::SweepError;
use super::journal::Journal;
use super::plan::Plan;
use crate::Sweep;
use note::Note;
pub(super) use programs::MARK;
use programs::{end_group, end_meter};
pub(super) use state::CleanupState;
use state::PATIENCE;
pub use state::name_of;

/// What ends a process by default and may be sent to all of a service, a session or a terminal.
const IGNORED: [libc::c_int; 5] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE];

/// The first line of the pipe.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    state: CleanupState,
    note: Option<PathBuf>,
}

/// The process, seen from the sweep.
#[derive(Debug)]
pub(super) struct CleanupProcess {
    pub(super) state: CleanupState,
    pub(super) luc: PathBuf,
    pub(super) held: Held,
    child: Child,
    note: Option<Note>,
    /// The lock of the processors.
    _processors: Option<File>,
}

impl CleanupProcess {
    /// Clears what an earlier sweep left, and starts the process.
    pub(super) fn start(
        sweep: &Sweep<'_>,
        journal: &Journal,
        held: Held,
    ) -> Result<Self, SweepError> {
        let &Sweep { plan, out, luc, sysfs, .. } = sweep;
        let processors = lock_processors(plan, sysfs)?;
        let state = CleanupState::of(plan, out, sysfs)?;
        let mut note = Note::take(&state.disk)?;
        state.clear_patiently(PATIENCE)?;
        let spawned = (|| {
            // Also those that an earlier sweep had, now that it has given them back.
            device::check(plan, out, sysfs)?;
            if let Some(note) = &mut note {
                note.write(&state)?;
            }
            let copy = processors.as_ref().map(File::try_clone).transpose();
            let copy = copy.map_err(SweepError::io("hold", &state.processors))?;
            let mut command = command(luc, journal.lock_copy()?, copy);
            let started = Note::inherited(note.as_ref(), || held.inherited(|| command.spawn()));
            started.map_err(SweepError::io("run", luc))
        })();
        let child = match (spawned, &note) {
            (Ok(child), _) => child,
            (Err(error), note) => {
                // All was clear.
                if let Some(note) = note {
                    Note::remove(note.path());
                }
                return Err(error);
            }
        };
        let mut process =
            Self { state, luc: luc.to_owned(), held, child, note, _processors: processors };
        let job = Job {
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
            .map_err(SweepError::io("make", &process.state.work))?;
        Ok(process)
    }

    fn tell(&mut self, line: &str) -> Result<(), SweepError> {
        let told = self.child.stdin.as_mut();
        told.map_or(Ok(()), |pipe| writeln!(pipe, "{line}"))
            .map_err(SweepError::io("tell", &self.luc))
    }

    /// Tells it of one more process group to end, but only when the sweep has ended.
    pub(super) fn also_end(&mut self, group: i32) -> Result<(), SweepError> {
        if let Some(note) = &mut self.note {
            note.add(group)?;
        }
        self.tell(&group.to_string())
    }

    /// The process group for programs.
    pub(super) fn group(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Removes what a repeat that failed has left; the folder to work in stays.
    pub(super) fn clear_repeat(&self) -> Result<(), SweepError> {
        state::patiently(PATIENCE, || {
            self.state.remove_repeat()?;
            self.held.claim()
        })
    }

    /// Ends every program of the sweep.
    pub(super) fn end_programs(&self) {
        end_group(self.group());
    }
}

impl Drop for CleanupProcess {
    fn drop(&mut self) {
        // It cannot wipe what this process has for itself.
        self.held.release_all();
        // While the child's number is sure to be its own.
        self.end_programs();
        // The end of the pipe is its sign to clear up.
        drop(self.child.stdin.take());
        if self.child.wait().is_ok_and(|status| status.success()) {
            return;
        }
        // It was killed, or something was busy for long.
        let cleared = self.state.clear_patiently(PATIENCE);
        match cleared {
            Ok(()) => {
                if let Some(note) = &self.note {
                    Note::remove(note.path());
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

/// The command of the process: signals are ignored before it begins.
fn command(luc: &Path, results: File, processors: Option<File>) -> Command {
    let mut command = Command::new(luc);
    command
        .args(["sweep", "--clean-up"])
        .stdin(Stdio::piped())
        .stdout(results)
        // It says nothing; it holds the locks of the results and of the processors.
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
    for signal in IGNORED {
        // SAFETY: these signals may be ignored, and no handler is given.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The cleanup process' own part: waits for the end of the pipe on standard input, then clears up.
///
/// # Errors
/// [`SweepError`]: something could not be removed.
pub fn clean_up() -> Result<(), SweepError> {
    // `killall luc` is for the sweep: whoever clears up after it has another name.
    let _ = rustix::thread::set_name(c"sweep-cleanup");
    ignore_signals();
    let stdin = Path::new("standard input");
    let mut pipe = BufReader::new(io::stdin());
    let mut job = String::new();
    pipe.read_line(&mut job).map_err(SweepError::io("read", stdin))?;
    // A sweep that was killed before it had said what to clear up had made nothing.
    let Ok(Job { state, note }) = serde_json::from_str(&job) else {
        return Ok(());
    };
    // The rest is of further groups, until the sweep ends.
    let mut rest = String::new();
    pipe.read_to_string(&mut rest).map_err(SweepError::io("read", stdin))?;
    end_group(std::process::id().cast_signed());
    for group in rest.lines().filter_map(|line| line.parse().ok()) {
        end_meter(group);
    }
    state.clear_patiently(PATIENCE)?;
    if let Some(note) = note {
        Note::remove(&note);
    }
    Ok(())
}

#[derive(Debug, Default)]
pub struct Restored {
    /// A sentence for each sweep after which something was restored.
    pub restored: Vec<String>,
    /// What could not be, and why.
    pub failed: Vec<SweepError>,
}

/// Restores what sweeps left that were killed together with their cleanup process. Sweeps that live, or whose cleanup
/// process does, are left alone. Quick where there is nothing; root only.
#[must_use]
pub fn restore_left(patience: Duration) -> Restored {
    let mut outcome = Restored::default();
    if !rustix::process::geteuid().is_root() {
        return outcome;
    }
    for note in Note::left() {
        match note.and_then(|note| restore(note, patience)) {
            Ok(None) => {}
            Ok(Some(text)) => outcome.restored.push(text),
            Err(error) => outcome.failed.push(error),
        }
    }
    outcome
}

/// Restores what a note says; what that was, if anything.
fn restore(mut note: Note, patience: Duration) -> Result<Option<String>, SweepError> {
    let mut what = None;
    if let Some(said) = note.read()? {
        let state = said.state;
        // Another sweep may have the processors by now.
        let is_lent = state.processors.exists();
        let _lock = is_lent.then(|| frequency::lock(&state.sysfs)).transpose()?;
        for group in said.groups {
            group.end_left(&state.disk);
        }
        let left = state.left();
        state.clear_patiently(patience)?;
        if !left.is_empty() {
            let out = state.out.display();
            what = Some(format!("a killed sweep ({out}) had left {}", left.join(", ")));
        }
    }
    Note::remove(note.path());
    Ok(what)
}

/// Clears what a sweep left that was killed, with its cleanup process, when it had made its last repeat.
pub(super) fn clear_left(plan: &Plan, out: &Path, sysfs: &Path) -> Result<(), SweepError> {
    let state = CleanupState::of(plan, out, sysfs)?;
    // A sweep with nothing to do does not wait for others.
    let is_lent = state.processors.exists();
    let _lock = is_lent.then(|| lock_processors(plan, sysfs)).transpose()?;
    state.clear_patiently(PATIENCE)
}

/// The lock of the processors, if the plan needs it.
fn lock_processors(plan: &Plan, sysfs: &Path) -> Result<Option<File>, SweepError> {
    if plan.lends_processors() {
        return Ok(Some(frequency::lock(sysfs)?));
    }
    Ok(None)
}

/// What `text` says as a note, written again; `None` if that is none.
pub(super) fn saved(text: &str) -> Option<String> {
    let said = note::parse(text)?;
    let groups = said.groups.into_iter().map(programs::Group::text);
    Some(format!("{}\n{}", serde_json::json!(said.state), groups.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of each kind.
    fn whole() -> [String; 3] {
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
        for (kind, text) in (0..).zip(whole()) {
            let again = super::super::saved(kind, &text).expect("taken");
            assert_eq!(super::super::saved(kind, &again), Some(again));
        }
    }

    proptest! {
        #[test]
        fn changed_texts_are_refused_or_mean_one_thing(
            kind in 0_u8..3,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..8),
        ) {
            let mut text: Vec<char> = whole()[usize::from(kind)].chars().collect();
            for (at, to) in changes {
                let at = at.index(text.len());
                text[at] = to;
            }
            let text: String = text.into_iter().collect();
            if let Some(again) = super::super::saved(kind, &text) {
                prop_assert_eq!(super::super::saved(kind, &again), Some(again));
            }
        }
    }
}
