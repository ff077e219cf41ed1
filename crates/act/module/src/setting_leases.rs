//! Settings that last as long as a process: the settings that a run changes are restored after it, however it ends.
//!
//! A *holder* is a process that lends settings of journals. It holds a lock on a file of its own. The kernel releases
//! the lock when the process ends, also by SIGKILL. A *record* keeps for each journal the settings before the first
//! holder came, and the wish of each holder. The module gets the latest holder's wish, and when the last holder has
//! gone, the settings from before. So two holders of one journal do not undo each other's settings, in whichever
//! order they end.
//!
//! Three parties restore: the holder itself at its end; a *watcher*, a process that sleeps on the
//! holder's lock ([`watch`]) and ignores the signals that end programs; and, if both were killed, the next
//! luc, whatever it does ([`restore_abandoned`]).
//!
//! A value that somebody else has written meanwhile is theirs, and is left alone.
//!
//! Below `/run/luc/kernel/`: `lock`, held while the record is changed; `record.json`; `holders/ID`. Only their owner
//! opens them: whoever can open a file can lock it, and so keep all others waiting.

mod holder;
mod record;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};

pub use holder::LeaseHolder;
use record::LeaseRecord;

use crate::journal_setting::JournalSettings;
use crate::module_sysfs::ModuleJournal;
use crate::{Error, LucModule, MachinePaths};

/// Folder of the leases.
const DIRECTORY: &str = "/run/luc/kernel";

/// Settings of journals that processes of this machine have borrowed.
#[derive(Clone, Debug)]
pub struct SettingLeases {
    machine: MachinePaths,
    dir: PathBuf,
}

/// All leases of a machine, locked: nobody else can change them meanwhile.
#[derive(Debug)]
pub(crate) struct LockedLeases<'l> {
    leases: &'l SettingLeases,
    _lock: File,
}

impl SettingLeases {
    pub fn of(machine: &MachinePaths) -> Self {
        Self { machine: machine.clone(), dir: machine.path(DIRECTORY) }
    }

    /// Restores the settings that dead holders have left, and returns the number of journals. Does nothing for a user
    /// who may not. Without a record it costs one look at a folder; nothing is locked unless there is something to
    /// restore.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotTaken`]; the record then keeps the settings to restore.
    pub fn reap(&self) -> Result<usize, Error> {
        // A holder that was killed before it lent anything has left its file, and no record.
        let has_dead = || self.dead_holders().next().is_some();
        let is_abandoned = |record: &LeaseRecord| record.count_abandoned(|id| self.is_alive(id));
        // No record either when /run/luc/kernel may not be entered.
        if !self.dir.join(record::FILE_NAME).exists() {
            if !has_dead() {
                return Ok(0);
            }
        } else {
            match LeaseRecord::read(&self.dir) {
                Ok(record) if is_abandoned(&record) == 0 && !has_dead() => return Ok(0),
                Err(error) if error.is_denied() => return Ok(0),
                _ => {}
            }
        }
        let locked = match self.lock() {
            Err(error) if error.is_denied() => return Ok(0),
            locked => locked?,
        };
        let mut abandoned = 0;
        locked.change(|_, record| {
            abandoned = is_abandoned(record);
            record.retain_holders(|id| self.is_alive(id));
            Ok(())
        })?;
        Ok(abandoned)
    }

    /// The processes that hold leases, with their journals: `luc run (process 4711) on loop0-8`.
    pub fn holders(&self) -> Vec<String> {
        LeaseRecord::read(&self.dir)
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

    /// Wishes of living holders of a journal, the latest last.
    pub fn of_journal(&self, journal: &ModuleJournal) -> Vec<JournalSettings> {
        LeaseRecord::read(&self.dir)
            .unwrap_or_default()
            .wishes(&journal.name)
            .into_iter()
            .filter(|(id, _)| self.is_alive(id))
            .map(|(_, settings)| settings)
            .collect()
    }

    pub(crate) fn lock(&self) -> Result<LockedLeases<'_>, Error> {
        let holders = self.holders_dir();
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&holders)
            .map_err(Error::io("make", &holders))?;
        for dir in [&self.dir, &holders] {
            close(dir, 0o700)?;
        }
        let path = self.dir.join("lock");
        let lock = open_own(&path)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(Error::io("lock", &path))?;
        Ok(LockedLeases { leases: self, _lock: lock })
    }

    fn holders_dir(&self) -> PathBuf {
        self.dir.join("holders")
    }

    fn dead_holders(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.holders_dir()).into_iter().flatten().flatten();
        entries
            .filter(|entry| !self.is_alive(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
    }

    fn is_alive(&self, id: &str) -> bool {
        match File::open(self.holders_dir().join(id)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
            // Who may not look knows nothing, and takes nothing away from anybody.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

impl LockedLeases<'_> {
    /// Changes the record, and then the module's settings to match it.
    ///
    /// The record is written before the settings, with the values that they may get. So a kill at any moment leaves
    /// nothing that cannot be restored.
    fn change(
        &self,
        change: impl FnOnce(Option<&LucModule>, &mut LeaseRecord) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let dir = &self.leases.dir;
        let mut record = LeaseRecord::read(dir)?;
        let module = LucModule::open(&self.leases.machine).ok();
        change(module.as_ref(), &mut record)?;
        record.forget_gone(module.as_ref());
        record.write(dir)?;
        let outcome = record.apply(module.as_ref());
        record.write(dir)?;
        self.remove_dead();
        outcome
    }

    /// Makes `settings`, just written to `journals`, the ones that are restored later, whatever the holders' wishes.
    pub(crate) fn rebase(
        &self,
        journals: &[ModuleJournal],
        settings: &JournalSettings,
    ) -> Result<(), Error> {
        self.change(|_, record| {
            for journal in journals {
                record.rebase(&journal.name, settings);
            }
            Ok(())
        })
    }

    /// Removes the files of holders that ended; nobody can be about to lock one, since that takes our lock.
    fn remove_dead(&self) {
        for path in self.leases.dead_holders() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Opens a file of the leases, which is made if it is missing, for nobody but its owner.
fn open_own(path: &Path) -> Result<File, Error> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(Error::io("open", path))?;
    close(path, 0o600)?;
    Ok(file)
}

/// Removes everybody else's access, which an earlier luc may have given.
fn close(path: &Path, mode: u32) -> Result<(), Error> {
    let found = fs::metadata(path).map_err(Error::io("read", path))?;
    if found.mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::io("close", path))
}

/// Restores the settings that runs that were killed with their watchers have left in the module. Returns the number of
/// journals. Meant for the start of every command: it costs a stat(2) when nothing is lent, and reads two small files
/// when something is. For users other than root it does nothing.
///
/// # Errors
/// Those of [`SettingLeases::reap`].
pub fn restore_abandoned() -> Result<usize, Error> {
    SettingLeases::of(&MachinePaths::from_environment()).reap()
}

/// Sleeps until the holder `id` has ended, then restores the settings that it has left.
///
/// # Errors
/// Those of [`SettingLeases::reap`].
pub fn watch(machine: &MachinePaths, id: &str) -> Result<(), Error> {
    let leases = SettingLeases::of(machine);
    if let Ok(file) = File::open(leases.holders_dir().join(id)) {
        // Interrupted by a signal, it is tried again; any other failure is no reason not to restore.
        while flock(&file, FlockOperation::LockShared) == Err(rustix::io::Errno::INTR) {}
        // Ours must not count as the holder's.
        drop(file);
    }
    leases.reap()?;
    Ok(())
}
