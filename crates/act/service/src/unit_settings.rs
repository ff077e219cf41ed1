//! A unit's properties, as `systemctl show` prints them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::command_line_words::unquote_words;

/// A unit's properties. A missing one reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitSettings(BTreeMap<String, Vec<String>>);

impl UnitSettings {
    /// Reads lines `NAME=VALUE`; a name may come more than once. Other lines are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            all.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Self(all)
    }

    /// Replaces settings by those of `other` that have the same names.
    #[cfg(test)]
    pub(crate) fn replaced_by(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let values = self.0.get(name);
        values.and_then(|values| values.first()).map_or("", String::as_str)
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).into_iter().flatten().map(String::as_str)
    }

    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == "yes"
    }

    /// The words of a property that is a list.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        self.get(name).split_whitespace()
    }

    /// The unit's own name; other names may be aliases.
    #[must_use]
    pub fn id(&self) -> &str {
        self.get("Id")
    }

    /// The paths of the programs that it starts.
    #[must_use]
    pub fn programs(&self) -> Vec<PathBuf> {
        let path = |value: &str| {
            let (_, rest) = value.split_once("path=")?;
            let (path, _) = rest.split_once(" ;")?;
            Some(PathBuf::from(path))
        };
        self.all("ExecStart").filter_map(path).collect()
    }

    /// Variables of the environment, without those from files.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let variable = |word: String| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let words = self.all("Environment").flat_map(unquote_words);
        words.filter_map(variable).collect()
    }

    /// Files with further variables, which override these.
    #[must_use]
    pub fn environment_files(&self) -> Vec<PathBuf> {
        self.all("EnvironmentFiles")
            .map(|value| value.rsplit_once(" (").map_or(value, |(path, _)| path))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .collect()
    }

    /// Whether its filter of system calls lets a call pass.
    #[must_use]
    pub fn lets_pass(&self, call: &str) -> bool {
        list_allows(self.get("SystemCallFilter"), call)
    }

    /// Whether sockets of a family may be made.
    #[must_use]
    pub fn allows_family(&self, family: &str) -> bool {
        list_allows(self.get("RestrictAddressFamilies"), family)
    }
}

/// Whether a list of allowed words, or with a `~` of denied ones, lets a word pass. An empty list lets all pass. A word
/// may have an error number behind it.
fn list_allows(list: &str, word: &str) -> bool {
    let (is_denied, list) = match list.strip_prefix('~') {
        Some(list) => (true, list),
        None => (false, list),
    };
    let is_in = list.split_whitespace().any(|listed| listed.split(':').next() == Some(word));
    if is_denied { !is_in } else { is_in || list.trim().is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_allow_or_deny() {
        assert!(list_allows("", "seccomp"));
        assert!(list_allows("read seccomp:EPERM write", "seccomp"));
        assert!(!list_allows("read write", "seccomp"));
        assert!(!list_allows("~seccomp bpf", "seccomp"));
        assert!(list_allows("~bpf", "seccomp"));
        assert!(list_allows("~", "seccomp"));
    }

    #[test]
    fn programs_and_environment_are_found() {
        let settings = UnitSettings::parse(
            "Id=x.service\nExecStart={ path=/usr/bin/a b ; argv[]=/usr/bin/a b c ; ignore_errors=no }\n\
             ExecStart={ path=/bin/true ; argv[]=/bin/true ; ignore_errors=yes }\n\
             Environment=A=1 \"LD_PRELOAD=/x /y\"\nEnvironmentFiles=/etc/default/a b (ignore_errors=yes)\n\
             no line\n",
        );
        assert_eq!(
            settings.programs(),
            [PathBuf::from("/usr/bin/a b"), PathBuf::from("/bin/true")]
        );
        let environment = settings.environment();
        assert_eq!(environment[1], ("LD_PRELOAD".to_owned(), "/x /y".to_owned()));
        assert_eq!(settings.environment_files(), [PathBuf::from("/etc/default/a b")]);
        assert!(!settings.is_on("Nothing") && settings.id() == "x.service");
    }

    proptest! {
        #[test]
        fn nothing_that_systemctl_may_print_panics(text in "(([A-Z][a-z]{0,4}|ExecStart|Environment(Files)?)=[^\u{0}]{0,30}\n){0,6}") {
            let settings = UnitSettings::parse(&text);
            let _ = (settings.programs(), settings.environment(), settings.environment_files());
            let _ = (settings.lets_pass("read"), settings.allows_family("AF_UNIX"));
        }
    }
}
