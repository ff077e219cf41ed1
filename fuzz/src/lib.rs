//! Checks of the fuzz targets. `tests/` runs the same with random input, without a fuzzer.

mod perf_stat_files;
mod fleet_rows;
mod syscall_profiles;
mod pulled_stream;
mod program_spans;
mod pristine_trace;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use luc_events::store::{TraceReader, StoreError};
use luc_testkit::json::difference;
use serde_json::Value;

pub use perf_stat_files::counters;
pub use fleet_rows::fleet;
pub use syscall_profiles::profile;
pub use pulled_stream::pulled;
pub use program_spans::spans;
use pristine_trace::PristineTrace;

/// The most places that one input changes.
const MAX_CHANGES: usize = 16;

/// A trace, and its report while it is undamaged.
struct Subject {
    pristine: PristineTrace,
    report: Value,
}

fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    static HOOK: Once = Once::new();
    // The reader contains panics of the Parquet library; the fuzzer's hook would end the process at once. One that
    // is not contained still ends it.
    HOOK.call_once(|| panic::set_hook(Box::new(|_| {})));
    SUBJECT.get_or_init(|| {
        let pristine = PristineTrace::write();
        let place = Place::with(&pristine.files);
        let report = explain(&place.0).expect("the undamaged trace is explained");
        Subject { pristine, report }
    })
}

/// A directory that is removed with this value, in memory if there is a `/dev/shm`.
struct Place(PathBuf, #[expect(dead_code, reason = "removes the directory")] tempfile::TempDir);

impl Place {
    fn with(files: &[(String, Vec<u8>)]) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        for (name, bytes) in files {
            fs::write(directory.path().join(name), bytes).expect("a file is written");
        }
        Self(directory.path().to_owned(), directory)
    }
}

fn explain(directory: &Path) -> Result<Value, StoreError> {
    let report = luc_explain::explain(&TraceReader::open(directory)?)?;
    Ok(serde_json::to_value(report).expect("a report is JSON"))
}

/// Changes one file as `data` says: which file, how it is cut, which bytes change to what. Returns its place.
fn change(files: &mut [(String, Vec<u8>)], data: &[u8]) -> Option<usize> {
    let (&which, data) = data.split_first()?;
    let place = usize::from(which) % files.len();
    let bytes = &mut files[place].1;
    let (cut, data) = data.split_at_checked(3)?;
    if cut[0] == 0 {
        let length = usize::from(u16::from_le_bytes([cut[1], cut[2]])) % (bytes.len() + 1);
        bytes.truncate(length);
    }
    for edit in data.chunks_exact(4).take(MAX_CHANGES) {
        let at =
            usize::from(u16::from_le_bytes([edit[0], edit[1]])) | usize::from(edit[2] & 1) << 16;
        if !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] = edit[3];
        }
    }
    Some(place)
}

/// Checks that a change of a file leaves the report the same, or is an error. The error names the file and the
/// offset.
pub fn damaged(data: &[u8]) {
    let subject = subject();
    let mut files = subject.pristine.files.clone();
    let Some(changed) = change(&mut files, data) else {
        return;
    };
    let place = Place::with(&files);
    match explain(&place.0) {
        Ok(report) => {
            if let Some(difference) = difference(&subject.report, &report) {
                panic!("silently wrong: {difference} after a change of {}", files[changed].0);
            }
        }
        Err(StoreError::Damaged { path, offset, .. }) => {
            assert_eq!(path.file_name(), Some(files[changed].0.as_ref()));
            let longest = subject.pristine.files[changed].1.len();
            assert!(offset <= longest as u64, "offset {offset} is beyond {longest}");
        }
        Err(error) => panic!("not told as damage: {error}"),
    }
}

/// A change with right checksums, as an attacker makes it: no panic gets out, nothing hangs, and an error is one
/// line.
pub fn forged(data: &[u8]) {
    let subject = subject();
    let mut files = subject.pristine.files.clone();
    let Some(changed) = change(&mut files, data) else {
        return;
    };
    pristine_trace::seal(&mut files[changed].1);
    read_all(&Place::with(&files).0);
}

/// Any bytes in place of a file.
pub fn segment(data: &[u8]) {
    let subject = subject();
    let mut files = subject.pristine.files.clone();
    let place = files.iter().position(|(name, _)| name.starts_with("wait-"));
    files[place.expect("waits")].1 = data.to_vec();
    read_all(&Place::with(&files).0);
}

/// Any text in place of the settings that a sweep has saved for root to restore: it is refused, or has one meaning.
pub fn saved(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else {
        return;
    };
    let saved = |text: &str| luc_sweep::saved(kind, text);
    if let Some(again) = saved(&String::from_utf8_lossy(text)) {
        assert_eq!(saved(&again), Some(again));
    }
}

fn read_all(directory: &Path) {
    if let Err(error) = explain(directory) {
        let text = error.to_string();
        assert!(!text.contains('\n') && text.contains(&*directory.to_string_lossy()), "{text}");
    }
}
