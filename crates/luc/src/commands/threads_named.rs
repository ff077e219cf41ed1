//! Looks for the threads that `--comm` selects, and for names that resemble theirs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Maximum number of names that are shown.
const MAX_SHOWN: usize = 5;
/// Minimum length of a name that is the beginning of another one.
const MIN_COMMON: usize = 3;

/// Returns what to tell the user if no thread has this name now.
pub(crate) fn note_if_none(comm: &str) -> Option<String> {
    note(comm, &names(Path::new("/proc")))
}

fn note(comm: &str, names: &BTreeSet<String>) -> Option<String> {
    if names.contains(comm) {
        return None;
    }
    let alike: Vec<&str> = (names.iter().map(String::as_str))
        .filter(|name| name.len().min(comm.len()) >= MIN_COMMON)
        .filter(|name| name.starts_with(comm) || comm.starts_with(name))
        .take(MAX_SHOWN)
        .collect();
    let advice = match alike[..] {
        [] => "`ps -e` lists names".to_owned(),
        _ => format!("there is {}", alike.join(", ")),
    };
    Some(format!("--comm {comm}: no process or thread has this name now; {advice}"))
}

/// Names of all threads. One that begins or ends meanwhile may be missed.
fn names(proc: &Path) -> BTreeSet<String> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    entries(proc)
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .flat_map(|process| entries(&process.path().join("task")))
        .filter_map(|thread| fs::read(thread.path().join("comm")).ok())
        .map(|name| String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_s_name_leads_to_its_processes() {
        let names = ["postgres", "redis-server", "sh"].map(str::to_owned).into();
        assert_eq!(note("postgres", &names), None);
        let advised = |comm| note(comm, &names).expect("none has it");
        assert!(advised("postgresql").ends_with("; there is postgres"));
        assert!(advised("redis").ends_with("; there is redis-server"));
        assert!(advised("shell").ends_with("lists names"));
    }

    #[test]
    fn this_thread_is_found() {
        let own = fs::read_to_string("/proc/thread-self/comm").expect("own name");
        assert_eq!(note_if_none(own.trim_end()), None);
    }
}
