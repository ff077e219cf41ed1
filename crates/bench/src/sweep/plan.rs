//! The plan: read from TOML, and checked whole before anything is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use luc_disk::units::{parse_duration_ns, parse_size_bytes};
use luc_disk::{Mkfs, ModelSpec};
use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::options;
use crate::stats::{FEWEST, Goal};

/// A sweep: its axes, and when a point is repeated enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// Of the order, and of the workloads.
    #[serde(default = "one")]
    pub seed: u64,
    /// Wait after the caches are dropped, before the workload.
    #[serde(default = "settle")]
    pub settle: String,
    /// When to stop.
    #[serde(default)]
    pub stop: Stop,
    /// The emulated disk of the targets with `fs`.
    #[serde(default)]
    pub disk: Disk,
    /// Axis: clients.
    #[serde(default = "one_thread")]
    pub threads: Vec<usize>,
    /// Axis: the gate's policy.
    #[serde(default = "no_policy")]
    pub policy: Vec<Policy>,
    /// Axis: what is run.
    pub workload: Vec<Workload>,
    /// Axis: where.
    pub target: Vec<Target>,
}

/// When a point is repeated enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Half the 95 % interval over the median.
    pub goal: f64,
    /// Fewest repeats.
    pub min: usize,
    /// Most repeats.
    pub max: usize,
}

/// What the emulated disk costs, as `luc disk create` takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Name of the model, or a TOML file.
    pub model: String,
    /// Size, as in 512M.
    pub size: String,
    /// Of a flush; model fixed only, as the next two.
    pub flush: Option<String>,
    /// Of a write.
    pub write: Option<String>,
    /// Of a read.
    pub read: Option<String>,
}

/// The gate, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The workload as it is.
    Off,
    /// Under `luc run --level gate --policy auto`.
    Auto,
}

/// A workload of `luc bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// File creation.
    Metarates,
    /// A mail server.
    Varmail,
    /// A database; the threads are its writers.
    Oltp,
    /// IOzone's.
    InitialWrite,
}

/// What is run: a built-in workload or a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the report calls it.
    pub name: String,
    /// A built-in one.
    pub bench: Option<Bench>,
    /// Its options, as those of `luc bench` without the dashes.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// The user's command; `{dir}`, `{threads}` and `{seed}` are replaced.
    pub command: Option<Vec<String>>,
    /// Its figure; its run time if there is none.
    pub figure: Option<Figure>,
}

/// Where a command's figure is in its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// A regular expression; its first group is the number.
    pub regex: Option<String>,
    /// A JSON pointer, as `/a/b`.
    pub json: Option<String>,
    /// All matches are a series, whose warm-up is cut and whose mean counts.
    #[serde(default)]
    pub series: bool,
    /// What it is counted in.
    #[serde(default)]
    pub unit: String,
}

/// Where it is run: a fresh file system on an emulated disk, or an existing directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What the report calls it.
    pub name: String,
    /// ext4 or xfs.
    pub fs: Option<String>,
    /// Options of mkfs.
    #[serde(default)]
    pub mkfs: String,
    /// Options of mount -o.
    #[serde(default)]
    pub mount: String,
    /// An existing directory; a fresh one is made in it for each repeat.
    pub directory: Option<PathBuf>,
    /// Refused: devices are not formatted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            goal: 0.05,
            min: 10,
            max: 40,
        }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            model: "fixed".to_owned(),
            size: "1G".to_owned(),
            flush: None,
            write: None,
            read: None,
        }
    }
}

fn one() -> u64 {
    1
}

fn one_thread() -> Vec<usize> {
    vec![1]
}

fn no_policy() -> Vec<Policy> {
    vec![Policy::Off]
}

fn settle() -> String {
    "500ms".to_owned()
}

impl Bench {
    /// Its name as in `luc bench NAME`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Metarates => "metarates",
            Self::Varmail => "varmail",
            Self::Oltp => "oltp",
            Self::InitialWrite => "initial-write",
        }
    }
}

impl Policy {
    /// As in the plan.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
        }
    }
}

