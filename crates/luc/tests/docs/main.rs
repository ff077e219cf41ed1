//! The documentation's form and figures: links lead somewhere, lines can be read in a terminal, the README stays short.

use std::fs;
use std::path::{Path, PathBuf};

mod named_paths;
mod quoted_figures;

const MAX_COLUMNS: usize = 118;
const MAX_README_LINES: usize = 90;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that people write. Those of the evaluation, and the trace tables, are made by programs.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let folders = ["", "docs", "docs/guide", "docs/how", "docs/reference", "docs/evaluation/notes"];
    for folder in folders {
        let entries = fs::read_dir(root().join(folder)).expect("listed").flatten();
        let paths = entries.map(|entry| entry.path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    pages.push(root().join("docs/evaluation/README.md"));
    pages.push(root().join("prove/README.md"));
    let folders = fs::read_dir(root().join("crates")).expect("listed").flatten();
    let readmes = folders.map(|folder| folder.path().join("README.md"));
    pages.extend(readmes.filter(|readme| readme.exists()));
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

#[test]
fn ci_runs_the_tests_that_the_readme_names() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("read");
    assert!(read("README.md").contains("`make test`"));
    let ci = read(".ci/run");
    let runs = |line: &str| line.starts_with("make ") && line.split(' ').any(|word| word == "test");
    assert!(ci.lines().any(runs), "{ci}");
}

/// Number of targets that a page of the evaluation has met, and number of those measured.
fn targets(page: &str) -> (usize, usize) {
    let targets = || page.lines().filter(|line| line.starts_with("- target: "));
    let met = targets().filter(|line| line.contains("-> met"));
    let measured = targets().filter(|line| !line.contains("-> not measured"));
    (met.count(), measured.count())
}

#[test]
fn the_table_of_the_evaluation_has_each_page_with_its_targets() {
    let folder = root().join("docs/evaluation");
    let table = fs::read_to_string(folder.join("README.md")).expect("read");
    let mut pages = 0;
    for entry in fs::read_dir(&folder).expect("listed").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        if !name.ends_with(".md") || name == "README.md" {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("read");
        let (met, measured) = targets(&text);
        if measured == 0 {
            continue;
        }
        pages += 1;
        let row = table.lines().find(|line| line.contains(&format!("]({name})")));
        let row = row.unwrap_or_else(|| panic!("no row of {name}"));
        assert!(row.contains(&format!("| {met} of {measured}")), "{row}: {met} of {measured}");
    }
    assert!(pages > 0);
}
