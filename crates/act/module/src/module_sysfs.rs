//! The module's files in sysfs: `/sys/kernel/luc/`.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;
use rustix::fs::{Access, access};

use crate::journal_setting::{JournalSettings, SettingKey};
use crate::journal_stats::JournalStats;
use crate::{BlockDeviceNumber, Error, INTERFACE, MachinePaths};

/// The module's folder in sysfs.
const DIRECTORY: &str = "/sys/kernel/luc";

/// The loaded `luc.ko`, by its files in sysfs.
#[derive(Clone, Debug)]
pub struct LucModule {
    pub version: String,
    /// Whether the kernel's type information has vouched for jbd2's structures.
    pub is_layout_checked: bool,
    /// Whether the running kernel is one that the module has been tested on.
    pub is_kernel_tested: bool,
    dir: PathBuf,
}

/// A journal's folder below `/sys/kernel/luc`.
#[derive(Clone, Debug)]
pub struct ModuleJournal {
    /// jbd2's name of it, `loop0-8`.
    pub name: String,
    pub device: BlockDeviceNumber,
    dir: PathBuf,
}

impl LucModule {
    /// Finds the loaded module.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; [`Error::Interface`] if it is of another time.
    pub fn open(machine: &MachinePaths) -> Result<Self, Error> {
        let version = Self::loaded_version(machine).ok_or(Error::NotLoaded)?;
        let found = machine.text(Path::new(DIRECTORY).join("interface")).unwrap_or_default();
        if found.parse() != Ok(INTERFACE) {
            return Err(Error::Interface { found });
        }
        let says = |name: &str, word: &str| {
            let text = machine.text(Path::new(DIRECTORY).join(name));
            text.as_deref() == Some(word)
        };
        Ok(Self {
            version,
            is_layout_checked: says("layout", "checked"),
            is_kernel_tested: says("kernel", "tested"),
            dir: machine.path(DIRECTORY),
        })
    }

    /// The loaded module's version, whatever its interface; `None` if none is loaded.
    pub fn loaded_version(machine: &MachinePaths) -> Option<String> {
        machine.text(Path::new(DIRECTORY).join("version"))
    }

    /// All journals, by name.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be read; a journal that goes away meanwhile is no error.
    pub fn journals(&self) -> Result<Vec<ModuleJournal>, Error> {
        let entries = fs::read_dir(&self.dir).map_err(Error::io("list", &self.dir))?;
        let mut journals: Vec<ModuleJournal> =
            entries.flatten().filter_map(|entry| ModuleJournal::at(entry.path())).collect();
        journals.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(journals)
    }

    /// The journal of this name, if it is there.
    pub fn journal(&self, name: &str) -> Option<ModuleJournal> {
        let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        plain.then(|| ModuleJournal::at(self.dir.join(name)))?
    }

    /// The journal of a file system's device.
    pub fn journal_of(&self, device: BlockDeviceNumber) -> Option<ModuleJournal> {
        let mut journals = self.journals().ok()?.into_iter();
        journals.find(|journal| journal.device == device)
    }

    /// Finds the journal that a user means: by a path in its file system, its device, or its own name.
    ///
    /// # Errors
    /// [`Error::NoSuchPlace`], [`Error::NoJournalThere`].
    pub fn find(&self, place: &str) -> Result<ModuleJournal, Error> {
        let device = match (fs::metadata(place), place.parse()) {
            (Ok(found), _) if found.file_type().is_block_device() => {
                BlockDeviceNumber::from_raw(found.rdev())
            }
            (Ok(found), _) => BlockDeviceNumber::from_raw(found.dev()),
            (Err(_), Ok(device)) => device,
            (Err(source), Err(())) => {
                return self
                    .journal(place)
                    .ok_or_else(|| Error::NoSuchPlace { place: place.to_owned(), source });
            }
        };
        self.journal_of(device).ok_or_else(|| Error::NoJournalThere {
            place: place.to_owned(),
            device: device.to_string(),
        })
    }
}

impl ModuleJournal {
    /// The journal with its files in `dir`; `None` if it is none.
    fn at(dir: PathBuf) -> Option<Self> {
        let device = fs::read_to_string(dir.join("device")).ok()?;
        Some(Self {
            name: dir.file_name()?.to_str()?.to_owned(),
            device: device.trim().parse().ok()?,
            dir,
        })
    }

    /// Its figures now; `None` for users other than root, who may not read them.
    ///
    /// # Errors
    /// [`Error::Io`], also if the file system has been unmounted.
    pub fn stats(&self) -> Result<Option<JournalStats>, Error> {
        match JournalStats::read(&self.dir.join("stats")) {
            Err(error) if error.is_denied() => Ok(None),
            stats => stats.map(Some),
        }
    }

    /// All its settings now.
    ///
    /// # Errors
    /// [`Error::Io`], also if the file system has been unmounted.
    pub fn settings(&self) -> Result<JournalSettings, Error> {
        let values: Result<Vec<_>, Error> =
            SettingKey::ALL.into_iter().map(|key| Ok((key, self.read(key)?))).collect();
        Ok(JournalSettings::from_module(values?))
    }

    /// A setting now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read(&self, key: SettingKey) -> Result<String, Error> {
        let path = self.dir.join(key.name());
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        Ok(text.trim().to_owned())
    }

    /// Whether this user may change its settings.
    pub fn is_writable(&self) -> bool {
        access(self.dir.join(SettingKey::Policy.name()), Access::WRITE_OK).is_ok()
    }

    /// Number that distinguishes this journal from an earlier one of its name: sysfs never uses a number twice.
    pub(crate) fn generation(&self) -> u64 {
        fs::metadata(&self.dir).map_or(0, |found| found.ino())
    }

    /// Writes a setting in one piece, as sysfs demands.
    pub(crate) fn write(&self, key: SettingKey, value: &str) -> io::Result<()> {
        // Never made: a file that is not there is a journal that is gone.
        let mut file =
            fs::OpenOptions::new().write(true).truncate(true).open(self.dir.join(key.name()))?;
        io::Write::write_all(&mut file, format!("{value}\n").as_bytes())
    }
}
