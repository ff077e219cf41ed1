//! The help's text.

use super::columns::{Column, FILE_SYSTEMS, PARTIES};
use super::group::Group;
use super::sharing::SHARED;

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

/// The help, line by line.
pub(super) fn lines(missing: &[String]) -> Vec<String> {
    let mut lines: Vec<String> =
        KEYS.iter().map(|(keys, what)| format!("{keys:<26} {what}")).collect();
    lines.push(String::new());
    columns("File systems", FILE_SYSTEMS, &mut lines);
    columns("Processes", PARTIES, &mut lines);
    columns("Disks that tasks share, where they contend", SHARED, &mut lines);
    let letters: Vec<String> = Group::ALL.iter().map(|group| group.name().to_owned()).collect();
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

fn columns<R>(title: &str, columns: &[Column<R>], lines: &mut Vec<String>) {
    lines.push(title.to_owned());
    for column in columns {
        lines.push(format!("  {:<11} {}", column.title, column.about));
    }
    lines.push(String::new());
}
