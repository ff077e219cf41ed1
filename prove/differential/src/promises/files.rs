//! The files of a program, with all their versions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Size of a cell, which is written at once and persisted whole.
pub(crate) const CELL_BYTES: usize = 512;

/// Number of cells that are mapped of a file.
pub(crate) const MAP_CELLS: usize = 16;

/// A file, independent of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(usize);

/// Promise of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// fsync: data, size and names.
    All,
    /// fdatasync, msync: data and size.
    Data,
    System,
}

/// A version of a file: for each cell the step that wrote it, counted from 1; 0 for zeroes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content(Vec<u16>);

impl Content {
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }

    pub(super) fn resize(&mut self, cells: usize) {
        self.0.resize(cells, 0);
    }

    pub(super) fn write(&mut self, range: Range<usize>, value: u16) {
        let size = self.0.len().max(range.end);
        self.0.resize(size, 0);
        self.0[range].fill(value);
    }

    fn cell(&self, at: usize) -> u16 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

#[derive(Debug)]
struct File {
    versions: Vec<Content>,
    /// Oldest version that the disk may have, for each cell that was promised by itself.
    cells: HashMap<usize, usize>,
    /// Oldest version whose size, and all other cells, the disk may have.
    whole: Option<usize>,
    /// Oldest version of the names by which the file can be found.
    names: Option<usize>,
    /// Version of the names when the file was made.
    made: usize,
    /// Whether something was stored behind the end. The kernel chooses what these cells become.
    is_wild: bool,
    is_forgotten: bool,
}

#[derive(Debug)]
pub(super) struct Files {
    files: Vec<File>,
    history: History,
    /// Oldest version of the names that the folder may have.
    names: Option<usize>,
}

impl Default for Files {
    fn default() -> Self {
        Self { files: Vec::new(), history: vec![Names::new()], names: None }
    }
}

/// Names of files in one version.
type Names = BTreeMap<i32, FileId>;
/// All versions of the names.
type History = Vec<Names>;

/// Returns the names of a file in some versions; `None` if it had none in one of them.
fn names_of(history: &[Names], id: FileId) -> Option<BTreeSet<i32>> {
    let mut all = BTreeSet::new();
    for names in history {
        let own = names.iter().filter(|(_, other)| **other == id);
        let own: Vec<i32> = own.map(|(name, _)| *name).collect();
        if own.is_empty() {
            return None;
        }
        all.extend(own);
    }
    Some(all)
}

/// Contents of a program's folder after a cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    /// Bytes of each file.
    pub(crate) files: HashMap<i32, Vec<u8>>,
    pub(crate) stamp: u32,
    pub(crate) number: u32,
}

/// A cell on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskCell {
    Step(u16),
    /// Contents that this program did not write.
    Foreign,
}

impl Files {
    fn current(&self) -> &Names {
        self.history.last().expect("there is the empty one")
    }

    fn rewrite(&mut self, change: impl FnOnce(&mut Names)) {
        let mut names = self.current().clone();
        change(&mut names);
        self.history.push(names);
    }

    /// Returns the file of a name, and makes it if there is none.
    pub(super) fn open(&mut self, name: i32) -> FileId {
        if let Some(&id) = self.current().get(&name) {
            return id;
        }
        let id = FileId(self.files.len());
        self.rewrite(|names| {
            names.insert(name, id);
        });
        self.files.push(File {
            versions: vec![Content::default()],
            cells: HashMap::new(),
            whole: None,
            names: None,
            made: self.history.len() - 1,
            is_wild: false,
            is_forgotten: false,
        });
        id
    }

    pub(super) fn rename(&mut self, from: i32, to: i32) {
        let names = self.current();
        if names.get(&from) == names.get(&to) {
            return;
        }
        self.rewrite(|names| {
            if let Some(id) = names.remove(&from) {
                names.insert(to, id);
            }
        });
    }

    pub(super) fn link(&mut self, from: i32, to: i32) {
        self.rewrite(|names| {
            if let Some(&id) = names.get(&from) {
                names.insert(to, id);
            }
        });
    }

    pub(super) fn unlink(&mut self, name: i32) {
        self.rewrite(|names| {
            names.remove(&name);
        });
    }

    pub(super) fn size(&self, id: FileId) -> usize {
        self.files[id.0].versions.last().map_or(0, Content::size)
    }

    pub(super) fn change(&mut self, id: FileId, change: impl FnOnce(&mut Content)) {
        let versions = &mut self.files[id.0].versions;
        let mut next = versions.last().cloned().unwrap_or_default();
        change(&mut next);
        versions.push(next);
    }

    pub(super) fn store(&mut self, id: FileId, cell: usize, value: u16) {
        if cell < self.size(id) {
            self.change(id, |content| content.write(cell..cell + 1, value));
        } else {
            self.files[id.0].is_wild = true;
        }
    }

