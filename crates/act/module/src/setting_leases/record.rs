//! The record of lent settings and of those to restore: `record.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::journal_setting::{JournalSettings, SettingKey};
use crate::module_sysfs::{LucModule, ModuleJournal};

pub(super) const FILE_NAME: &str = "record.json";

/// All journals whose settings are lent, by name.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct LeaseRecord(BTreeMap<String, Lent>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lent {
    /// Number that distinguishes the journal from a later one of the same name.
    generation: u64,
    /// The settings before the first was lent.
    before: JournalSettings,
    /// Values that LUC may have written. Any other value is another writer's.
    written: BTreeMap<SettingKey, Vec<String>>,
    /// The holders, the latest last.
    holders: Vec<Wish>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Wish {
    holder: String,
    settings: JournalSettings,
}

impl LeaseRecord {
    /// Reads the record; without a file nothing is lent.
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE_NAME);
        match fs::read(&path) {
            // A file that was damaged is of no use to anybody, and the next one replaces it.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    /// Writes the record in one step, or removes the file if nothing is lent.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(FILE_NAME);
        if self.0.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(Error::io("remove", path)(error))
                }
                _ => Ok(()),
            };
        }
        let new = dir.join("record.new");
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let write = |text: Vec<u8>| {
            let mut options = fs::File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            io::Write::write_all(&mut options.open(&new)?, &text)
        };
        text.and_then(write)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(Error::io("write", path))
    }

    /// Notes a holder's wish, and the journal's settings if it is the first to touch them.
    pub(super) fn add(
        &mut self,
        journal: &ModuleJournal,
        holder: &str,
        settings: &JournalSettings,
    ) -> Result<(), Error> {
        let generation = journal.generation();
        if self.0.get(&journal.name).is_some_and(|lent| lent.generation != generation) {
            self.0.remove(&journal.name);
        }
        let lent = self.0.entry(journal.name.clone()).or_insert_with(|| Lent {
            generation,
            before: JournalSettings::default(),
            written: BTreeMap::new(),
            holders: Vec::new(),
        });
        for (key, _) in settings.iter() {
            if lent.before.get(key).is_none() {
                let value = journal.read(key)?;
                lent.before.put(key, value);
            }
        }
        lent.holders.retain(|wish| wish.holder != holder);
        lent.holders.push(Wish { holder: holder.to_owned(), settings: settings.clone() });
        lent.note_wanted();
        Ok(())
    }

    /// Drops the wishes of holders that do not `stay`.
    pub(super) fn retain_holders(&mut self, stay: impl Fn(&str) -> bool) {
        for lent in self.0.values_mut() {
            lent.holders.retain(|wish| stay(&wish.holder));
            lent.note_wanted();
        }
    }

    /// Drops journals that are gone, with the module or with their file system.
    pub(super) fn forget_gone(&mut self, module: Option<&LucModule>) {
        self.0.retain(|name, lent| {
            module
                .and_then(|module| module.journal(name))
                .is_some_and(|journal| journal.generation() == lent.generation)
        });
    }

    /// Forgets settings that a user has written: nobody restores them.
    pub(super) fn rebase(&mut self, journal: &str, settings: &JournalSettings) {
        let Some(lent) = self.0.get_mut(journal) else {
            return;
        };
        for (key, _) in settings.iter() {
            lent.give_up(key);
        }
    }

    /// Writes the settings of the record to the module, and drops those that are restored.
    ///
    /// Returns the first error, after everything has been tried.
    pub(super) fn apply(&mut self, module: Option<&LucModule>) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (name, lent) in &mut self.0 {
            if let Some(journal) = module.and_then(|module| module.journal(name)) {
                outcome = outcome.and(lent.apply(&journal));
            }
        }
        self.0.retain(|_, lent| !(lent.before.is_empty() && lent.holders.is_empty()));
        outcome
    }

    /// All holders with the journals that they hold.
    pub(super) fn holders(&self) -> BTreeMap<String, Vec<String>> {
        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, lent) in &self.0 {
            for wish in &lent.holders {
                holders.entry(wish.holder.clone()).or_default().push(name.clone());
            }
        }
        holders
    }

    /// Number of journals that have a dead holder, or none.
    pub(super) fn count_abandoned(&self, is_alive: impl Fn(&str) -> bool) -> usize {
        let is_abandoned = |lent: &&Lent| {
            lent.holders.is_empty() || lent.holders.iter().any(|wish| !is_alive(&wish.holder))
        };
        self.0.values().filter(is_abandoned).count()
    }

    /// The wishes of a journal's holders, the latest last.
    pub(super) fn wishes(&self, journal: &str) -> Vec<(String, JournalSettings)> {
        let wishes = self.0.get(journal).map(|lent| lent.holders.iter());
        wishes
            .into_iter()
            .flatten()
            .map(|wish| (wish.holder.clone(), wish.settings.clone()))
            .collect()
    }
}

impl Lent {
    /// The latest holder's wish, else the value from before.
    fn wanted(&self, key: SettingKey) -> Option<&str> {
        let wishes = self.holders.iter().rev();
        wishes.map(|wish| wish.settings.get(key)).find_map(|value| value).or(self.before.get(key))
    }

    fn is_held(&self, key: SettingKey) -> bool {
        let mut wishes = self.holders.iter();
        wishes.any(|wish| wish.settings.get(key).is_some())
    }

    /// Adds the wanted values to those that we may have written.
    fn note_wanted(&mut self) {
        let keys: Vec<SettingKey> = self.before.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(value) = self.wanted(key).map(str::to_owned) {
                let written = self.written.entry(key).or_default();
                if !written.contains(&value) {
                    written.push(value);
                }
            }
        }
    }

    fn apply(&mut self, journal: &ModuleJournal) -> Result<(), Error> {
        let mut outcome = Ok(());
        let keys: Vec<SettingKey> = self.before.iter().map(|(key, _)| key).collect();
        for key in keys {
            match self.apply_one(journal, key) {
                Ok(()) => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    fn apply_one(&mut self, journal: &ModuleJournal, key: SettingKey) -> Result<(), Error> {
        let current = journal.read(key)?;
        let wanted = self.wanted(key).unwrap_or_default().to_owned();
        let is_ours = self.before.get(key) == Some(current.as_str())
            || self.written.get(&key).is_some_and(|ours| ours.contains(&current));
        if !is_ours {
            self.give_up(key);
            return Ok(());
        }
        if current != wanted {
            journal.write(key, &wanted).map_err(|source| Error::NotTaken {
                journal: journal.name.clone(),
                key: key.name(),
                value: wanted.clone(),
                source,
            })?;
        }
        if self.is_held(key) {
            self.written.insert(key, vec![wanted]);
        } else {
            self.give_up(key);
        }
        Ok(())
    }

    /// Leaves the setting alone from now on.
    fn give_up(&mut self, key: SettingKey) {
        self.before.remove(key);
        self.written.remove(&key);
        for wish in &mut self.holders {
            wish.settings.remove(key);
        }
    }
}
