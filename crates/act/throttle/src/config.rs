//! The daemon's configuration. Its errors are one line each.

mod brace_patterns;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::TaskClass;
use luc_units::parse_duration_ns;
use serde::Deserialize;

use crate::BATCH_FLOOR;
use crate::thread_tasks::is_of_thread;

/// Path of the configuration file.
pub const PATH: &str = "/etc/luc/throttle.toml";
/// Configuration that `luc throttle install-unit` writes if there is none.
pub const EXAMPLE: &str = include_str!("throttle.toml");

const DEFAULT_MAX_FROZEN_NS: u64 = 10_000_000_000;

/// Rules, disks and limits that the daemon was configured with.
#[derive(Clone, Debug, PartialEq)]
pub struct ThrottleConfig {
    /// Rules that match cgroups to tasks. The first match counts.
    pub rules: Vec<CgroupRule>,
    /// Names of the disks; empty: all disks.
    pub disks: Vec<String>,
    /// Longest freeze of a task, ns.
    pub max_frozen_ns: u64,
    /// Smallest part of the time that batch gets beside protected tasks: 0 to 1.
    pub batch_floor: f64,
    /// File for node_exporter's textfile collector, if metrics are wanted.
    pub metrics: Option<PathBuf>,
}

/// A pattern of cgroups and the treatment of those that match.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupRule {
    /// Paths below the root cgroup, with `*`, `?`, `[...]` and `{a,b}`.
    pub pattern: String,
    /// The pattern without braces: one for each alternative.
    alternatives: Vec<String>,
    pub kind: TaskTreatment,
}

/// Treatment of a task: its class, its threads, its target of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTreatment {
    /// Permission to freeze it.
    pub class: TaskClass,
    /// Whether its threads take turns like tasks; only for batch.
    pub threads: bool,
    /// Target for the 99th percentile of its waits for a disk, ns; only for protected tasks.
    pub p99_ns: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    path: PathBuf,
    line: Option<usize>,
    reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    task: Vec<toml::Spanned<TaskTable>>,
    #[serde(default)]
    disks: Vec<String>,
    max_frozen: Option<toml::Spanned<String>>,
    batch_floor: Option<toml::Spanned<f64>>,
    metrics: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    #[serde(rename = "match")]
    pattern: toml::Spanned<String>,
    class: ClassName,
    #[serde(default)]
    threads: bool,
    p99: Option<toml::Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClassName {
    Batch,
    Protect,
    Ignore,
}

impl ThrottleConfig {
    /// Reads a configuration that only its owner can have written.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the line and the nearest known name.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |reason: String| ConfigError { path: path.to_owned(), line: None, reason };
        let no_file = "there is no such file; `luc throttle install-unit` writes an example";
        let text = luc_host::root_owned::read(path)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed(no_file.to_owned()))?;
        Self::parse(&text, path)
    }

    /// Parses a configuration; `path` is for errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let source = Source { text, path };
        let file: ConfigFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            source.error(at, with_nearest(error.message()))
        })?;
        let max_frozen_ns =
            source.time_ns("max_frozen", &file.max_frozen)?.unwrap_or(DEFAULT_MAX_FROZEN_NS);
        let batch_floor = match &file.batch_floor {
            None => BATCH_FLOOR,
            Some(given) if (0.0..=1.0).contains(given.get_ref()) => *given.get_ref(),
            Some(given) => {
                let reason = "batch_floor is a part of the time, from 0 to 1, such as 0.1";
                return Err(source.error(Some(given.span().start), reason.to_owned()));
            }
        };
        let rules = file.task.into_iter().map(|table| source.rule(table));
        let rules = rules.collect::<Result<Vec<CgroupRule>, ConfigError>>()?;
        if !rules.iter().any(|rule| rule.kind.class == TaskClass::Batch) {
            let reason = "no task of class batch: nothing could ever be frozen; add a [[task]] with match and class";
            return Err(source.error(None, reason.to_owned()));
        }
        Ok(Self { rules, disks: file.disks, max_frozen_ns, batch_floor, metrics: file.metrics })
    }
}

