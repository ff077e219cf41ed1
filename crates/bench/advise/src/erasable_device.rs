//! A block device of the user, and checks that files fit on it.

use std::path::PathBuf;

use super::candidates::{NotTried, that_fit};
use super::error::AdviseError;
use luc_sweep::{DeviceDescription, SweepError, SweepTarget, shown_size};

/// Options of the user for a device whose content may go.
#[derive(Debug, Clone)]
pub struct ErasableDevice {
    pub path: PathBuf,
    /// The same again, as a promise that it may be formatted.
    pub erase: Option<PathBuf>,
    /// Whether that also holds for file systems and the like that are on it.
    pub overwrite: bool,
    pub sysfs: PathBuf,
}

impl ErasableDevice {
    /// Describes it, after checks that it is named twice and that files of `bytes` fit on it. The sweep checks that it
    /// may be formatted.
    pub(super) fn about(&self, bytes: f64) -> Result<DeviceDescription, AdviseError> {
        let shown = self.path.display();
        let refuse = |reason: String| Err(AdviseError::Option(format!("--device {shown}{reason}")));
        if !self.path.is_absolute() {
            return refuse(": write its absolute path, as /dev/sdb".to_owned());
        }
        match &self.erase {
            None => {
                return refuse(format!(
                    " would be formatted: give --erase {shown} as well if all on it may go"
                ));
            }
            Some(erase) if *erase != self.path => {
                return refuse(format!(
                    " and --erase {}: what is formatted is named twice, by the same path",
                    erase.display()
                ));
            }
            Some(_) => {}
        }
        let about = DeviceDescription::of(&self.path, &self.sysfs).map_err(SweepError::from)?;
        if bytes > about.size_bytes as f64 * 0.9 {
            return refuse(format!(
                ": the workload's files take {} when all exist, and it has {}: make them fewer or smaller (--set), or \
                 name a larger one",
                shown_size(bytes as u64),
                shown_size(about.size_bytes)
            ));
        }
        Ok(about)
    }

    /// Moves targets there; those that it is too small for go to `not_tried`.
    pub(super) fn take(
        &self,
        targets: Vec<SweepTarget>,
        about: &DeviceDescription,
        not_tried: &mut Vec<NotTried>,
    ) -> Result<Vec<SweepTarget>, AdviseError> {
        let mut taken = that_fit(targets, about.size_bytes, not_tried);
        for target in &mut taken {
            target.device = Some(self.path.clone());
            target.erase.clone_from(&self.erase);
            target.overwrite = self.overwrite;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> ErasableDevice {
        ErasableDevice {
            path: "/dev/null".into(),
            erase: Some("/dev/null".into()),
            overwrite: true,
            sysfs: "/sys".into(),
        }
    }

    fn about(size_bytes: u64) -> DeviceDescription {
        DeviceDescription {
            path: "/dev/null".into(),
            model: None,
            size_bytes,
            partition_of: None,
            rotational: None,
            write_cache: None,
            scheduler: None,
        }
    }

    fn target(fs: &str) -> SweepTarget {
        SweepTarget { name: fs.to_owned(), fs: Some(fs.to_owned()), ..SweepTarget::default() }
    }

    #[test]
    fn it_is_named_twice_and_wholly() {
        let wrong = [
            (ErasableDevice { erase: None, ..device() }, "give --erase /dev/null as well"),
            (
                ErasableDevice { erase: Some("/dev/zero".into()), ..device() },
                "--erase /dev/zero: what is formatted",
            ),
            (ErasableDevice { path: "null".into(), ..device() }, "absolute path"),
            (device(), "no block device"),
        ];
        for (device, words) in wrong {
            let said = device.about(1e6).expect_err("refused").to_string();
            assert!(said.contains(words) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn what_it_is_too_small_for_is_listed_once() {
        let targets: Vec<SweepTarget> = ["ext4", "xfs", "ext4", "xfs"].map(target).into();
        let mut not_tried = Vec::new();
        let taken = device().take(targets.clone(), &about(200 << 20), &mut not_tried);
        let taken = taken.expect("sizes are right");
        assert_eq!(taken.len(), 2);
        for target in &taken {
            assert_eq!(target.fs.as_deref(), Some("ext4"));
            assert_eq!(target.device, target.erase);
            assert!(target.overwrite && target.device.is_some());
        }
        assert_eq!(not_tried.len(), 1);
        assert_eq!(not_tried[0].what, "xfs");
        assert!(not_tried[0].why.contains("300M") && not_tried[0].why.contains("200 MiB"));
        let all = device().take(targets.clone(), &about(1 << 40), &mut Vec::new());
        assert_eq!(all.expect("sizes are right").len(), targets.len());
    }
}
