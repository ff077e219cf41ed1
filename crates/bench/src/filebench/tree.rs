//! A fileset on disk: its tree of directories, its sizes, and the files that exist at the start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rand::{Rng, RngExt};

use super::plan::Files;
use super::variables::any_gamma;
use crate::error::BenchError;
use crate::fileset::Fileset;
use crate::interrupt;

/// Deeper trees would have paths that the system refuses.
const DEEPEST: u32 = 100;
/// Files are made by writes of this size.
const PIECE_BYTES: usize = 1 << 20;

/// A fileset that clients share.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) paths: Vec<PathBuf>,
    /// The sizes drawn at the start, bytes.
    pub(super) sizes: Vec<u64>,
    pub(super) state: Fileset,
}

impl Tree {
    /// Makes the tree below `scratch`, all directories and those files that exist at the start.
    pub(super) fn create(
        files: &Files,
        scratch: &Path,
        random: &mut impl Rng,
    ) -> Result<Self, BenchError> {
        let failed = |error| BenchError::operation(scratch, "making the files", error);
        let root = scratch.join(&files.name);
        let paths = if files.alone {
            vec![root]
        } else {
            paths(files, root, random)
        };
        let sizes: Vec<u64> = paths.iter().map(|_| files.size.next(random)).collect();
        let state = Fileset::new(paths.len()).map_err(failed)?;
        let mut order: Vec<usize> = (0..paths.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.random_range(0..=last));
        }
        let mut made = PathBuf::new();
        for path in &paths {
            let parent = path.parent().unwrap_or(scratch);
            if parent != made {
                fs::create_dir_all(parent).map_err(failed)?;
                made = parent.to_path_buf();
            }
        }
        let mut data = vec![0; PIECE_BYTES];
        for index in order {
            if random.random_range(0..100) < files.prealloc {
                fill(&paths[index], sizes[index], &mut data, random)
                    .map_err(|error| BenchError::operation(scratch, "making the files", error))?;
                state.set_existing(index);
            }
            if interrupt::interrupted() {
                return Err(BenchError::Interrupted);
            }
        }
        Ok(Self {
            paths,
            sizes,
            state,
        })
    }
}

fn fill(path: &Path, size: u64, data: &mut [u8], random: &mut impl Rng) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut left = size;
    while left > 0 && !interrupt::interrupted() {
        let piece = left.min(data.len() as u64) as usize;
        random.fill_bytes(&mut data[..piece]);
        file.write_all(&data[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}

/// The files' paths, in the order of their index: depth first.
fn paths(files: &Files, root: PathBuf, random: &mut impl Rng) -> Vec<PathBuf> {
    let depth = if files.dirwidth < 2 {
        1.0
    } else {
        (files.entries.max(1) as f64).ln() / (files.dirwidth as f64).ln()
    };
    let mut tree = Growth {
        entries: files.entries as usize,
        depth,
        width: files.dirwidth as f64,
        shape: files.dirgamma as f64 / 1000.0,
        paths: Vec::new(),
    };
    let mut name = 1;
    while !tree.full() {
        tree.grow(&root.join(format!("{name:08}")), 2, random);
        name += 1;
    }
    tree.paths
}

struct Growth {
    entries: usize,
    depth: f64,
    width: f64,
    /// 0: depth and width are the means.
    shape: f64,
    paths: Vec<PathBuf>,
}

impl Growth {
    fn full(&self) -> bool {
        self.paths.len() >= self.entries
    }

    fn draw(&self, mean: f64, random: &mut impl Rng) -> f64 {
        if self.shape == 0.0 || mean == 0.0 {
            return mean;
        }
        any_gamma(random, mean, self.shape)
    }

    fn grow(&mut self, directory: &Path, level: u32, random: &mut impl Rng) {
        let depth = self.draw(self.depth, random).max(1.0) as u32;
        let width = self.draw(self.width, random).ceil().max(1.0) as u64;
        for name in 1..=width {
            if self.full() {
                return;
            }
            let path = directory.join(format!("{name:08}"));
            if level >= depth.min(DEEPEST) {
                self.paths.push(path);
            } else {
                self.grow(&path, level + 1, random);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::filebench::plan::Access;
    use crate::filebench::variables::Number;
    use crate::random::stream;
    use crate::scratch::Scratch;

    fn files(entries: u64, dirwidth: u64) -> Files {
        Files {
            name: "set".to_owned(),
            entries,
            size: Number::Fixed(3000),
            prealloc: 80,
            dirwidth,
            dirgamma: 1500,
            alone: false,
            access: Access::Both,
        }
    }

    #[test]
    fn a_flat_set_is_one_directory_and_a_narrow_one_a_tree() {
        let flat = paths(
            &files(1000, 1_000_000),
            PathBuf::from("set"),
            &mut stream(1, 0),
        );
        assert_eq!(flat[0], Path::new("set/00000001/00000001"));
        let deep = paths(&files(10_000, 20), PathBuf::from("set"), &mut stream(1, 0));
        let parents: HashSet<_> = deep.iter().map(|path| path.parent()).collect();
        let distinct: HashSet<_> = deep.iter().collect();
        assert_eq!((flat.len(), distinct.len()), (1000, 10_000));
        assert!(
            (250..1500).contains(&parents.len()),
            "about 20 files each: {}",
            parents.len()
        );
        assert!(deep.iter().any(|path| path.components().count() > 3));
    }

    #[test]
    fn what_exists_is_on_disk_with_its_size() {
        let scratch = Scratch::create(&std::env::temp_dir()).expect("scratch");
        let tree = Tree::create(&files(500, 10), scratch.path(), &mut stream(3, 0)).expect("tree");
        let sizes: Vec<u64> = tree
            .paths
            .iter()
            .filter_map(|path| Some(fs::metadata(path).ok()?.len()))
            .collect();
        assert!(
            (350..450).contains(&sizes.len()),
            "about 80 %: {}",
            sizes.len()
        );
        assert!(sizes.iter().all(|size| *size == 3000));
    }
}
