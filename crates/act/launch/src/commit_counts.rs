//! Counts journal commits, from `/proc/fs/jbd2/DEVICE-INODE/info`.

use std::collections::BTreeMap;
use std::fs;

/// Number of commits of each journal since it was mounted, by the name of its device (`sda1`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitCounts(BTreeMap<String, u64>);

impl CommitCounts {
    /// Reads the counts now; journals that cannot be read are left out.
    pub fn read() -> Self {
        let Ok(journals) = fs::read_dir("/proc/fs/jbd2") else {
            return Self::default();
        };
        let counts = journals.filter_map(|journal| {
            let journal = journal.ok()?;
            let name = journal.file_name().into_string().ok()?;
            let (device, _inode) = name.rsplit_once('-')?;
            let info = fs::read_to_string(journal.path().join("info")).ok()?;
            Some((device.to_owned(), transactions(&info)?))
        });
        Self(counts.collect())
    }

    /// Commits of `device` since `earlier`; `None` if it has no journal that both readings saw.
    pub fn since(&self, earlier: &Self, device: &str) -> Option<u64> {
        self.0.get(device)?.checked_sub(*earlier.0.get(device)?)
    }
}

/// Parses the first number of `2056 transactions (2055 requested), each up to 5461 blocks`.
fn transactions(info: &str) -> Option<u64> {
    let (number, rest) = info.split_once(' ')?;
    rest.starts_with("transactions").then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_text_is_understood() {
        let info = "2056 transactions (2055 requested), each up to 5461 blocks\naverage: \n";
        assert_eq!(transactions(info), Some(2056));
        assert_eq!(transactions(""), None);
        assert_eq!(transactions("12 things"), None);
    }

    #[test]
    fn a_journal_that_came_or_went_is_not_counted() {
        let before = CommitCounts([("sda1".to_owned(), 10)].into());
        let after = CommitCounts([("sda1".to_owned(), 25), ("sdb1".to_owned(), 3)].into());
        assert_eq!(after.since(&before, "sda1"), Some(15));
        assert_eq!(after.since(&before, "sdb1"), None);
        assert_eq!(before.since(&after, "sda1"), None);
    }
}
