//! The documentation's form: links lead somewhere, lines can be read in a terminal, the README stays short.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_COLUMNS: usize = 118;
const MAX_README_LINES: usize = 120;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that people write. Those of the evaluation, and the trace tables, are made by programs.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/guide", "docs/how", "docs/reference"] {
        let entries = fs::read_dir(root().join(folder)).expect("listed").flatten();
        let paths = entries.map(|entry| entry.path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    pages.push(root().join("docs/evaluation/README.md"));
    pages
}

/// Targets of Markdown links, without anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split([')', '#']).next())
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("read");
        let folder = page.parent().expect("a folder");
        for link in links(&text).filter(|link| !link.is_empty() && !link.contains(':')) {
            assert!(folder.join(link).exists(), "{}: {link}", page.display());
        }
    }
}

#[test]
fn lines_fit_a_terminal() {
    for page in pages() {
        if page.ends_with("trace-tables.md") {
            continue;
        }
        let text = fs::read_to_string(&page).expect("read");
        for (number, line) in text.lines().enumerate() {
            // Tables cannot be wrapped.
            let fits = line.starts_with('|') || line.chars().count() <= MAX_COLUMNS;
            assert!(fits, "{}:{}: {line}", page.display(), number + 1);
        }
    }
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).expect("read");
    assert!(text.lines().count() <= MAX_README_LINES);
}
