//! Parses unit files and drop-ins: assignments in their sections, with values as they are written.

use std::path::{Path, PathBuf};

/// A file of a unit: its own, or a drop-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFile {
    pub path: PathBuf,
    assignments: Vec<Assignment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Assignment {
    section: String,
    key: String,
    value: String,
}

impl UnitFile {
    /// Parses a file's text. A line that ends in a backslash goes on in the next one (systemd.syntax(7)). Comments in
    /// between are left out. Lines without an assignment are passed over.
    #[must_use]
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut assignments = Vec::new();
        let mut section = String::new();
        let mut continued: Option<String> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.starts_with(['#', ';']) {
                continue;
            }
            let mut whole = continued.take().unwrap_or_default();
            whole.push_str(if whole.is_empty() { line.trim_start() } else { line });
            if let Some(begun) = whole.strip_suffix('\\').filter(|_| !ends_escaped(&whole)) {
                continued = Some(format!("{begun} "));
                continue;
            }
            note(&mut assignments, &mut section, &whole);
        }
        if let Some(whole) = continued {
            note(&mut assignments, &mut section, &whole);
        }
        Self { path: path.to_owned(), assignments }
    }

    /// The values of a key, in order.
    pub fn values<'a>(&'a self, section: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.assignments
            .iter()
            .filter(move |one| one.section == section && one.key == key)
            .map(|one| one.value.as_str())
    }
}

/// Whether a line's last backslash is itself escaped.
fn ends_escaped(line: &str) -> bool {
    let backslashes = line.chars().rev().take_while(|&c| c == '\\').count();
    backslashes % 2 == 0
}

fn note(assignments: &mut Vec<Assignment>, section: &mut String, line: &str) {
    let line = line.trim();
    if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        name.clone_into(section);
    } else if let Some((key, value)) = line.split_once('=') {
        assignments.push(Assignment {
            section: section.clone(),
            key: key.trim_end().to_owned(),
            value: value.trim_start().to_owned(),
        });
    }
}

/// The effective values of a key that is a list, over all files in order: an empty value discards those before.
pub fn list<'a>(files: impl IntoIterator<Item = &'a UnitFile>, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for file in files {
        for value in file.values("Service", key) {
            if value.is_empty() {
                values.clear();
            } else {
                values.push(value.to_owned());
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(text: &str) -> UnitFile {
        UnitFile::parse(Path::new("/x"), text)
    }

    #[test]
    fn lines_go_on_and_comments_do_not_count() {
        let text = "[Unit]\nExecStart=no\n[Service]\n# ExecStart=no\nExecStart = /bin/a \\\n  # in between\n  --b \\\n\t'c'\n\
                    ;ExecStart=no\nType=notify\nExecStart=/bin/last \\";
        let file = file(text);
        let values: Vec<_> = file.values("Service", "ExecStart").collect();
        assert_eq!(values, ["/bin/a    --b  \t'c'", "/bin/last"]);
        assert_eq!(file.values("Service", "Type").collect::<Vec<_>>(), ["notify"]);
    }

    #[test]
    fn an_empty_value_forgets_those_before() {
        let (first, second) = (
            file("[Service]\nExecStart=/bin/a\nExecStart=/bin/b"),
            file("[Service]\nExecStart=\nExecStart=/bin/c"),
        );
        assert_eq!(list([&first], "ExecStart"), ["/bin/a", "/bin/b"]);
        assert_eq!(list([&first, &second], "ExecStart"), ["/bin/c"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]=#; \\\\a\n\u{e9}]{0,60}") {
            let _ = list([&file(&text)], "a");
        }
    }
}