/// Text of a configuration, and the path for its errors.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Source<'_> {
    /// An error at a byte of the text.
    fn error(&self, at: Option<usize>, reason: String) -> ConfigError {
        let lines_before = |at| self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        ConfigError { path: self.path.to_owned(), line: at.map(|at| lines_before(at) + 1), reason }
    }

    fn time_ns(
        &self,
        key: &str,
        given: &Option<toml::Spanned<String>>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(given) = given else { return Ok(None) };
        let at = Some(given.span().start);
        match parse_duration_ns(given.get_ref()) {
            Ok(0) => Err(self.error(at, format!("{key} of no time"))),
            Ok(ns) => Ok(Some(ns)),
            Err(error) => Err(self.error(at, format!("{key}: {error}"))),
        }
    }

    fn rule(&self, table: toml::Spanned<TaskTable>) -> Result<CgroupRule, ConfigError> {
        let at = Some(table.span().start);
        let table = table.into_inner();
        let written = self.text.get(table.pattern.span()).unwrap_or_default();
        let pattern = table.pattern.into_inner();
        // systemd writes such names, and TOML would decode their escapes.
        if written.starts_with('"') && (written.contains("\\x") || written.contains("\\u")) {
            let reason =
                "in double quotes names other characters than it has: write it in single quotes";
            return Err(self.error(at, format!("match = {written} {reason}")));
        }
        let wrong = |what: &str| self.error(at, format!("match = {pattern:?}: {what}"));
        let alternatives = brace_patterns::expand(&pattern).map_err(wrong)?;
        for alternative in &alternatives {
            glob::Pattern::new(alternative).map_err(|error| wrong(error.msg))?;
            let is_below = !alternative.is_empty()
                && !alternative.starts_with('/')
                && !alternative.split('/').any(|part| part == "..");
            if !is_below {
                return Err(wrong(
                    "it is no path below the root cgroup, such as system.slice/backup-*.service",
                ));
            }
        }
        let class = match table.class {
            ClassName::Batch => TaskClass::Batch,
            ClassName::Protect => TaskClass::Protected,
            ClassName::Ignore => TaskClass::Ignored,
        };
        if table.threads && class != TaskClass::Batch {
            let reason = "threads = true: only those of class batch take turns";
            return Err(self.error(at, reason.to_owned()));
        }
        let p99_ns = self.time_ns("p99", &table.p99)?;
        if p99_ns.is_some() && class != TaskClass::Protected {
            let reason = "p99: only those of class protect have one to be held";
            return Err(self.error(at, reason.to_owned()));
        }
        let kind = TaskTreatment { class, threads: table.threads, p99_ns };
        Ok(CgroupRule { pattern, alternatives, kind })
    }
}

/// Name of a class in a configuration.
#[must_use]
pub fn class_name(class: TaskClass) -> &'static str {
    match class {
        TaskClass::Batch => "batch",
        TaskClass::Protected => "protect",
        TaskClass::Ignored => "ignore",
    }
}

impl CgroupRule {
    /// Cgroups below `root` that a rule matches, by the first rule. A batch cgroup below another match is left out.
    /// Those below `except` are left out.
    fn cgroups(&self, root: &Path, except: &Path) -> impl Iterator<Item = PathBuf> {
        let patterns = self.alternatives.iter().map(|one| root.join(one));
        let found = patterns.filter_map(|pattern| glob::glob(&pattern.to_string_lossy()).ok());
        found
            .flatten()
            .flatten()
            .filter(move |path| path.is_dir() && !path.starts_with(except) && !is_of_thread(path))
    }
}

impl ThrottleConfig {
    /// Cgroups below `root` that are tasks, by rule.
    #[must_use]
    pub fn matched(&self, root: &Path) -> Vec<(&CgroupRule, Vec<PathBuf>)> {
        let nowhere = Path::new("/luc-throttle");
        let tasks = self.cgroups(root, nowhere);
        let mut seen = BTreeSet::new();
        let of_rule = |rule: &CgroupRule| -> Vec<PathBuf> {
            let found: BTreeSet<PathBuf> = rule.cgroups(root, nowhere).collect();
            // It may belong to an earlier rule, or to a task above it.
            let own = found.into_iter().filter(|path| tasks.contains_key(path));
            own.filter(|path| seen.insert(path.clone())).collect()
        };
        let found: Vec<_> = self.rules.iter().map(of_rule).collect();
        self.rules.iter().zip(found).collect()
    }

