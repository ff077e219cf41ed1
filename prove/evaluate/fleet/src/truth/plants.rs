//! Planted troubles, with the options of the twin.

use std::ffi::OsString;
use std::path::Path;

use luc_twin_truth::Kind;

/// Options of every run. Later options take precedence.
const COMMON_OPTIONS: &str = "--documents 2000 --clients 4 --requests 100";

/// Placeholder in a plant's options for a directory on a disk.
const DIRECTORY: &str = "DIR";

/// A trouble, or a way to hand requests over.
#[derive(Debug)]
pub(super) struct Plant {
    pub(super) name: &'static str,
    /// Kind of the trouble; `None` if only the hand-over is looked at.
    pub(super) kind: Option<Kind>,
    /// Options of `luc-twin run`, with [`DIRECTORY`].
    words: &'static str,
}

#[rustfmt::skip]
pub(super) const PLANTS: [Plant; 16] = [
    plant("cpu", Some(Kind::Cpu), "--plant cpu"),
    plant("disk", Some(Kind::Disk), "--plant disk:DIR"),
    plant("journal", Some(Kind::Journal), "--plant journal:DIR"),
    plant("lock", Some(Kind::Lock), "--plant lock"),
    plant("pool", Some(Kind::Pool), "--plant pool --delay-us 3000 --think-us 0"),
    plant("larger", Some(Kind::Larger), "--plant larger --documents 40000"),
    plant("tick", Some(Kind::Tick), "--plant tick"),
    plant("quota", Some(Kind::Quota), "--plant quota"),
    plant("loss", Some(Kind::Loss), "--plant loss"),
    plant("share", Some(Kind::Share), "--plant share --delay-us 3000 --think-us 0"),
    plant("stop", Some(Kind::Stop), "--plant stop"),
    plant("rate", Some(Kind::Rate), "--plant rate"),
    plant("writer", Some(Kind::Writer), "--plant writer:DIR"),
    plant("hand-over: pool:2", None, "--serve pool:2 --delay-us 1000"),
    plant("hand-over: pool:2:worker", None, "--serve pool:2:worker --delay-us 1000"),
    plant("hand-over: shared:4", None, "--serve shared:4 --delay-us 1000"),
];

const fn plant(name: &'static str, kind: Option<Kind>, words: &'static str) -> Plant {
    Plant { name, kind, words }
}

impl Plant {
    /// Returns the options of a run.
    pub(super) fn words(&self, seed: u64, directory: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["--seed".into(), seed.to_string().into()];
        let own: Vec<&str> = self.words.split_whitespace().collect();
        let mut always = COMMON_OPTIONS.split_whitespace();
        while let (Some(name), Some(value)) = (always.next(), always.next()) {
            if !own.contains(&name) {
                words.extend([name.into(), value.into()]);
            }
        }
        let directory = directory.display().to_string();
        words.extend(own.iter().map(|word| word.replace(DIRECTORY, &directory).into()));
        words
    }

    /// Whether its trouble is one of a disk.
    pub(super) fn needs_disk(&self) -> bool {
        self.words.contains(DIRECTORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_planted_and_options_come_once() {
        for kind in Kind::ALL {
            let plants = PLANTS.iter().filter(|plant| plant.kind == Some(kind));
            assert_eq!(plants.count(), 1, "{kind:?}");
        }
        let larger = PLANTS.iter().find(|plant| plant.name == "larger");
        let words = larger.expect("planted").words(7, Path::new("/x"));
        let documents = words.iter().filter(|word| *word == "--documents");
        assert_eq!(documents.count(), 1);
        assert!(words.contains(&"40000".into()) && !words.contains(&"2000".into()));
        let disk = PLANTS.iter().find(|plant| plant.name == "disk");
        let words = disk.expect("planted").words(7, Path::new("/x"));
        assert!(words.contains(&"disk:/x".into()), "{words:?}");
        let disks = PLANTS.iter().filter(|plant| plant.needs_disk());
        assert_eq!(disks.count(), 3);
    }
}
