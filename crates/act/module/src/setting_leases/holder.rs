//! A process that lends settings.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use std::os::unix::process::CommandExt as _;

use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};

use super::{SettingLeases, open_own};
use crate::journal_setting::JournalSettings;
use crate::module_sysfs::ModuleJournal;
use crate::{Error, write_settings};

/// This process, as one that lends settings until it is dropped or killed.
#[derive(Debug)]
pub struct LeaseHolder {
    leases: SettingLeases,
    id: String,
    path: PathBuf,
    /// Locked; the lock ends with the process.
    file: Option<File>,
    watcher: Option<Child>,
}

impl LeaseHolder {
    /// Begins to hold; nothing is lent yet. `watcher` starts a watcher for the holder's name, for the case that this
    /// process is killed.
    ///
    /// # Errors
    /// [`Error::Io`]: the user may not lend settings, or the watcher does not start.
    pub fn new(
        leases: &SettingLeases,
        watcher: impl FnOnce(&str) -> Command,
    ) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{count}", std::process::id());
        let path = leases.holders_dir().join(&id);
        let locked = leases.lock()?;
        // Also what an earlier process of our number has left.
        locked.change(|_, record| {
            record.retain_holders(|other| other != id && leases.is_alive(other));
            Ok(())
        })?;
        let file = open_own(&path)?;
        flock(&file, FlockOperation::LockExclusive).map_err(Error::io("lock", &path))?;
        drop(locked);
        let mut holder = Self { leases: leases.clone(), watcher: None, file: Some(file), path, id };
        holder.watcher = Some(start(watcher(&holder.id))?);
        Ok(holder)
    }

    /// Lends `settings` to `journal`: writes them, and notes the values to restore.
    ///
    /// # Errors
    /// [`Error::NotRoot`], [`Error::Io`], [`Error::NotTaken`]; nothing is lent then.
    pub fn lend(&self, journal: &ModuleJournal, settings: &JournalSettings) -> Result<(), Error> {
        write_settings::check_writable(std::slice::from_ref(journal))?;
        let locked = self.leases.lock()?;
        let alive = |id: &str| self.leases.is_alive(id);
        let lent = locked.change(|_, record| {
            record.retain_holders(alive);
            record.add(journal, &self.id, settings)
        });
        if lent.is_err() {
            locked.change(|_, record| {
                record.retain_holders(|id| id != self.id);
                Ok(())
            })?;
        }
        lent
    }

    /// Restores the lent settings, unless others still hold them.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotTaken`]; the watcher tries again.
    pub fn end(mut self) -> Result<(), Error> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), Error> {
        if self.file.is_none() {
            return Ok(());
        }
        let restored = self.leases.lock().and_then(|locked| {
            locked.change(|_, record| {
                record.retain_holders(|id| id != self.id && self.leases.is_alive(id));
                Ok(())
            })
        });
        let _ = fs::remove_file(&self.path);
        self.file = None;
        if let Some(mut watcher) = self.watcher.take() {
            // It wakes up when the lock goes; were it not waited for, it would stay a zombie.
            let _ = watcher.wait();
        }
        restored
    }
}

impl Drop for LeaseHolder {
    fn drop(&mut self) {
        // An error here has nobody to be told; the record stays for the next luc.
        let _ = self.restore();
    }
}

/// Signals of `killall luc`, a service's stop, a logout and a closed terminal, which also reach the watcher.
const IGNORED_SIGNALS: [libc::c_int; 5] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE];

/// Starts the watcher in a process group of its own: neither signals to this process' group nor those to every luc end
/// it. It ends by itself, after the holder.
fn start(mut command: Command) -> Result<Child, Error> {
    let program = Path::new(command.get_program()).to_owned();
    // Before the program is there: signals that are ignored stay so over exec.
    let ignore = || {
        for signal in IGNORED_SIGNALS {
            // SAFETY: SIG_IGN is no handler; signal(2) is async-signal-safe.
            if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only signal(2) is called, which is async-signal-safe.
    unsafe { command.pre_exec(ignore) };
    command
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Error::io("start", program))
}
