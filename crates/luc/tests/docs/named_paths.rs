//! Paths that pages and comments of crates name are there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{pages, root};

/// Folders of the tree: a path that begins with one is of the tree.
const FOLDERS: [&str; 8] =
    ["crates", "docs", "fuzz", "kernel", "packaging", "prove", "scripts", "vm"];

/// Returns the texts in backquotes that look like paths: two or more names, none of them a placeholder in capitals.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_placeholder = |name: &str| {
        let stem = name.split('.').next().unwrap_or(name);
        stem != "README" && stem.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    let is_name = move |name: &str| {
        !name.starts_with('.') && !is_placeholder(name) && name.chars().all(is_letter)
    };
    let is_path =
        move |text: &&str| text.contains('/') && text.trim_end_matches('/').split('/').all(is_name);
    line.split('`').skip(1).step_by(2).filter(is_path)
}

/// Lists the Rust files below a folder.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Whether a path begins with a folder of the tree, and is not there.
fn is_missing(path: &str) -> bool {
    let is_of_tree = FOLDERS.contains(&path.split('/').next().unwrap_or_default());
    is_of_tree && !root().join(path).exists()
}

#[test]
fn pages_name_paths_that_are_there() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("read");
        for path in text.lines().flat_map(paths) {
            assert!(!is_missing(path), "{}: {path}", page.display());
        }
    }
}

#[test]
fn comments_name_paths_that_are_there() {
    let mut files = Vec::new();
    for folder in ["crates", "prove", "vm"] {
        rust_files(&root().join(folder), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("read");
        let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
        for path in comments.flat_map(paths) {
            assert!(!is_missing(path), "{}: {path}", file.display());
            // A module of the file's own folder: the first name is there as a folder, then the file must be.
            let (first, _) = path.split_once('/').expect("two names");
            let folder = file.parent().expect("a folder");
            let is_here = folder.join(first).is_dir() && folder.ends_with("src");
            let is_file =
                folder.join(path).exists() || folder.join(path).with_extension("rs").exists();
            assert!(!is_here || is_file, "{}: {path}", file.display());
        }
    }
}

#[test]
fn a_path_is_no_placeholder_and_no_unit() {
    let line =
        "`crates/luc/tests` and `prove/parts/NAME.toml` and `a b/c` and `plain` and `x/y.rs`";
    assert_eq!(paths(line).collect::<Vec<_>>(), ["crates/luc/tests", "x/y.rs"]);
}
