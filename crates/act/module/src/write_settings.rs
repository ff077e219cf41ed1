//! Writes settings to journals: all of them, or none.

use crate::journal_setting::{JournalSettings, SettingKey};
use crate::module_sysfs::ModuleJournal;
use crate::setting_leases::SettingLeases;
use crate::{Error, MachinePaths};

/// Writes `settings` to all `journals`. They also replace the settings that a lease would restore later: the user has
/// the last word.
///
/// # Errors
/// [`Error::NotRoot`], [`Error::NoJournals`], [`Error::Io`], [`Error::NotTaken`]; every setting is as it was
/// then.
pub fn set(
    machine: &MachinePaths,
    journals: &[ModuleJournal],
    settings: &JournalSettings,
) -> Result<(), Error> {
    if journals.is_empty() {
        return Err(Error::NoJournals);
    }
    check_writable(journals)?;
    let leases = SettingLeases::of(machine);
    let locked = leases.lock()?;
    write_all(journals, settings)?;
    locked.rebase(journals, settings)
}

/// Whether this user may change all of `journals`.
pub(crate) fn check_writable(journals: &[ModuleJournal]) -> Result<(), Error> {
    match journals.iter().find(|journal| !journal.is_writable()) {
        None => Ok(()),
        Some(journal) => {
            Err(Error::NotRoot { what: format!("change settings of {}", journal.name) })
        }
    }
}

fn write_all(journals: &[ModuleJournal], settings: &JournalSettings) -> Result<(), Error> {
    let mut before: Vec<(&ModuleJournal, SettingKey, String)> = Vec::new();
    for journal in journals {
        for (key, _) in settings.iter() {
            before.push((journal, key, journal.read(key)?));
        }
    }
    for (index, (journal, key, _)) in before.iter().enumerate() {
        let value = settings.get(*key).unwrap_or_default();
        if let Err(source) = journal.write(*key, value) {
            for (journal, key, value) in before[..index].iter().rev() {
                // The module had this value a moment ago; if the journal has gone, so has the setting.
                let _ = journal.write(*key, value);
            }
            return Err(Error::NotTaken {
                journal: journal.name.clone(),
                key: key.name(),
                value: value.to_owned(),
                source,
            });
        }
    }
    Ok(())
}
