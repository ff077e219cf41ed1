use super::columns::{ACTORS, FILE_SYSTEMS, TableColumn};
use super::disk_sharing::SHARED;
use super::part_groups::PartGroup;

const KEYS: &[(&str, &str)] = &[
    ("arrows PgUp PgDn Home End", "select a line"),
    ("Tab", "the other table"),
    ("F1 h ?", "this help"),
    ("F3 /", "search; F3 or n: the next one"),
    ("F4 \\", "show only lines with a text; Esc: all again"),
    ("F6 >", "choose the column to sort by; I inverts the order"),
    ("H", "threads instead of processes"),
    ("Space Z", "pause, and go on"),
    ("+ - d", "time between two refreshes: double, half, in seconds"),
    ("Ctrl-L", "draw anew"),
    ("F10 q Ctrl-C", "quit"),
];

/// Returns the lines of the help.
pub(super) fn lines(missing: &[String]) -> Vec<String> {
    let mut lines = keys(KEYS);
    for (title, about) in [
        ("File systems", columns(11, FILE_SYSTEMS)),
        ("Processes", columns(11, ACTORS)),
        ("Disks that tasks share, where they contend", columns(11, SHARED)),
    ] {
        lines.push(title.to_owned());
        lines.extend(about);
        lines.push(String::new());
    }
    let letters: Vec<String> = PartGroup::ALL.iter().map(|group| group.name().to_owned()).collect();
    lines.push(format!("Bars, from the left: {}.", letters.join(", ")));
    lines
        .push("Findings, EFFIC, SWITCH: of the last 10 to 20 s; figures are 1.4 s old.".to_owned());
    lines.push(
        "luc throttle top shows cgroups on shared disks, and what the throttle does.".to_owned(),
    );
    if !missing.is_empty() {
        lines.push(String::new());
        lines.push("What cannot be recorded here".to_owned());
        lines.extend(missing.iter().cloned());
    }
    lines
}

/// Describes keys, a line each, with an empty line after them.
pub(super) fn keys(keys: &[(&str, &str)]) -> Vec<String> {
    let lines = keys.iter().map(|(keys, what)| format!("{keys:<26} {what}"));
    lines.chain([String::new()]).collect()
}

/// Describes columns, a line each, with titles of `width` characters.
pub(super) fn columns<R>(width: usize, columns: &[TableColumn<R>]) -> Vec<String> {
    let line = |column: &TableColumn<R>| format!("  {:<width$} {}", column.title, column.about);
    columns.iter().map(line).collect()
}
