//! Settings that last as long as a process: what a run changes is restored after it, however it ends.
//!
//! A *holder* is a process that lends settings of journals. It holds a lock on a file of its own, which
//! the kernel takes away when the process ends, also by SIGKILL. A *record* says for each journal what its
//! settings were before the first holder came, and what each holder wants; the latest holder's wish is
//! what the module gets, and when the last has gone, the settings from before are back. So two holders on
//! one journal do not restore each other's away, in whichever order they end.
//!
//! Three parties restore: the holder itself at its end; a *watcher*, a process that sleeps on the
//! holder's lock ([`watch`]); and, if both were killed, whoever uses leases next ([`Leases::reap`]).
//!
//! A value that somebody else has written meanwhile is theirs, and is left alone.
//!
//! Below `/run/luc/kernel/`: `lock`, held while the record is changed; `record.json`; `holders/ID`.

mod holder;
mod record;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

pub use holder::Holder;
use record::Record;

use crate::journal::Journal;
use crate::setting::Settings;
use crate::{Error, Machine, Module};

/// Where leases are kept.
const DIRECTORY: &str = "/run/luc/kernel";

/// All leases of a machine.
#[derive(Clone, Debug)]
pub struct Leases {
    machine: Machine,
    dir: PathBuf,
}

/// The same, while nobody else may change them.
#[derive(Debug)]
pub(crate) struct Locked<'l> {
    leases: &'l Leases,
    _lock: File,
}

impl Leases {
    /// The leases of `machine`.
    pub fn of(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            dir: machine.path(DIRECTORY),
        }
    }

    /// Restores what holders that are gone have left. Does nothing, and says nothing, for a user who may
    /// not.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotTaken`]; the record then keeps what is to be restored.
    pub fn reap(&self) -> Result<(), Error> {
        if !self.dir.join(record::NAME).exists() {
            return Ok(());
        }
        let locked = match self.lock() {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(());
            }
            locked => locked?,
        };
        locked.change(|_, record| {
            record.retain_holders(|id| self.is_alive(id));
            Ok(())
        })
    }

    /// The processes that hold leases, and on what: `luc run (process 4711) on loop0-8`.
    pub fn holders(&self) -> Vec<String> {
        Record::read(&self.dir)
            .unwrap_or_default()
            .holders()
            .into_iter()
            .filter(|(id, _)| self.is_alive(id))
            .map(|(id, journals)| {
                let process = id.split('-').next().unwrap_or_default();
                format!("luc run (process {process}) on {}", journals.join(", "))
            })
            .collect()
    }

    /// What living holders want of a journal, the latest last.
    pub fn of_journal(&self, journal: &Journal) -> Vec<Settings> {
        Record::read(&self.dir)
            .unwrap_or_default()
            .wishes(&journal.name)
            .into_iter()
            .filter(|(id, _)| self.is_alive(id))
            .map(|(_, settings)| settings)
            .collect()
    }

    pub(crate) fn lock(&self) -> Result<Locked<'_>, Error> {
        let make = |dir: &PathBuf| {
            DirBuilder::new()
                .mode(0o755)
                .recursive(true)
                .create(dir)
                .map_err(Error::io("make", dir))
        };
        make(&self.holders_dir())?;
        let path = self.dir.join("lock");
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(Error::io("lock", &path))?;
        Ok(Locked {
            leases: self,
            _lock: lock,
        })
    }

    fn holders_dir(&self) -> PathBuf {
        self.dir.join("holders")
    }

    fn is_alive(&self, id: &str) -> bool {
        let Ok(file) = File::open(self.holders_dir().join(id)) else {
            return false;
        };
        flock(&file, FlockOperation::NonBlockingLockShared).is_err()
    }
}

impl Locked<'_> {
    /// Changes the record, and the module's settings to what it says then.
    ///
    /// The record is written before the settings, with what they may be, so that a kill at any moment
    /// leaves nothing that cannot be restored.
    fn change(
        &self,
        change: impl FnOnce(Option<&Module>, &mut Record) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let dir = &self.leases.dir;
        let mut record = Record::read(dir)?;
        let module = Module::open(&self.leases.machine).ok();
        change(module.as_ref(), &mut record)?;
        record.forget_gone(module.as_ref());
        record.write(dir)?;
        let outcome = record.apply(module.as_ref());
        record.write(dir)?;
        self.remove_dead();
        outcome
    }

    /// Makes `settings`, just written to `journals`, what is restored later, whatever holders wanted.
    pub(crate) fn rebase(&self, journals: &[Journal], settings: &Settings) -> Result<(), Error> {
        self.change(|_, record| {
            for journal in journals {
                record.rebase(&journal.name, settings);
            }
            Ok(())
        })
    }

    /// Removes the files of holders that ended; nobody can be about to lock one, since that takes our lock.
    fn remove_dead(&self) {
        let Ok(entries) = fs::read_dir(self.leases.holders_dir()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !self.leases.is_alive(&name.to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Sleeps until the holder `id` has ended, then restores what it has left.
///
/// # Errors
///
/// As [`Leases::reap`].
pub fn watch(machine: &Machine, id: &str) -> Result<(), Error> {
    let leases = Leases::of(machine);
    if let Ok(file) = File::open(leases.holders_dir().join(id)) {
        // Interrupted by a signal, it is tried again; any other failure is no reason not to restore.
        while flock(&file, FlockOperation::LockShared) == Err(rustix::io::Errno::INTR) {}
        // Ours must not count as the holder's.
        drop(file);
    }
    leases.reap()
}
