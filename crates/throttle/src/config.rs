//! The daemon's configuration, and what is wrong with it in one line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::Class;
use luc_units::parse_duration_ns;
use serde::Deserialize;

use crate::BATCH_FLOOR;
use crate::threads::is_of_thread;

/// Where it is looked for.
pub const PATH: &str = "/etc/luc/throttle.toml";
/// What `luc throttle install-unit` writes where there is none.
pub const EXAMPLE: &str = include_str!("throttle.toml");

const MAX_FROZEN_NS: u64 = 10_000_000_000;

/// The configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which cgroups are tasks; the first that matches counts.
    pub rules: Vec<Rule>,
    /// Disks by name; none: all.
    pub disks: Vec<String>,
    /// Nobody is frozen longer than this at a time, ns.
    pub max_frozen_ns: u64,
    /// Part of the time that batch gets beside protected tasks at least: 0 to 1.
    pub batch_floor: f64,
    /// Where metrics are written for node_exporter's textfile collector.
    pub metrics: Option<PathBuf>,
}

/// Cgroups that are tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Their paths below the root cgroup, with `*`, `?` and `[...]`.
    pub pattern: String,
    /// How they are treated.
    pub kind: Kind,
}

/// How a cgroup is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What may be done to it.
    pub class: Class,
    /// Its threads take turns as if they were tasks; only batch.
    pub threads: bool,
    /// What 99 of 100 of its waits for a disk are to take at most, ns; only protected.
    pub p99_ns: Option<u64>,
}

/// What is wrong with a configuration.
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
struct File {
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
    pattern: String,
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

impl Config {
    /// Reads one that only its owner can have written.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the line and the nearest name that is known.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |reason: String| ConfigError {
            path: path.to_owned(),
            line: None,
            reason,
        };
        let text = luc_host::owned::read(path)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| {
                failed(
                    "there is no such file; `luc throttle install-unit` writes an example"
                        .to_owned(),
                )
            })?;
        Self::parse(&text, path)
    }

    /// Parses one; `path` is for errors.
    ///
    /// # Errors
    ///
    /// As [`Config::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let failed = |at: Option<usize>, reason: String| ConfigError {
            path: path.to_owned(),
            line: at.map(|at| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1),
            reason,
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            failed(at, with_nearest(error.message()))
        })?;
        let time_ns = |key: &str, given: &Option<toml::Spanned<String>>| {
            let Some(given) = given else { return Ok(None) };
            let at = Some(given.span().start);
            match parse_duration_ns(given.get_ref()) {
                Ok(0) => Err(failed(at, format!("{key} of no time"))),
                Ok(ns) => Ok(Some(ns)),
                Err(error) => Err(failed(at, format!("{key}: {error}"))),
            }
        };
        let max_frozen_ns = time_ns("max_frozen", &file.max_frozen)?.unwrap_or(MAX_FROZEN_NS);
        let batch_floor = match &file.batch_floor {
            None => BATCH_FLOOR,
            Some(given) if (0.0..=1.0).contains(given.get_ref()) => *given.get_ref(),
            Some(given) => {
                let reason = "batch_floor is a part of the time, from 0 to 1, such as 0.1";
                return Err(failed(Some(given.span().start), reason.to_owned()));
            }
        };
        let mut rules = Vec::new();
        for table in file.task {
            let at = Some(table.span().start);
            let table = table.into_inner();
            if let Err(error) = glob::Pattern::new(&table.pattern) {
                return Err(failed(
                    at,
                    format!("match = {:?}: {}", table.pattern, error.msg),
                ));
            }
            let is_below = !table.pattern.is_empty()
                && !table.pattern.starts_with('/')
                && !table.pattern.split('/').any(|part| part == "..");
            if !is_below {
                let reason =
                    "is no path below the root cgroup, such as system.slice/backup-*.service";
                return Err(failed(at, format!("match = {:?} {reason}", table.pattern)));
            }
            let class = match table.class {
                ClassName::Batch => Class::Batch,
                ClassName::Protect => Class::Protected,
                ClassName::Ignore => Class::Ignored,
            };
            if table.threads && class != Class::Batch {
                let reason = "threads = true: only those of class batch take turns";
                return Err(failed(at, reason.to_owned()));
            }
            let p99_ns = time_ns("p99", &table.p99)?;
            if p99_ns.is_some() && class != Class::Protected {
                let reason = "p99: only those of class protect have one to be held";
                return Err(failed(at, reason.to_owned()));
            }
            rules.push(Rule {
                pattern: table.pattern,
                kind: Kind {
                    class,
                    threads: table.threads,
                    p99_ns,
                },
            });
        }
        if !rules.iter().any(|rule| rule.kind.class == Class::Batch) {
            let reason = "no task of class batch: nothing could ever be frozen; add a [[task]] with match and class";
            return Err(failed(None, reason.to_owned()));
        }
        Ok(Self {
            rules,
            disks: file.disks,
            max_frozen_ns,
            batch_floor,
            metrics: file.metrics,
        })
    }
}

