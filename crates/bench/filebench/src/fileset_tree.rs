//! A fileset on disk: its tree of directories, its sizes, and the files that exist at the start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use luc_host::interrupt_flag;
use luc_stats::seeded_random::{gamma, shuffled};
use rand::{Rng, RngExt};

use super::drawn_numbers::WorkloadNumber;
use super::plan::PlannedFileset;
use luc_workload::error::BenchError;
use luc_workload::fileset::Fileset;

/// Deeper trees would have paths that the system refuses.
const MAX_DEPTH: u32 = 100;
/// Files are made by writes of this size.
const PIECE_BYTES: usize = 1 << 20;

/// A fileset that clients share.
#[derive(Debug)]
pub(super) struct FilesetTree {
    pub(super) paths: Vec<PathBuf>,
    /// The sizes drawn at the start, bytes.
    pub(super) sizes: Vec<u64>,
    pub(super) state: Fileset,
    /// Directories to make and remove, which hold nothing.
    pub(super) leaves: Vec<PathBuf>,
    pub(super) leaf_state: Fileset,
    /// All other directories, including the root.
    pub(super) directories: Vec<PathBuf>,
    /// The directory to list next.
    pub(super) rotor: AtomicUsize,
}

impl FilesetTree {
    /// Makes the tree below `scratch`, all directories and those files that exist at the start.
    pub(super) fn create(
        files: &PlannedFileset,
        scratch: &Path,
        random: &mut impl Rng,
    ) -> Result<Self, BenchError> {
        let failed = |error| BenchError::operation(scratch, "making the files", error);
        let root = scratch.join(&files.name);
        let grown = if files.alone { Growth::alone(root) } else { Growth::of(files, root, random) };
        let Growth { paths, leaves, directories, .. } = grown;
        let sizes: Vec<u64> = paths.iter().map(|_| files.size.next(random)).collect();
        let state = Fileset::new(paths.len()).map_err(failed)?;
        let leaf_state = Fileset::new(leaves.len()).map_err(failed)?;
        for directory in &directories {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        for index in shuffled(leaves.len(), random) {
            if random.random_range(0..100) < files.prealloc {
                fs::create_dir(&leaves[index]).map_err(failed)?;
                leaf_state.set_existing(index);
            }
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted);
            }
        }
        let mut data = vec![0; PIECE_BYTES];
        for index in shuffled(paths.len(), random) {
            if random.random_range(0..100) < files.prealloc {
                fill(&paths[index], sizes[index], &mut data, random).map_err(failed)?;
                state.set_existing(index);
            }
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted);
            }
        }
        Ok(Self {
            paths,
            sizes,
            state,
            leaves,
            leaf_state,
            directories,
            rotor: AtomicUsize::new(0),
        })
    }

    /// Writes the files that exist to the disk and takes their data out of memory.
    pub(super) fn drop_cache(&self) -> io::Result<()> {
        for path in self.paths.iter().filter(|path| path.exists()) {
            let file = File::open(path)?;
            file.sync_data()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        Ok(())
    }
}

