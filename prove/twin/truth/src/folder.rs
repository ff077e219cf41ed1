//! The files of a run.

use std::path::Path;

use super::file::{Truth, TruthError, read};
use super::row::{Answer, Message, Planted, Role, Row, Work};

/// The ending of the files' names.
const ENDING: &str = "jsonl";

/// All files that a run left.
#[derive(Debug, Clone, PartialEq)]
pub struct Folder {
    /// The processes, sorted by their hosts' names.
    pub processes: Vec<Truth>,
}

impl Folder {
    /// Reads all files of a folder that end in `.jsonl`.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn read(path: &Path) -> Result<Self, TruthError> {
        let system = |source| TruthError::File { path: path.to_owned(), source };
        let mut processes = Vec::new();
        for entry in path.read_dir().map_err(system)? {
            let file = entry.map_err(system)?.path();
            if file.extension().is_some_and(|ending| ending == ENDING) {
                processes.push(read(&file)?);
            }
        }
        processes.sort_by(|a, b| a.header.host.cmp(&b.header.host));
        Ok(Self { processes })
    }

    pub fn of(&self, role: Role) -> impl Iterator<Item = &Truth> {
        self.processes.iter().filter(move |process| process.header.role == role)
    }

    /// The planted troubles, each with its process.
    pub fn planted(&self) -> impl Iterator<Item = (&Truth, &Planted)> {
        self.processes.iter().flat_map(|process| {
            let planted = process.rows.iter().filter_map(|row| match row {
                Row::Planted(planted) => Some(planted),
                _ => None,
            });
            planted.map(move |planted| (process, planted))
        })
    }
}

impl Truth {
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.rows.iter().filter_map(|row| match row {
            Row::Message(message) => Some(message),
            _ => None,
        })
    }

    pub fn work(&self) -> impl Iterator<Item = &Work> {
        self.rows.iter().filter_map(|row| match row {
            Row::Work(work) => Some(work),
            _ => None,
        })
    }

    /// The answers that the process got.
    pub fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.rows.iter().filter_map(|row| match row {
            Row::Answer(answer) => Some(answer),
            _ => None,
        })
    }
}
