//! The arrows between crates are those that the documentation allows: ARCHITECTURE.md between folders, a folder's
//! README between its crates. `make tables` draws the picture of the folders anew.

mod import_circles;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use import_circles::CrateSources;
use serde_json::Value;

/// Set by `make tables`: the picture is written instead of compared.
const WRITE: &str = "LUC_WRITE_DOCS";
const BEGIN: &str = "<!-- arrows -->\n";
const END: &str = "<!-- /arrows -->\n";
/// The columns of the tables of folders, of exceptions and of crates.
const FOLDERS: &str = "| folder | what it is | may use |";
const EXCEPTIONS: &str = "| crate | uses | why |";
const CRATES: &str = "| crate | what it is | may use |";
/// Lines of ARCHITECTURE.md: more is no map.
const MAX_MAP_LINES: usize = 90;

/// A package of the workspace.
struct Package {
    name: String,
    /// Below the workspace's root.
    folder: PathBuf,
    /// All its libraries, of the workspace and not; tests' and builds' apart.
    uses: BTreeSet<String>,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root")
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
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let folder = manifest.parent().expect("a folder").strip_prefix(root());
    Package {
        name: short(&text(&package["name"])),
        folder: folder.expect("below the root").to_owned(),
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

/// The arrows of the workspace's packages among themselves: from, to.
fn arrows(packages: &[Package]) -> Vec<(&Package, &Package)> {
    let users = packages.iter();
    users
        .flat_map(|package| {
            let used = packages.iter().filter(|other| package.uses.contains(&other.name));
            used.map(move |used| (package, used))
        })
        .collect()
}

/// The folder that a package belongs to: `crates/act`, `crates/luc`, `vm`, `prove`.
fn top(folder: &Path) -> PathBuf {
    let depth = if folder.starts_with("crates") { 2 } else { 1 };
    folder.components().take(depth).collect()
}

/// Name of a package's folder in tables and in the picture: `act`, `luc`, `vm`, `prove`.
fn short_top(folder: &Path) -> String {
    let top = top(folder);
    top.file_name().expect("a name").to_string_lossy().into_owned()
}

fn read(page: &Path) -> String {
    let path = root().join(page);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn architecture() -> String {
    read(Path::new("ARCHITECTURE.md"))
}

/// The cells of a table's rows.
fn table(text: &str, columns: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip_while(|line| *line != columns).skip(2);
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "no table {columns}");
    assert!(rows.iter().all(|row| row.len() == 3), "{columns}: three cells a row");
    rows
}

/// The name that a cell has in backticks.
fn name(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap_or_else(|| panic!("no name in backticks: {cell}"))
}

/// Names that a cell enumerates; none for `-`.
fn names(cell: &str) -> BTreeSet<String> {
    let names = cell.split(',').map(str::trim);
    names.filter(|name| *name != "-").map(str::to_owned).collect()
}

/// The folders that each folder may use.
struct Law {
    folders: BTreeMap<PathBuf, BTreeSet<String>>,
    /// A crate, and a folder that it uses all the same.
    exceptions: BTreeSet<(PathBuf, String)>,
}

impl Law {
    fn read() -> Self {
        let text = architecture();
        let folders = table(&text, FOLDERS);
        let exceptions = table(&text, EXCEPTIONS);
        Self {
            folders: folders
                .iter()
                .map(|row| (PathBuf::from(name(&row[0])), names(&row[2])))
                .collect(),
            exceptions: exceptions
                .iter()
                .map(|row| (PathBuf::from(name(&row[0])), row[1].clone()))
                .collect(),
        }
    }

    /// Whether an arrow is allowed without an exception. The row of the smallest folder counts.
    fn allows(&self, from: &Path, to: &Path) -> bool {
        let rows = self.folders.iter().filter(|(folder, _)| from.starts_with(folder));
        let row = rows.max_by_key(|(folder, _)| folder.components().count());
        let (folder, may_use) = row.unwrap_or_else(|| panic!("{}: no row", from.display()));
        to.starts_with(folder) || may_use.contains(&short_top(to))
    }

    fn excepts(&self, from: &Path, to: &Path) -> bool {
        self.exceptions.contains(&(from.to_owned(), short_top(to)))
    }
}

#[test]
fn every_arrow_between_folders_is_allowed() {
    let (packages, law) = (packages(), Law::read());
    let mut excepted = BTreeSet::new();
    for (from, to) in arrows(&packages) {
        let (from, to) = (&from.folder, &to.folder);
        if law.allows(from, to) {
            continue;
        }
        let (from_name, to_name) = (from.display(), to.display());
        assert!(law.excepts(from, to), "{from_name} -> {to_name} is not in ARCHITECTURE.md");
        excepted.insert((from.clone(), short_top(to)));
    }
    assert_eq!(excepted, law.exceptions, "an exception that nobody needs any more");
}

/// The folders whose README has a table of crates.
fn folders(packages: &[Package]) -> BTreeSet<PathBuf> {
    let inner = packages.iter().filter(|package| top(&package.folder) != package.folder);
    inner.map(|package| top(&package.folder)).collect()
}

/// The rows of a folder's README: a crate's folder, what it is, what it may use.
fn crates(folder: &Path) -> Vec<(PathBuf, String, BTreeSet<String>)> {
    let rows = table(&read(&folder.join("README.md")), CRATES);
    let rows = rows.into_iter();
    rows.map(|row| (folder.join(name(&row[0])), row[1].clone(), names(&row[2]))).collect()
}

#[test]
fn every_arrow_of_a_crate_is_in_its_folders_table() {
    let packages = packages();
    let folders = folders(&packages);
    let rows = folders.iter().flat_map(|folder| crates(folder));
    let mut rows: BTreeMap<PathBuf, BTreeSet<String>> =
        rows.map(|(folder, _, may_use)| (folder, may_use)).collect();
    for (from, to) in arrows(&packages) {
        if top(&from.folder) == from.folder {
            continue;
        }
        let may_use = rows.get(&from.folder);
        let may_use = may_use.unwrap_or_else(|| panic!("{}: no row", from.folder.display()));
        assert!(may_use.contains(&to.name), "{} -> {}: no arrow", from.name, to.name);
    }
    for package in packages.iter().filter(|package| top(&package.folder) != package.folder) {
        assert!(rows.remove(&package.folder).is_some(), "{}: no row", package.folder.display());
    }
    assert_eq!(rows.keys().next(), None, "a row of no crate");
}

#[test]
fn a_crate_is_one_thing() {
    for (crate_folder, what, _) in folders(&packages()).iter().flat_map(|folder| crates(folder)) {
        let says_and = what.split_whitespace().any(|word| word == "and");
        assert!(!says_and, "{}: {what}", crate_folder.display());
    }
}

/// Files under "Start reading" in a folder's README, each with its function if one is named.
fn starts(text: &str) -> Vec<(String, Option<String>)> {
    let (_, paragraph) = text.split_once("- Start reading:").expect("where to start reading");
    let paragraph = paragraph.split("\n\n").next().unwrap_or_default();
    let links = paragraph.split("](").skip(1);
    links
        .filter_map(|rest| rest.split_once(')'))
        .map(|(file, rest)| {
            let function = rest.trim_start().strip_prefix('`');
            let function = function.and_then(|rest| rest.split('`').next());
            (file.to_owned(), function.map(str::to_owned))
        })
        .collect()
}

#[test]
fn where_to_start_reading_is_there() {
    for folder in folders(&packages()) {
        let text = read(&folder.join("README.md"));
        assert!(text.contains("\n- In: ") && text.contains("\n- Out: "), "{}", folder.display());
        for (file, function) in starts(&text) {
            let Some(function) = function else {
                continue;
            };
            let code = read(&folder.join(&file));
            assert!(code.contains(&format!("fn {function}")), "{file}: no {function}");
        }
    }
}

#[test]
fn libraries_leave_the_command_line_and_the_terminal_alone() {
    for package in packages() {
        // vm has a program of its own for those who work on the module; twin is one that is evaluated with.
        let is_program = ["luc", "fleet", "fleet-store", "evaluate", "twin", "vm"]
            .contains(&package.name.as_str());
        // They work on definitions of command lines; evaluate-fleet has those of its helper processes.
        let has_command_line =
            is_program || ["cli", "testkit", "evaluate-fleet"].contains(&package.name.as_str());
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
fn no_file_imports_itself_by_others() {
    let circle = |package: &Package| {
        let circle = CrateSources::read(&root().join(&package.folder).join("src")).circle()?;
        Some(format!("{}: {}", package.name, circle.join(" -> ")))
    };
    let circles: Vec<String> = packages().iter().filter_map(circle).collect();
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn the_map_fits_a_screen() {
    let lines = architecture().lines().count();
    assert!(lines <= MAX_MAP_LINES, "ARCHITECTURE.md: {lines} lines");
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The folders' arrows as a Mermaid graph, without those that follow from others. Exceptions are dotted.
fn picture(packages: &[Package], law: &Law) -> String {
    let (mut solid, mut dotted) = (Arrows::new(), Arrows::new());
    for (from, to) in arrows(packages) {
        let (from_top, to_top) = (short_top(&from.folder), short_top(&to.folder));
        if from_top == to_top {
            continue;
        }
        let is_exception = law.excepts(&from.folder, &to.folder);
        let arrows = if is_exception { &mut dotted } else { &mut solid };
        arrows.entry(from_top).or_default().insert(to_top);
    }
    let mut text = format!("{BEGIN}```mermaid\ngraph TD\n");
    for (from, uses) in &solid {
        let follows = |used: &String| {
            let mut others = uses.iter().filter(|other| *other != used);
            others.any(|other| reached(&solid, other).contains(used))
        };
        for used in uses.iter().filter(|used| !follows(used)) {
            writeln!(text, "    {from} --> {used}").expect("a text");
        }
    }
    for (from, uses) in &dotted {
        for used in uses {
            writeln!(text, "    {from} -.-> {used}").expect("a text");
        }
    }
    text + "```\n" + END
}

fn reached<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(from) = next.pop() {
        for used in arrows.get(from).into_iter().flatten() {
            if reached.insert(used) {
                next.push(used);
            }
        }
    }
    reached
}

#[test]
fn the_picture_is_that_of_the_arrows() {
    let text = architecture();
    let (begin, end) = (text.find(BEGIN), text.find(END));
    let (begin, end) = begin.zip(end).expect("a place for the picture");
    let end = end + END.len();
    let picture = picture(&packages(), &Law::read());
    if std::env::var_os(WRITE).is_some() {
        let new = [&text[..begin], &picture, &text[end..]].concat();
        fs::write(root().join("ARCHITECTURE.md"), new).expect("written");
    } else {
        assert!(text[begin..end] == picture, "run `make tables`");
    }
}