impl Config {
    /// Cgroups below `root` that a rule matches, by the first; of one below another only the upper one. Those below
    /// `except` are left out.
    #[must_use]
    pub fn cgroups(&self, root: &Path, except: &Path) -> BTreeMap<PathBuf, Kind> {
        let mut wanted: BTreeMap<PathBuf, Kind> = BTreeMap::new();
        for rule in &self.rules {
            let pattern = root.join(&rule.pattern);
            let found = glob::glob(&pattern.to_string_lossy());
            for path in found.into_iter().flatten().flatten() {
                let is_another = path.is_dir() && !path.starts_with(except);
                if is_another && !is_of_thread(&path) {
                    wanted.entry(path).or_insert(rule.kind);
                }
            }
        }
        let below_another = |path: &Path| {
            path.ancestors()
                .skip(1)
                .any(|above| wanted.contains_key(above))
        };
        // What a protected one in another does is counted as its own.
        let left_out: Vec<PathBuf> = wanted
            .iter()
            .filter(|(path, kind)| kind.class == Class::Batch && below_another(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in left_out {
            wanted.remove(&path);
        }
        wanted
    }
}

/// serde names what is unknown and what is known in backquotes: the nearest one is what was meant.
fn with_nearest(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut quoted = line.split('`').skip(1).step_by(2);
    let nearest = quoted
        .next()
        .filter(|_| line.starts_with("unknown"))
        .and_then(|given| {
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
        let error = Config::parse(text, Path::new("throttle.toml")).expect_err("refused");
        let said = error.to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    const TASK: &str = "[[task]]\nmatch = 'a/*'\nclass = 'batch'\n";

    #[test]
    fn the_example_is_one() {
        let config = Config::parse(EXAMPLE, Path::new("example")).expect("fine");
        assert_eq!(config.max_frozen_ns, MAX_FROZEN_NS);
        let classes: Vec<Class> = config.rules.iter().map(|rule| rule.kind.class).collect();
        assert_eq!(classes, [Class::Protected, Class::Batch]);
        assert_eq!(config.rules[0].kind.p99_ns, Some(20_000_000));
        assert_eq!(config.batch_floor, BATCH_FLOOR);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_the_nearest_name() {
        let text = "[[task]]\nmatsch = 'a'\nclass = 'batch'\n";
        assert!(
            said(text).contains("line 2: unknown field `matsch`"),
            "{}",
            said(text)
        );
        assert!(
            said(text).ends_with("did you mean `match`?"),
            "{}",
            said(text)
        );
        let text = "[[task]]\nmatch = 'a'\nclass = 'bach'\n";
        assert!(
            said(text).ends_with("did you mean `batch`?"),
            "{}",
            said(text)
        );
        let text = format!("max_frozen = '10 parsecs'\n{TASK}");
        assert!(
            said(&text).contains("line 1: max_frozen"),
            "{}",
            said(&text)
        );
        let text = format!("{TASK}[[task]]\nmatch = '/a'\nclass = 'ignore'\n");
        assert!(
            said(&text).contains("below the root cgroup"),
            "{}",
            said(&text)
        );
        let text = format!("{TASK}p99 = '20ms'\n");
        assert!(said(&text).contains("line 1: p99"), "{}", said(&text));
        let text = format!("{TASK}[[task]]\nmatch = 'b'\nclass = 'protect'\np99 = 'soon'\n");
        assert!(said(&text).contains("line 7: p99"), "{}", said(&text));
        let text = format!("batch_floor = 10.0\n{TASK}");
        assert!(
            said(&text).contains("line 1: batch_floor"),
            "{}",
            said(&text)
        );
        let text = "[[task]]\nmatch = 'a[b'\nclass = 'batch'\n";
        assert!(said(text).contains("line 1: match"), "{}", said(text));
        assert!(said("").contains("no task of class batch"), "{}", said(""));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = Config::parse(&text, Path::new("x"));
            let _ = Config::parse(&format!("{TASK}{text}"), Path::new("x"));
        }
    }
}
