//! Checks that a target is consistent and possible on this machine.

use luc_disk::MkfsSpec;
use luc_units::format_size;

use super::check::check_policies;
use super::file_systems::FILE_SYSTEMS;
use super::{PlanDisk, SweepTarget};
use crate::error::SweepError;
use crate::guest_needs::guest_needs;
use luc_borrow::own_identity;
use luc_workload::name_suggestion::meant;

impl SweepTarget {
    pub(super) fn check(&self, disk: &PlanDisk) -> Result<(), SweepError> {
        let name = &self.name;
        let refuse = |reason: String| Err(SweepError::Plan(format!("target '{name}': {reason}")));
        if let Some(policy) = &self.policy {
            check_policies(&format!("target '{name}': policy"), policy)?;
        }
        self.check_device()?;
        if self.disk.is_some() && (disk.is_modelled() || !self.is_emulated()) {
            return refuse(
                "disk goes with fs on the emulated disk of model fixed: leave it out, or write disk.model = \"fixed\""
                    .to_owned(),
            );
        }
        match (&self.fs, &self.directory) {
            (Some(fs), None) => {
                let known = FILE_SYSTEMS.iter().find(|(name, _)| name == fs);
                let Some(&(_, least)) = known else {
                    let names = FILE_SYSTEMS.map(|(name, _)| name);
                    return refuse(format!("fs = \"{fs}\"{}", meant(fs, &names)));
                };
                let size = disk.with(self.disk.as_ref()).size;
                if self.device.is_none() && size.bytes() < least {
                    return refuse(format!(
                        "{fs} needs a disk of {} or more, and disk.size is {size}",
                        format_size(least)
                    ));
                }
                Ok(())
            }
            (None, Some(_)) if !self.mkfs.is_empty() || !self.mount.is_empty() => {
                refuse("mkfs and mount go with fs, not with a directory".to_owned())
            }
            (None, Some(directory)) if !directory.is_dir() || !directory.is_absolute() => {
                refuse(format!(
                    "{}: write the absolute path of an existing directory",
                    directory.display()
                ))
            }
            (None, Some(_)) => Ok(()),
            _ => refuse("write either fs or directory".to_owned()),
        }
    }

    /// Checks that the program that makes its file system is installed on the host, from where guests take it.
    pub(super) fn check_program(&self) -> Result<(), SweepError> {
        let fs = self.fs.clone().unwrap_or_default();
        let mkfs = MkfsSpec { fs: fs.clone(), options: String::new() };
        luc_disk::check_mkfs(&mkfs).map_err(|_| {
            SweepError::Plan(format!(
                "target '{}': mkfs.{fs} is not installed: install {}, or leave the target out",
                self.name,
                guest_needs(&fs).package
            ))
        })
    }

    /// Checks that a device is named twice, by its absolute path, with a file system; nothing else has its keys.
    fn check_device(&self) -> Result<(), SweepError> {
        let name = &self.name;
        let refuse = |reason: String| Err(SweepError::Plan(format!("target '{name}': {reason}")));
        let Some(device) = &self.device else {
            if self.erase.is_some() || self.overwrite {
                return refuse("erase and overwrite go with device".to_owned());
            }
            return Ok(());
        };
        let shown = device.display();
        if self.fs.is_none() || self.directory.is_some() {
            return refuse(format!(
                "device = \"{shown}\" goes with fs: write which one to make on it"
            ));
        }
        if !device.is_absolute() {
            return refuse(format!("device = \"{shown}\": write its absolute path, as /dev/sdb"));
        }
        let fs = self.fs.as_deref().unwrap_or_default();
        if let Some(word) = own_identity(fs, &self.mkfs) {
            return refuse(format!(
                "mkfs option \"{word}\" gives another UUID or none, and the sweep tells by its own what it may \
                 remove from a device: leave it out"
            ));
        }
        match &self.erase {
            Some(erase) if erase == device => Ok(()),
            Some(erase) => refuse(format!(
                "device = \"{shown}\", and erase = \"{}\": what is formatted is named twice, by the same path",
                erase.display()
            )),
            None => refuse(format!(
                "device = \"{shown}\" would be formatted: write erase = \"{shown}\" as well if all on it may go"
            )),
        }
    }
}
