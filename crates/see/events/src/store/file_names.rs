//! File names: the segments in a file, and the files of a table.

use std::fs;
use std::path::{Path, PathBuf};

use super::{StoreError, TableRow};
use crate::{TableVisitor, TraceEvent, visit_tables};

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFileName {
    /// Number of its first segment.
    pub(crate) first: u32,
    /// Number of its last segment.
    pub(crate) last: u32,
    /// Path of the file.
    pub(crate) path: PathBuf,
}

/// Returns the path of the file with segments `first` to `last` of a table.
pub(crate) fn path(table: &str, directory: &Path, first: u32, last: u32) -> PathBuf {
    directory.join(format!("{table}-{first:06}-{last:06}.parquet"))
}

/// Returns the hidden path under which a file is written until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Returns the segments of a file by its name, if it is one of this table.
fn parse(name: &str, table: &str) -> Option<(u32, u32)> {
    let numbers = name.strip_prefix(table)?.strip_prefix('-')?.strip_suffix(".parquet")?;
    let (first, last) = numbers.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first >= 1 && first <= last).then_some((first, last))
}

/// Returns whether a file of exactly this name can be one of a table.
pub(crate) fn is_of_table(name: &str) -> bool {
    struct Look<'a>(&'a str, bool);
    impl TableVisitor for Look<'_> {
        fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
            let numbers = parse(self.0, T::TABLE);
            self.1 |= numbers.is_some_and(|(first, last)| {
                path(T::TABLE, Path::new(""), first, last) == Path::new(self.0)
            });
        }
    }
    let mut look = Look(name, false);
    visit_tables(&mut look);
    look.1
}

/// Returns the files of a table in order, without those that a merged file replaces.
pub(crate) fn parts(
    table: &'static str,
    directory: &Path,
) -> Result<Vec<TableFileName>, StoreError> {
    let list = StoreError::io;
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(list(directory, "list it"))? {
        let entry = entry.map_err(list(directory, "list it"))?;
        if let Some((first, last)) = entry.file_name().to_str().and_then(|name| parse(name, table))
        {
            found.push(TableFileName { first, last, path: entry.path() });
        }
    }
    choose(found).map_err(|segment| StoreError::Missing {
        path: directory.to_path_buf(),
        table,
        segment,
    })
}

/// Drops the files that a wider one covers. The error is the first segment that no file has.
fn choose(mut found: Vec<TableFileName>) -> Result<Vec<TableFileName>, u32> {
    found.sort_by_key(|part| (part.first, std::cmp::Reverse(part.last)));
    let mut chosen: Vec<TableFileName> = Vec::new();
    let mut next = 1;
    for part in found {
        if part.last < next {
            continue;
        }
        if part.first != next {
            return Err(next);
        }
        next = part.last.checked_add(1).ok_or(part.last)?;
        chosen.push(part);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_of(ranges: &[(u32, u32)]) -> Vec<TableFileName> {
        ranges
            .iter()
            .map(|&(first, last)| TableFileName { first, last, path: PathBuf::new() })
            .collect()
    }

    fn choose_ranges(ranges: &[(u32, u32)]) -> Result<Vec<(u32, u32)>, u32> {
        choose(parts_of(ranges))
            .map(|parts| parts.iter().map(|part| (part.first, part.last)).collect())
    }

    #[test]
    fn a_merged_file_replaces_its_parts() {
        assert_eq!(choose_ranges(&[(3, 3), (1, 1), (1, 2), (2, 2)]), Ok(vec![(1, 2), (3, 3)]));
    }

    #[test]
    fn a_gap_is_noticed() {
        assert_eq!(choose_ranges(&[(1, 1), (3, 4)]), Err(2));
        assert_eq!(choose_ranges(&[(2, 2)]), Err(1));
        assert_eq!(choose_ranges(&[(1, 3), (2, 5)]), Err(4));
    }

    #[test]
    fn a_file_of_a_table_has_one_name() {
        assert!(is_of_table("file_system-000001-000020.parquet"));
        for name in [
            "secrets-000001-000001.parquet",
            "sync-1-1.parquet",
            "sync-000002-000001.parquet",
            ".sync-000001-000001.parquet.tmp",
            "../sync-000001-000001.parquet",
            "",
        ] {
            assert!(!is_of_table(name), "{name}");
        }
    }

    #[test]
    fn only_files_of_the_table_count() {
        assert_eq!(parse("sync-000001-000020.parquet", "sync"), Some((1, 20)));
        assert_eq!(parse("file_system-000001-000001.parquet", "file"), None);
        assert_eq!(parse(".sync-000001-000001.parquet.tmp", "sync"), None);
        assert_eq!(parse("sync-2-1.parquet", "sync"), None);
    }
}