    /// Cgroups below `root` that a rule matches, by the first; of one below another only the upper one. Those below
    /// `except` are left out.
    #[must_use]
    pub fn cgroups(&self, root: &Path, except: &Path) -> BTreeMap<PathBuf, TaskTreatment> {
        let mut wanted: BTreeMap<PathBuf, TaskTreatment> = BTreeMap::new();
        for rule in &self.rules {
            for path in rule.cgroups(root, except) {
                wanted.entry(path).or_insert(rule.kind);
            }
        }
        let below_another =
            |path: &Path| path.ancestors().skip(1).any(|above| wanted.contains_key(above));
        // A protected cgroup below another match stays a task of its own.
        let left_out: Vec<PathBuf> = wanted
            .iter()
            .filter(|(path, kind)| kind.class == TaskClass::Batch && below_another(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in left_out {
            wanted.remove(&path);
        }
        wanted
    }
}

/// Adds the nearest known name to an error of serde, which quotes the unknown and the known names.
fn with_nearest(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut quoted = line.split('`').skip(1).step_by(2);
    let nearest = quoted.next().filter(|_| line.starts_with("unknown")).and_then(|given| {
        quoted.max_by(|a, b| {
            strsim::jaro_winkler(given, a).total_cmp(&strsim::jaro_winkler(given, b))
        })
    });
    match nearest {
        Some(nearest) => format!("{line}; did you mean `{nearest}`?"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let error = ThrottleConfig::parse(text, Path::new("throttle.toml")).expect_err("refused");
        let said = error.to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    const TASK: &str = "[[task]]\nmatch = 'a/*'\nclass = 'batch'\n";

    #[test]
    fn the_example_is_one() {
        let config = ThrottleConfig::parse(EXAMPLE, Path::new("example")).expect("fine");
        assert_eq!(config.max_frozen_ns, DEFAULT_MAX_FROZEN_NS);
        let classes: Vec<TaskClass> = config.rules.iter().map(|rule| rule.kind.class).collect();
        assert_eq!(classes, [TaskClass::Protected, TaskClass::Batch]);
        assert_eq!(config.rules[0].kind.p99_ns, Some(20_000_000));
        assert_eq!(config.batch_floor, BATCH_FLOOR);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_the_nearest_name() {
        let table = |rest: &str| format!("[[task]]\n{rest}\n");
        for (text, error) in [
            (table("matsch = 'a'\nclass = 'batch'"), "line 2: unknown field `matsch`"),
            (table("matsch = 'a'\nclass = 'batch'"), "did you mean `match`?"),
            (table("match = 'a'\nclass = 'bach'"), "did you mean `batch`?"),
            (format!("max_frozen = '10 parsecs'\n{TASK}"), "line 1: max_frozen"),
            (format!("{TASK}[[task]]\nmatch = '/a'\nclass = 'ignore'\n"), "below the root cgroup"),
            (format!("{TASK}p99 = '20ms'\n"), "line 1: p99"),
            (
                format!("{TASK}[[task]]\nmatch = 'b'\nclass = 'protect'\np99 = 'soon'\n"),
                "line 7: p99",
            ),
            (format!("batch_floor = 10.0\n{TASK}"), "line 1: batch_floor"),
            (table("match = 'a[b'\nclass = 'batch'"), "line 1: match"),
            (String::new(), "no task of class batch"),
            (
                table("match = \"system.slice/my\\x2dapp.service\"\nclass = 'batch'"),
                "line 1: match",
            ),
            (
                table("match = \"system.slice/my\\x2dapp.service\"\nclass = 'batch'"),
                "single quotes",
            ),
            (table("match = 'a{b'\nclass = 'batch'"), "a brace"),
            (table("match = '{a,/b}'\nclass = 'batch'"), "below the root"),
        ] {
            assert!(said(&text).contains(error), "{}", said(&text));
        }
    }

    #[test]
    fn each_rule_has_its_cgroups() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["a-1", "a-2", "b", r"my\x2dapp", "c"] {
            std::fs::create_dir(root.path().join(name)).expect("made");
        }
        let text = r#"
            [[task]]
            match = "a-[2]"
            class = "protect"
            [[task]]
            match = '{a-*,b,c/{x,y}}'
            class = "batch"
            [[task]]
            match = 'my\x2dapp'
            class = "batch"
            [[task]]
            match = "nobody"
            class = "ignore""#;
        let config = ThrottleConfig::parse(text, Path::new("x")).expect("fine");
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let name =
                |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
            paths.iter().map(name).collect()
        };
        let found: Vec<_> =
            config.matched(root.path()).into_iter().map(|(_, paths)| names(paths)).collect();
        assert_eq!(found, [vec!["a-2"], vec!["a-1", "b"], vec![r"my\x2dapp"], vec![]]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = ThrottleConfig::parse(&text, Path::new("x"));
            let _ = ThrottleConfig::parse(&format!("{TASK}{text}"), Path::new("x"));
        }
    }
}