    /// Marks a file whose contents on the disk are unknown from now on.
    pub(super) fn forget(&mut self, id: FileId) {
        self.files[id.0].is_forgotten = true;
    }

    pub(super) fn acknowledge(&mut self, id: FileId, sync: Sync) {
        let names = self.history.len() - 1;
        let file = &mut self.files[id.0];
        let version = file.versions.len() - 1;
        file.whole = Some(version);
        if sync != Sync::Data {
            file.names = Some(names);
        }
    }

    pub(super) fn acknowledge_cells(&mut self, id: FileId, range: Range<usize>) {
        let file = &mut self.files[id.0];
        let version = file.versions.len() - 1;
        file.cells.extend(range.map(|cell| (cell, version)));
    }

    pub(super) fn acknowledge_names(&mut self) {
        self.names = Some(self.history.len() - 1);
    }

    pub(super) fn acknowledge_all(&mut self) {
        self.acknowledge_names();
        for id in (0..self.files.len()).map(FileId) {
            self.acknowledge(id, Sync::System);
        }
    }

    /// Returns the promises that a disk broke.
    pub(super) fn broken_promises(&self, disk: &Disk) -> Vec<String> {
        let ids = (0..self.files.len()).map(FileId);
        let mut broken_promises: Vec<String> =
            ids.filter_map(|id| self.broken_file(id, disk)).collect();
        if let Some(from) = self.names {
            for name in 0..crate::generate::FILES {
                let is_there = disk.files.contains_key(&name);
                let mut versions = self.history[from..].iter();
                if !versions.any(|names| names.contains_key(&name) == is_there) {
                    let is = if is_there { "is there" } else { "is missing" };
                    broken_promises.push(format!("the folder was synchronized, and f{name} {is}"));
                }
            }
        }
        broken_promises
    }

    fn broken_file(&self, id: FileId, disk: &Disk) -> Option<String> {
        let file = &self.files[id.0];
        if file.is_forgotten || file.whole.is_none() && file.cells.is_empty() {
            return None;
        }
        // Data may be found by an older name, but only fsync promises a newer one.
        let names = names_of(&self.history[file.names.unwrap_or(file.made)..], id)?;
        let mut reasons = Vec::new();
        for name in names {
            let Some(bytes) = disk.files.get(&name) else {
                reasons.push(format!("f{name} is missing"));
                continue;
            };
            match file.difference(bytes, disk) {
                None => return None,
                Some(reason) => reasons.push(format!("f{name} {reason}")),
            }
        }
        Some(reasons.join(", "))
    }
}

impl File {
    /// Describes how a file on the disk difference from all that it may be.
    fn difference(&self, bytes: &[u8], disk: &Disk) -> Option<String> {
        let cells = bytes.len() / CELL_BYTES;
        let sizes = self.versions[self.whole.unwrap_or(0)..].iter().map(Content::size);
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        if !bytes.len().is_multiple_of(CELL_BYTES) || cells < least || cells > most {
            return Some(format!(
                "has {} bytes, not {least} to {most} times {CELL_BYTES}",
                bytes.len()
            ));
        }
        // Cells that were promised by themselves may be behind the end: ext4 (6.18) writes an O_DSYNC write into a block
        // that it has already, and leaves the size to the blocks behind it, which it has yet to allocate.
        if self.is_wild {
            return None;
        }
        for (at, cell) in bytes.chunks(CELL_BYTES).enumerate() {
            let oldest = self.cells.get(&at).copied().max(self.whole);
            // Bytes that nobody promised may be anything that they ever were.
            let versions = &self.versions[oldest.unwrap_or(0)..];
            let cell = read(cell, disk);
            let may = versions.iter().any(|one| DiskCell::Step(one.cell(at)) == cell);
            if !may {
                let first = versions.first()?.cell(at);
                return Some(format!("has {cell:?} in cell {at}, not Step({first}) or later"));
            }
        }
        None
    }
}

fn read(bytes: &[u8], disk: &Disk) -> DiskCell {
    let word = |at: usize| {
        let four = bytes[4 * at..4 * at + 4].try_into();
        four.map_or(0, u32::from_ne_bytes)
    };
    let (stamp, number, step) = (word(0), word(1), word(2));
    let check = stamp ^ number.wrapping_mul(2_654_435_761) ^ step.wrapping_mul(40_503);
    let is_uniform = bytes.chunks(16).all(|part| part == &bytes[..16]);
    if !is_uniform {
        return DiskCell::Foreign;
    }
    if bytes[..16] == [0; 16] {
        return DiskCell::Step(0);
    }
    if word(3) != check || (stamp, number) != (disk.stamp, disk.number) {
        return DiskCell::Foreign;
    }
    DiskCell::Step(step as u16)
}
