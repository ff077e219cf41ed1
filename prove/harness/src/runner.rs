//! Runs subjects under settings, interleaved in rounds, as the section `[run]` of a part's page says.
//!
//! ```toml
//! [run]
//! rounds = 10                    # --repeats changes it
//! seconds = 5                    # {{ seconds }}; --seconds changes it
//!
//! [[run.once]]                   # before all runs: here {{ creator }} becomes the path of a program
//! name = "creator"
//! shell = "cc -O2 -o {{ work }}/creator {{ subjects }}/creator.c"
//! value = "work ~ '/creator'"
//!
//! [run.all]                      # what every run does, then what a subject's and a setting's do instead
//! disk = "{{ ext4 }}"
//! command = "{{ under }} {{ creator }} {{ mount }} {{ threads }} {{ seconds }}"
//! figures = { per_s = "number(stdout)" }
//!
//! [[run.subject]]
//! name = "16 threads"
//! set = { threads = 16 }
//!
//! [[run.setting]]
//! name = "stock"
//! set = { under = "" }
//!
//! [[run.setting]]
//! name = "gate"
//! set = { under = "{{ luc }} run --quiet --" }
//! ```
//!
//! Texts are templates; what says whether, how often or how much is an expression (`templates` has the functions).
//! `RunPlan` and `layer` have all keys, `order` makes the order, `trial` one run. `beside` is a program that runs
//! meanwhile, `guest` a boot instead of a command. Programs and scripts are in `prove/subjects`.
//!
//! # Variables
//!
//! - Of the measurement: `seconds`, `cuts`, `repeats`, `seed`, `round`, `subject`, `setting`, those of `set` and `once`.
//! - Files: `luc`, `library` beside it, `self` (this program), `work` (a folder), `subjects`, `root` of the sources.
//! - Words of a disk: `ext4`, and `on_ext4` after another model. On a disk: `mount` and `device`.
//! - After the run: `stdout` (also in `work/output`), `said`, `status`, `took_s`, `beside`, `flushes`, `commits`.
//! - After a guest's run: `text`, `files`, `warnings`, `complaints`, `release`, `wall_s`.
//!
//! # Raw data
//!
//! A record has the keys (default: `cell`, `setting`, `repeat`) and figures of its run, and always `command`,
//! `started`, `took_s`, `load`, `stolen_share` and `disturbed`. A disturbed run is kept and made again.
//! Raw data of an interrupted measurement give the runs that they have.

mod beside;
mod guest;
mod layer;
mod order;
mod templates;
mod trial;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::disks::{Disk, DiskSpec, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, elements};
use guest::Kernels;
use layer::Layer;
use templates::{Templates, Variables};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Folder of the programs and scripts that are measured, below the root.
const SUBJECTS: &str = "prove/subjects";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RunPlan {
    rounds: usize,
    #[serde(default)]
    seconds: f64,
    /// Whether idle processors poll.
    #[serde(default)]
    awake: bool,
    /// Whether users without rights pass through the work directory.
    #[serde(default)]
    open: bool,
    #[serde(default)]
    order: Order,
    /// Setting that begins and ends a subject's runs of a round.
    around: Option<String>,
    /// Extent of what ends before another begins: a round, or all of a subject.
    #[serde(default = "round")]
    by: Extent,
    #[serde(default = "round")]
    disk_for: Extent,
    /// Whether a run is made again if too much processor time was stolen during it.
    #[serde(default = "yes")]
    timed: bool,
    /// Whether a run of the raw data has `key` and `result`.
    #[serde(default)]
    keyed: bool,
    /// Template of a run's figure.
    #[serde(default)]
    progress: String,
    #[serde(default)]
    once: Vec<Once>,
    #[serde(default)]
    all: Layer,
    #[serde(default)]
    subject: Vec<Layer>,
    #[serde(default)]
    setting: Vec<Layer>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    #[default]
    Random,
    Listed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Extent {
    Round,
    Subject,
    Part,
}

const fn yes() -> bool {
    true
}

const fn round() -> Extent {
    Extent::Round
}

/// A variable that a shell command finds before all runs: a program that it compiles, a rate that it calibrates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Once {
    name: String,
    shell: String,
    /// Expression; default: the output.
    value: Option<String>,
    /// Whether it is `none` if the command fails.
    #[serde(default)]
    optional: bool,
    /// Whether it is in the raw data, too.
    #[serde(default)]
    keep: bool,
}

