//! The arrows between crates: those of `cargo metadata` are in ARCHITECTURE.md's table, and its picture is theirs.
//! `make tables` draws the picture anew.

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use circles::Crate;
use serde_json::Value;

/// Set by `make tables`: the picture is written instead of compared.
const WRITE: &str = "LUC_WRITE_DOCS";
const BEGIN: &str = "<!-- arrows -->\n";
const END: &str = "<!-- /arrows -->\n";
/// Lines of a crate's sources, tests apart.
const MAX_LINES: usize = 12_000;

/// A package of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
    /// All its libraries, of the workspace and not; tests' and builds' apart.
    uses: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().map(package).collect()
}

fn package(package: &Value) -> Package {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let uses = package["dependencies"].as_array().expect("dependencies");
    Package {
        name: short(&text(&package["name"])),
        folder: Path::new(&text(&package["manifest_path"])).parent().expect("a folder").to_owned(),
        uses: uses
            .iter()
            .filter(|one| one["kind"].is_null())
            .map(|one| short(&text(&one["name"])))
            .collect(),
    }
}

fn short(name: &str) -> String {
    name.strip_prefix("luc-").unwrap_or(name).to_owned()
}

/// The arrows of the workspace's packages among themselves.
fn arrows(packages: &[Package]) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeSet<&String> = packages.iter().map(|package| &package.name).collect();
    let ours = |package: &Package| {
        let uses = package.uses.iter().filter(|name| names.contains(name));
        uses.cloned().collect()
    };
    packages.iter().map(|package| (package.name.clone(), ours(package))).collect()
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md")
}

/// What the table allows, by folder; `None` for a crate that may use all.
fn allowed(text: &str) -> BTreeMap<PathBuf, Option<BTreeSet<String>>> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let folder = cells.next()?.trim().trim_matches('`').to_owned();
        let last = cells.rfind(|cell| !cell.trim().is_empty())?;
        let names = last.split(',').map(|name| name.trim().to_owned());
        let all = last.trim().starts_with("all");
        Some((PathBuf::from(folder), (!all).then(|| names.collect())))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_arrow_is_in_the_table() {
    let packages = packages();
    let (arrows, allowed) = (arrows(&packages), allowed(&architecture()));
    let root = root().canonicalize().expect("the root");
    for package in &packages {
        let folder = package.folder.strip_prefix(&root).expect("below the root");
        let row = allowed.get(folder);
        let row = row.unwrap_or_else(|| panic!("{}: no row in ARCHITECTURE.md", folder.display()));
        for used in &arrows[&package.name] {
            let may = row.as_ref().is_none_or(|names| names.contains(used));
            assert!(may, "{} -> {used} is not in ARCHITECTURE.md", package.name);
            assert_ne!(used, "evaluate", "{}: what proves is not linked", package.name);
        }
    }
}

#[test]
fn libraries_leave_the_command_line_and_the_terminal_alone() {
    for package in packages() {
        // vm has a program of its own for those who work on the module; twin is one that is evaluated with.
        let is_program = ["luc", "fleet", "fleet-store", "evaluate", "twin", "vm"]
            .contains(&package.name.as_str());
        // They work on definitions of command lines.
        let has_command_line = is_program || ["cli", "testkit"].contains(&package.name.as_str());
        assert!(has_command_line || !package.uses.contains("clap"), "{}", package.name);
        let has_terminal = is_program || ["top", "harness"].contains(&package.name.as_str());
        for library in ["ratatui", "indicatif"] {
            assert!(has_terminal || !package.uses.contains(library), "{}", package.name);
        }
    }
}

#[test]
fn a_package_has_the_name_of_its_folder() {
    for package in packages() {
        let folder = package.folder.display().to_string();
        let name = package.name.replace('-', "/");
        assert!(folder.ends_with(&name), "{}: {folder}", package.name);
    }
}

#[test]
fn no_crate_is_too_large() {
    for package in &packages() {
        let lines = lines(&package.folder.join("src"));
        assert!(lines <= MAX_LINES, "{}: {lines} lines", package.name);
    }
}

#[test]
fn no_file_imports_itself_by_others() {
    for package in &packages() {
        let circle = Crate::read(&package.folder.join("src")).circle();
        assert_eq!(circle, None, "{}", package.name);
    }
}

/// Lines of Rust below a folder, without tests.
fn lines(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("listed").flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_test = name.starts_with("tests") || name.ends_with("_tests.rs");
            if path.is_dir() && !is_test {
                return lines(&path);
            }
            if is_test || !name.ends_with(".rs") {
                return 0;
            }
            let text = fs::read_to_string(&path).expect("read");
            let code = text.split("#[cfg(test)]\nmod tests {").next();
            code.unwrap_or_default().lines().count()
        })
        .sum()
}

/// The arrows as a Mermaid graph, without those that follow from others.
fn picture(arrows: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = format!("{BEGIN}```mermaid\ngraph TD\n");
    for (name, uses) in arrows {
        let follows = |used: &&String| {
            let others = uses.iter().filter(|other| other != used);
            others.into_iter().any(|other| reaches(arrows, other, used))
        };
        for used in uses.iter().filter(|used| !follows(used)) {
            writeln!(text, "    {name} --> {used}").expect("a text");
        }
    }
    text + "```\n" + END
}

fn reaches(arrows: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let uses = &arrows[from];
    uses.contains(to) || uses.iter().any(|used| reaches(arrows, used, to))
}

#[test]
fn the_picture_is_that_of_the_arrows() {
    let text = architecture();
    let (begin, end) = (text.find(BEGIN), text.find(END));
    let (begin, end) = begin.zip(end).expect("a place for the picture");
    let end = end + END.len();
    let picture = picture(&arrows(&packages()));
    if std::env::var_os(WRITE).is_some() {
        let new = [&text[..begin], &picture, &text[end..]].concat();
        fs::write(root().join("ARCHITECTURE.md"), new).expect("written");
    } else {
        assert!(text[begin..end] == picture, "run `make tables`");
    }
}
