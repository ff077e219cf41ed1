//! The processes that a process has started, by /proc.

use std::fs;
use std::path::Path;

/// `process` and its descendants, `most` of them at most. One that comes while this looks may be missed.
pub fn with_descendants(process: u32, most: usize) -> Vec<u32> {
    let mut found = Vec::new();
    let mut to_look_at = vec![process];
    while let Some(process) = to_look_at.pop() {
        if found.len() >= most {
            break;
        }
        found.push(process);
        to_look_at.extend(children(process));
    }
    found
}

/// The children of all threads of a process.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
    let lists = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let numbers: Vec<u32> =
                list.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            numbers
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_and_the_number_is_bounded() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let all = with_descendants(std::process::id(), 100);
        assert_eq!(all.first(), Some(&std::process::id()));
        assert!(all.contains(&child.id()), "{all:?}");
        assert_eq!(with_descendants(std::process::id(), 1).len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