struct Runner<'a> {
    harness: &'a Harness,
    plan: RunPlan,
    templates: Templates,
    base: Variables,
    /// Disks by their words.
    disks: RefCell<Vec<(Vec<String>, Disk<'a>)>>,
    /// Subjects that are prepared, each with its disk's words.
    prepared: RefCell<Vec<(Vec<String>, String)>>,
    kernels: Kernels,
    /// Runs of an interrupted measurement.
    earlier: Vec<Value>,
    partial: PathBuf,
}

/// Reads the section `[run]` of a part's page.
///
/// # Errors
/// A file that is not there, or a section that is not as it must be.
pub fn section<T: DeserializeOwned>(part: &'static str) -> Result<T, EvaluateError> {
    #[derive(Deserialize)]
    struct File<T> {
        run: T,
    }
    let path = Path::new(ROOT).join("prove/parts").join(format!("{part}.toml"));
    let text = fs::read_to_string(&path).map_err(EvaluateError::file("read", &path))?;
    let file: Result<File<T>, _> = toml::from_str(&text);
    file.map(|file| file.run)
        .map_err(|error| EvaluateError::Run { part, reason: error.to_string() })
}

/// Makes the runs that the section `[run]` of the part's page says.
///
/// # Errors
/// As [`run_with`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    run_with(harness, Variables::new())
}

/// Makes the runs as [`run`] does, with more variables.
///
/// # Errors
/// A section that is wrong, a command that fails, a figure that is missing, and interruption.
pub fn run_with(harness: &Harness, more: Variables) -> Result<(), EvaluateError> {
    run_plan(harness, section(harness.part)?, more)
}

fn run_plan(harness: &Harness, plan: RunPlan, more: Variables) -> Result<(), EvaluateError> {
    // 1. A copy of the programs and scripts: an edit during the measurement changes nothing.
    let subjects = harness.path("subjects");
    let mut copy = Command::new("cp");
    copy.args(["-r", &format!("{ROOT}/{SUBJECTS}")]).arg(&subjects);
    harness.execute(&mut copy, &[0])?;
    let options = &harness.options;
    let library = options.luc.with_file_name("libluc_gate_preload.so");
    let on_ext4 = DiskSpec { model: &[], ..EXT4 };
    let mut base = more;
    base.extend([
        ("luc".to_owned(), json!(options.luc)),
        ("library".to_owned(), json!(library)),
        ("self".to_owned(), json!(options.myself)),
        ("work".to_owned(), json!(harness.folder())),
        ("subjects".to_owned(), json!(subjects)),
        ("root".to_owned(), json!(ROOT)),
        ("seconds".to_owned(), json!(options.seconds.unwrap_or(plan.seconds))),
        ("cuts".to_owned(), json!(options.cuts)),
        ("repeats".to_owned(), json!(options.repeats)),
        ("seed".to_owned(), json!(options.seed)),
        ("ext4".to_owned(), json!(EXT4.text())),
        ("on_ext4".to_owned(), json!(on_ext4.text())),
    ]);
    // 2. What an interrupted measurement with the same options has made.
    let partial = options.out.join("raw").join(format!("{}.partial.json", harness.part));
    let text = fs::read_to_string(&partial).unwrap_or_default();
    let data: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_same = data["options"]["seed"] == json!(options.seed)
        && data["options"]["seconds"] == json!(options.seconds)
        && data["options"]["cuts"] == json!(options.cuts);
    let earlier = elements(&data["runs"]).iter().filter(|_| is_same).cloned().collect();
    let templates = Templates::new(harness.part);
    let mut runner = Runner {
        harness,
        plan,
        templates,
        base,
        disks: RefCell::default(),
        prepared: RefCell::default(),
        kernels: Kernels::default(),
        earlier,
        partial,
    };
    if runner.plan.awake {
        harness.keep_processors_awake()?;
    }
    if runner.plan.open {
        harness.let_others_pass()?;
    }
    // 3. What is made once, and then the runs.
    runner.make_once()?;
    runner.make_all()
}