impl Plan {
    /// The plan in a file, checked.
    ///
    /// # Errors
    /// [`SweepError`], naming the line or the value.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let text = fs::read_to_string(path).map_err(SweepError::file("read", path))?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, SweepError> {
        let plan: Self = toml::from_str(text).map_err(|error| SweepError::Syntax {
            path: path.to_owned(),
            line: 1 + error.span().map_or(0, |span| {
                text[..span.start.min(text.len())].matches('\n').count()
            }),
            reason: reason(error.message()),
        })?;
        plan.check()?;
        Ok(plan)
    }

    /// When a point is repeated enough.
    pub(super) fn goal(&self) -> Goal {
        Goal {
            relative_half_width: self.stop.goal,
            min: self.stop.min,
            max: self.stop.max,
        }
    }

    fn check(&self) -> Result<(), SweepError> {
        let refuse = |reason: String| Err(SweepError::Plan(reason));
        let Stop { goal, min, max } = self.stop;
        if !(goal > 0.0 && goal < 1.0) {
            return refuse(format!("stop.goal = {goal}: write a share such as 0.05"));
        }
        if min < FEWEST || max < min || max > 10_000 {
            return refuse(format!(
                "stop.min = {min}, stop.max = {max}: min is at least {FEWEST} (fewer give no 95 % interval), max at \
                 least min and at most 10000"
            ));
        }
        parse_duration_ns(&self.settle)?;
        axis("threads", self.threads.iter().map(ToString::to_string))?;
        if self.threads.iter().any(|&count| count == 0 || count > 4096) {
            return refuse("threads: write numbers from 1 to 4096".to_owned());
        }
        axis(
            "policy",
            self.policy.iter().map(|policy| policy.name().to_owned()),
        )?;
        axis(
            "workload",
            self.workload.iter().map(|workload| workload.name.clone()),
        )?;
        axis(
            "target",
            self.target.iter().map(|target| target.name.clone()),
        )?;
        self.workload.iter().try_for_each(Workload::check)?;
        self.target
            .iter()
            .try_for_each(|target| target.check(&self.disk))?;
        if self.target.iter().any(|target| target.fs.is_some()) {
            self.disk.check()?;
        }
        Ok(())
    }

    /// Whether this machine can do it.
    pub(super) fn check_machine(&self) -> Result<(), SweepError> {
        for target in &self.target {
            let Some(fs) = &target.fs else { continue };
            if !rustix::process::geteuid().is_root() {
                return Err(luc_disk::Error::NotRoot.into());
            }
            luc_disk::check_mkfs(&Mkfs {
                fs: fs.clone(),
                options: String::new(),
            })?;
        }
        Ok(())
    }
}

impl Workload {
    fn check(&self) -> Result<(), SweepError> {
        let name = &self.name;
        let refuse = |reason: &str| Err(SweepError::Plan(format!("workload '{name}': {reason}")));
        match (self.bench, &self.command) {
            (Some(bench), None) => {
                if self.figure.is_some() {
                    return refuse("figure goes with a command; a bench has its own");
                }
                for (option, value) in &self.options {
                    options::words(bench, option, value)?;
                }
            }
            (None, Some(command)) => {
                if command.is_empty() || !self.options.is_empty() {
                    return refuse(
                        "write command = [\"program\", \"argument\", ...], without options",
                    );
                }
            }
            _ => return refuse("write either bench or command"),
        }
        let Some(figure) = &self.figure else {
            return Ok(());
        };
        match (&figure.regex, &figure.json) {
            (Some(regex), None) => match regex_lite::Regex::new(regex) {
                Ok(regex) if regex.captures_len() > 1 => Ok(()),
                Ok(_) => refuse("figure.regex has no group: write ( ) around the number"),
                Err(error) => refuse(&format!("figure.regex: {error}").replace('\n', " ")),
            },
            (None, Some(pointer)) if !figure.series && pointer.starts_with('/') => Ok(()),
            _ => refuse(
                "figure: write regex = \"... ([0-9.]+)\", or json = \"/a/b\" (without series)",
            ),
        }
    }
}

impl Target {
    fn check(&self, disk: &Disk) -> Result<(), SweepError> {
        let name = &self.name;
        let refuse = |reason: String| Err(SweepError::Plan(format!("target '{name}': {reason}")));
        if let Some(device) = &self.device {
            return refuse(format!(
                "{}: a sweep formats emulated disks only, never a device; write fs, or mount it yourself and write \
                 directory",
                device.display()
            ));
        }
        match (&self.fs, &self.directory) {
            (Some(fs), None) => {
                let least = match fs.as_str() {
                    "ext4" => "16M",
                    "xfs" => "300M",
                    _ => return refuse(format!("fs = \"{fs}\": write ext4 or xfs")),
                };
                if parse_size_bytes(&disk.size)? < parse_size_bytes(least)? {
                    return refuse(format!(
                        "{fs} needs a disk of {least} or more, and disk.size is {}",
                        disk.size
                    ));
                }
                Ok(())
            }
            (None, Some(_)) if !self.mkfs.is_empty() || !self.mount.is_empty() => {
                refuse("mkfs and mount go with fs, not with a directory".to_owned())
            }
            (None, Some(directory)) if !directory.is_dir() || !directory.is_absolute() => {
                refuse(format!(
                    "{}: write the absolute path of an existing directory",
                    directory.display()
                ))
            }
            (None, Some(_)) => Ok(()),
            _ => refuse("write either fs or directory".to_owned()),
        }
    }
}

