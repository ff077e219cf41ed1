//! Damaged traces: every change of a file is an error with an offset, or changes nothing that is read.

use std::fs;
use std::path::{Path, PathBuf};

use luc_events::store::{StoreError, TraceReader, TraceWriter};
use luc_events::tables::OffCpuWait;
use proptest::prelude::*;

use super::store_fixtures::{description, part_files, wait_row};

const ROWS: u64 = 300;

/// A trace whose waits are in three segments of one file; returns that file.
fn trace(directory: &Path) -> PathBuf {
    let mut writer = TraceWriter::create(directory, description(0)).unwrap();
    for at in 0..ROWS {
        writer.add(wait_row(at)).unwrap();
        if at % 100 == 99 {
            writer.flush().unwrap();
        }
    }
    writer.finish(description(1)).unwrap();
    let files = part_files(directory, "wait");
    assert_eq!(files.len(), 1);
    directory.join(&files[0])
}

/// Reads the waits of a trace whose file `path` now has these bytes.
fn read_with(directory: &Path, path: &Path, bytes: &[u8]) -> Result<Vec<OffCpuWait>, StoreError> {
    fs::write(path, bytes).unwrap();
    TraceReader::open(directory)?.rows::<OffCpuWait>()?.collect()
}

fn assert_says_where(error: &StoreError, path: &Path, length: usize) {
    let StoreError::Damaged { path: found, offset, .. } = error else {
        panic!("not told as damage: {error}");
    };
    assert_eq!(found, path);
    assert!(*offset <= length as u64, "{error}");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path());
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(7).chain(whole.len() - 20..whole.len()) {
        let error = read_with(directory.path(), &path, &whole[..length]).unwrap_err();
        assert_says_where(&error, &path, length);
    }
}

#[test]
fn a_bit_flipped_anywhere_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let error = read_with(directory.path(), &path, &bytes).unwrap_err();
        assert_says_where(&error, &path, whole.len());
    }
}

/// Returns the file with another schema version, of one digit, and correct checksums.
fn with_version(whole: &[u8], digit: u8) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let footer = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) as usize;
    let key = b"luc.schema";
    let at = footer + bytes[footer..].windows(key.len()).position(|found| found == key).unwrap();
    // The value's length and its only digit follow.
    bytes[at + key.len() + 2] = digit;
    let crc = crc32fast::hash(&bytes[footer..]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes[4..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn other_versions_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path());
    let whole = fs::read(&path).unwrap();
    for digit in [b'0', b'9'] {
        let bytes = with_version(&whole, digit);
        let error = read_with(directory.path(), &path, &bytes).unwrap_err();
        let said = format!("schema version {}", digit as char);
        assert!(error.to_string().contains(&said), "{error}");
    }
}

/// File by a recorder of version 4, whose waits have no processor.
const VERSION_4: &[u8] = include_bytes!("version-4/wait-000001-000001.parquet");

#[test]
fn waits_of_earlier_versions_are_read_without_their_processor() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path());
    let rows = read_with(directory.path(), &path, VERSION_4).unwrap();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.processor == 0 && row.on_ns > 0));
    let version_1 = with_version(VERSION_4, b'1');
    assert_ne!(version_1, VERSION_4);
    assert_eq!(read_with(directory.path(), &path, &version_1).unwrap(), rows);
}

#[test]
fn columns_are_those_of_their_version() {
    let directory = tempfile::tempdir().unwrap();
    let path = trace(directory.path());
    let whole = fs::read(&path).unwrap();
    for bytes in [with_version(&whole, b'4'), with_version(VERSION_4, b'5')] {
        let error = read_with(directory.path(), &path, &bytes).unwrap_err();
        assert!(error.to_string().contains("columns differ"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Overwritten, inserted and removed ranges.
    #[test]
    fn any_change_is_noticed(
        at in any::<prop::sample::Index>(),
        removed in 0usize..64,
        inserted in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(directory.path());
        let whole = fs::read(&path).unwrap();
        let from = at.index(whole.len());
        let to = (from + removed).min(whole.len());
        let mut bytes = whole.clone();
        bytes.splice(from..to, inserted);
        prop_assume!(bytes != whole);
        let error = read_with(directory.path(), &path, &bytes).unwrap_err();
        assert_says_where(&error, &path, whole.len() + 64);
    }

    /// Damage whose checksums are right, as only an attacker makes it: no panic, and no hang.
    #[test]
    fn forged_checksums_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(directory.path());
        let mut bytes = fs::read(&path).unwrap();
        let footer = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) as usize;
        for (index, value) in changes {
            let at = footer + index.index(bytes.len() - footer);
            bytes[at] = value;
        }
        let crc = crc32fast::hash(&bytes[footer..]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[4..20]);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        let _ = read_with(directory.path(), &path, &bytes);
    }
}