impl<'a> Runner<'a> {
    fn make_once(&mut self) -> Result<(), EvaluateError> {
        for once in std::mem::take(&mut self.plan.once) {
            let mut with = self.base.clone();
            let value = match self.shell(&once.shell, &with) {
                Ok(said) => {
                    with.insert("stdout".to_owned(), said.trim().into());
                    self.templates.eval(once.value.as_deref().unwrap_or("stdout"), &with)?
                }
                Err(EvaluateError::Command { said, .. }) if once.optional => {
                    eprintln!("{}: without {}: {said}", self.harness.part, once.name);
                    Value::Null
                }
                Err(error) => return Err(error),
            };
            if once.keep {
                self.harness.keep(json!({ (&*once.name): value }));
            }
            self.base.insert(once.name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Options;

    fn records(section: &str) -> Vec<Value> {
        let out = tempfile::tempdir().expect("a folder");
        fs::create_dir(out.path().join("raw")).expect("made");
        let options = Options {
            luc: PathBuf::from("luc"),
            myself: PathBuf::from("luc-evaluate"),
            out: out.path().to_owned(),
            repeats: None,
            seconds: None,
            cuts: None,
            only: None,
            seed: 1,
            jobs: 1,
            again: false,
            budget: None,
        };
        let harness = Harness::open("test", &options).expect("a folder to work in");
        let plan = || toml::from_str(section).expect("a section");
        run_plan(&harness, plan(), Variables::new()).expect("runs");
        let made = elements(&harness.runs()).to_vec();
        // What is there is not made again.
        let again = Harness::open("test", &options).expect("a folder to work in");
        run_plan(&again, plan(), Variables::new()).expect("runs");
        let started =
            |runs: &[Value]| runs.iter().map(|run| run["started"].clone()).collect::<Vec<_>>();
        assert_eq!(started(&made), started(elements(&again.runs())));
        made
    }

    #[test]
    fn a_setting_is_around_the_others_in_each_round() {
        let made = records(
            r#"
            rounds = 2
            around = "bare"
            timed = false
            once = [{ name = "two", shell = "echo 2" }]
            subject = [{ name = "a", set = { size = 3 } }]
            setting = [
                { name = "bare" }, { name = "one", set = { by = "{{ two }}", extra = "= by ~ size" } },
                { name = "never", when = "size > 3" },
            ]
            [all]
            set = { by = "1", extra = "" }
            command = "printf '%s\\n' '{{ size }} {{ by }} {{ extra }}'"
            figures = { said_words = "stdout|split|list", times = "number(stdout) * 2" }
            "#,
        );
        let settings: Vec<&str> = made.iter().filter_map(|run| run["setting"].as_str()).collect();
        assert_eq!(settings, ["bare", "one", "bare", "bare", "one", "bare"]);
        assert_eq!(made[1]["said_words"], json!(["3", "2", "23"]));
        assert_eq!((&made[0]["times"], &made[3]["repeat"]), (&json!(6.0), &json!(1)));
        assert_eq!(made[0]["command"], "printf %s\\n '3 1 '");
        assert!(made[0]["started"].is_string() && made[0]["disturbed"] == json!(false));
    }

    #[test]
    fn a_failed_run_may_be_a_result() {
        let made = records(
            r#"
            rounds = 1
            keyed = true
            timed = false
            [all]
            keys = { name = "'x'" }
            beside = "trap 'exit 0' INT; echo begun with it; while sleep 0.01; do :; done"
            statuses = []
            command = "sh -c 'exit 3'"
            figures = { status = "status", beside = "beside", "*" = "{'more': 1}" }
            "#,
        );
        assert_eq!(made[0]["key"], json!({ "name": "x" }));
        let result = &made[0]["result"];
        assert_eq!((&result["status"], &result["more"]), (&json!(3), &json!(1)));
        assert_eq!(result["beside"], "begun with it\n");
        assert_eq!(result["disturbed"], json!([]));
    }

    #[test]
    fn each_section_is_one() {
        let folder = Path::new(ROOT).join("prove/parts");
        let mut sections = 0;
        for entry in fs::read_dir(folder).expect("parts").flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let page: toml::Table = toml::from_str(&text).expect("a page");
            let Some(run) = page.get("run").filter(|run| run.get("rounds").is_some()) else {
                continue;
            };
            let plan: Result<RunPlan, _> = run.clone().try_into();
            plan.unwrap_or_else(|error| panic!("{}: {error}", entry.path().display()));
            sections += 1;
        }
        assert!(sections >= 12, "{sections}");
    }
}