impl Disk {
    /// The words of `luc disk create`.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec!["--model".to_owned(), self.model.clone()];
        words.extend(["--size".to_owned(), self.size.clone()]);
        for (option, value) in self.costs() {
            words.extend(
                value
                    .iter()
                    .flat_map(|value| [format!("--{option}"), value.clone()]),
            );
        }
        words
    }

    fn costs(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("flush", &self.flush),
            ("write", &self.write),
            ("read", &self.read),
        ]
    }

    fn check(&self) -> Result<(), SweepError> {
        let path = Path::new(&self.model);
        let model = if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            ModelSpec::from_toml_file(path)?
        } else {
            ModelSpec::from_name(&self.model)?
        };
        let size_bytes = parse_size_bytes(&self.size)?;
        if size_bytes > 1 << 44 || !size_bytes.is_multiple_of(4096) {
            return Err(luc_disk::Error::Size(size_bytes).into());
        }
        for (option, value) in self.costs() {
            let Some(value) = value else { continue };
            parse_duration_ns(value)?;
            if model.name() != "fixed" {
                return Err(SweepError::Plan(format!(
                    "disk.{option} does not go with model '{}': leave it out, or write model = \"fixed\"",
                    model.name()
                )));
            }
        }
        Ok(())
    }
}

/// An axis has values, no two of them alike, whose names can be words of a key.
fn axis(name: &str, values: impl Iterator<Item = String>) -> Result<(), SweepError> {
    let mut seen = BTreeSet::new();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    for value in values {
        if value.is_empty() || !value.chars().all(plain) {
            return Err(SweepError::Plan(format!(
                "{name} '{value}': a name has letters, digits, '.', '_', '+' and '-'"
            )));
        }
        if !seen.insert(value.clone()) {
            return Err(SweepError::Plan(format!(
                "{name} '{value}' is there twice: keep one"
            )));
        }
    }
    if seen.is_empty() {
        return Err(SweepError::Plan(format!(
            "{name} has no value: write at least one"
        )));
    }
    Ok(())
}

/// What serde says, in one line, with the nearest name where one is unknown: the first name in backquotes is the one
/// given, the others are known.
fn reason(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.as_slice() {
        [given, known @ ..] if message.starts_with("unknown ") => {
            format!("{message}{}", nearest(given, known))
        }
        _ => format!("{message}; see `luc sweep --help`"),
    }
}

/// `; did you mean 'x'?`, if any name looks like the one given; else all names.
pub(super) fn nearest(given: &str, known: &[&str]) -> String {
    let alike = |name: &&str| strsim::jaro_winkler(given, name);
    let best = known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match best.filter(|name| alike(name) > 0.7) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => format!("; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "
threads = [1, 4]
policy = ['off', 'auto']
[stop]
goal = 0.1
min = 6
max = 12
[disk]
size = '64M'
flush = '1ms'
[[workload]]
name = 'create'
bench = 'metarates'
options = { seconds = 0.5, file-size = '1k' }
[[target]]
name = 'ext4'
fs = 'ext4'
";

    fn refusal(from: &str, to: &str) -> String {
        let text = WHOLE.replace(from, to);
        assert_ne!(text, WHOLE);
        let error = Plan::parse(&text, Path::new("p.toml")).expect_err("refused");
        let said = error.to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    #[test]
    fn a_whole_plan() {
        let plan = Plan::parse(WHOLE, Path::new("p.toml")).expect("fine");
        assert_eq!(plan.threads, [1, 4]);
        assert_eq!(plan.workload[0].bench, Some(Bench::Metarates));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, words) in [
            (
                "threads",
                "thread",
                &["p.toml:2:", "`thread`", "'threads'"][..],
            ),
            ("goal", "gaol", &["p.toml:5:", "'goal'"]),
            ("metarates", "metarate", &["p.toml:13:", "'metarates'"]),
            ("file-size", "filesize", &["'filesize'", "'file-size'"]),
            ("'1k'", "'1x'", &["file-size", "1x"]),
            ("0.5", "-1", &["seconds"]),
            ("min = 6", "min = 5", &["stop.min = 5"]),
            ("size = '64M'", "size = '4M'", &["ext4", "16M", "4M"]),
            ("'1ms'", "'1 mile'", &["1 mile"]),
            ("[1, 4]", "[4, 4]", &["twice"]),
            ("[1, 4]", "[]", &["no value"]),
            ("fs = 'ext4'", "fs = 'vfat'", &["vfat", "xfs"]),
            (
                "fs = 'ext4'",
                "device = '/dev/sda'",
                &["/dev/sda", "emulated"],
            ),
            ("fs = 'ext4'", "directory = '/no/such'", &["/no/such"]),
            (
                "bench = 'metarates'",
                "command = ['x']",
                &["without options"],
            ),
        ] {
            let said = refusal(from, to);
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
}