fn fill(path: &Path, size: u64, data: &mut [u8], random: &mut impl Rng) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut left = size;
    while left > 0 && !interrupt_flag::interrupted() {
        let piece = left.min(data.len() as u64) as usize;
        random.fill_bytes(&mut data[..piece]);
        file.write_all(&data[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}

/// The tree as it grows, depth first: the order of the files' indices.
struct Growth<'a> {
    entries: usize,
    leaf_directories: usize,
    depth: f64,
    /// Distribution of the depth, with that mean; `None`: the width's.
    depth_variable: Option<&'a WorkloadNumber>,
    width: f64,
    /// 0: depth and width are the means.
    shape: f64,
    paths: Vec<PathBuf>,
    leaves: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Growth<'_> {
    fn alone(path: PathBuf) -> Self {
        Self {
            entries: 1,
            leaf_directories: 0,
            depth: 0.0,
            depth_variable: None,
            width: 0.0,
            shape: 0.0,
            directories: path.parent().map(Path::to_path_buf).into_iter().collect(),
            paths: vec![path],
            leaves: Vec::new(),
        }
    }

    /// Lays out the tree of a fileset below `root`. Mean depth = ln(files) / ln(width).
    fn of(files: &PlannedFileset, root: PathBuf, random: &mut impl Rng) -> Self {
        let all = files.entries.saturating_add(files.leaf_directories).max(1);
        let depth =
            if files.dirwidth < 2 { 1.0 } else { (all as f64).ln() / (files.dirwidth as f64).ln() };
        let variable = files.depth.as_ref().map(|variable| variable.with_mean(depth));
        let mut tree = Growth {
            entries: files.entries as usize,
            leaf_directories: files.leaf_directories as usize,
            depth,
            depth_variable: variable.as_ref(),
            width: files.dirwidth as f64,
            shape: files.dirgamma as f64 / 1000.0,
            paths: Vec::new(),
            leaves: Vec::new(),
            directories: vec![root.clone()],
        };
        let mut name = 1;
        while !tree.full() {
            tree.grow(root.join(format!("{name:08}")), 2, random);
            name += 1;
        }
        Growth { depth_variable: None, ..tree }
    }

    fn full(&self) -> bool {
        self.paths.len() >= self.entries && self.leaves.len() >= self.leaf_directories
    }

    fn draw(&self, mean: f64, random: &mut impl Rng) -> f64 {
        gamma(random, mean, self.shape)
    }

    fn grow(&mut self, directory: PathBuf, level: u32, random: &mut impl Rng) {
        let depth = match self.depth_variable {
            Some(variable) => variable.real(random),
            None => self.draw(self.depth, random),
        };
        let depth = depth.max(1.0) as u32;
        let width = self.draw(self.width, random).ceil().max(1.0) as u64;
        let place = self.directories.len();
        self.directories.push(directory);
        for name in 1..=width {
            if self.full() {
                return;
            }
            let path = self.directories[place].join(format!("{name:08}"));
            if level < depth.min(MAX_DEPTH) {
                self.grow(path, level + 1, random);
            } else if self.paths.len() < self.entries {
                self.paths.push(path);
            } else {
                self.leaves.push(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::plan::FileAccess;
    use luc_stats::seeded_random::stream;
    use luc_workload::scratch_directory::ScratchDirectory;

    fn files(entries: u64, dirwidth: u64) -> PlannedFileset {
        PlannedFileset {
            name: "set".to_owned(),
            entries,
            size: WorkloadNumber::Fixed(3000),
            prealloc: 80,
            dirwidth,
            dirgamma: 1500,
            alone: false,
            cached: true,
            leaf_directories: 0,
            depth: None,
            access: FileAccess::Both,
        }
    }

    #[test]
    fn a_flat_set_is_one_directory_and_a_narrow_one_a_tree() {
        let paths = |files: &PlannedFileset| {
            Growth::of(files, PathBuf::from("set"), &mut stream(1, 0)).paths
        };
        let flat = paths(&files(1000, 1_000_000));
        assert_eq!(flat[0], Path::new("set/00000001/00000001"));
        let deep = paths(&files(10_000, 20));
        let parents: HashSet<_> = deep.iter().map(|path| path.parent()).collect();
        let distinct: HashSet<_> = deep.iter().collect();
        assert_eq!((flat.len(), distinct.len()), (1000, 10_000));
        assert!((250..1500).contains(&parents.len()), "about 20 files each: {}", parents.len());
        assert!(deep.iter().any(|path| path.components().count() > 3));
    }

    #[test]
    fn what_exists_is_on_disk_with_its_size() {
        let scratch = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let tree =
            FilesetTree::create(&files(500, 10), scratch.path(), &mut stream(3, 0)).expect("tree");
        let sizes: Vec<u64> =
            tree.paths.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).collect();
        assert!((350..450).contains(&sizes.len()), "about 80 %: {}", sizes.len());
        assert!(sizes.iter().all(|size| *size == 3000));
    }
}
