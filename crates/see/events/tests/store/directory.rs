//! The directory of a trace: its creation, its owner, and the error if there is none.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use luc_events::store::{StoreError, TraceReader, TraceWriter};
use luc_events::tables::TraceDescription;

use super::store_fixtures::description;

#[test]
fn a_directory_is_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    TraceWriter::create(directory.path(), description(0)).unwrap();
    let error = TraceWriter::create(directory.path(), description(0)).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
}

#[test]
fn without_a_trace_the_error_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/nonexistent/trace")] {
        let error = TraceReader::open(path).unwrap_err().to_string();
        assert!(error.contains("no trace is here") && error.contains("luc record"), "{error}");
    }
}

#[test]
fn the_last_description_counts() {
    let directory = tempfile::tempdir().unwrap();
    let writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    assert_eq!(TraceReader::open(directory.path()).unwrap().trace().end_ns, 0);
    writer.finish(TraceDescription { at_ns: 500, ..description(500) }).unwrap();
    assert_eq!(TraceReader::open(directory.path()).unwrap().trace().end_ns, 500);
}

#[test]
fn what_root_records_is_for_root_alone() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/trace");
    drop(TraceWriter::create(&directory, description(0)).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        assert_eq!(mode(&directory), 0o700);
    }
    // A directory that is there keeps what its owner gave it.
    let own = parent.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    drop(TraceWriter::create(&own, description(0)).unwrap());
    assert_eq!(mode(&own), 0o755);
}
