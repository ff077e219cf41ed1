//! The evaluation: drives the `luc` program as a user would, and compares the results with its targets.
//!
//! `parts` is the table of all parts. A part that compares settings is a plan and claims in `prove/plans`, which
//! `plans` runs and judges. Any other part is a section `[run]` of its page or a file here. Each
//! writes two files: every single run as JSON, and a page with the targets.
//!
//! `luc-harness` runs programs, makes disks and formats pages; its `runner` makes the runs of a part whose page has a
//! section `[run]`. Tasks that share a disk are in `luc-evaluate-throttle`, many hosts in `luc-evaluate-fleet`, their
//! clocks in `luc-evaluate-fleet-clocks`.
//!
//! # Parts that are plans
//!
//! A part that is a plan is a pair of files: `NAME.toml`, a plan that `luc sweep` runs as well, and
//! `NAME.claims.toml`, what is claimed of its figures. `plans` runs the sweep and keeps every repeat's figures as raw
//! data. It makes the page of these alone: `luc-evaluate NAME --again` makes it again without measuring. The other
//! parts drive `luc` in ways that are no sweep: kills, power cuts, planted troubles.

mod coverage;
mod criterion;
mod kills;
pub mod measured;
mod papers;
mod parts;
pub mod personalities;
mod plans;
pub mod plant;
mod services;
pub mod sigkill;
mod sweep_kills;
pub mod synthetic;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};

use luc_claims::PartPage;
use luc_harness::report::Page;
use serde_json::{Value, json};

pub use luc_harness::{EvaluateError, Options};
use luc_harness::{
    disks, error, groups, guests, harness, machine, progress, reports, runner, runs, steal,
    write_json,
};

use harness::{Harness, read_json};
use parts::Made;
pub use parts::{PARTS, Part};

#[derive(Debug, Clone)]
pub struct Verdict {
    pub page: PathBuf,
    /// All targets with their verdicts, one line each.
    pub targets: Vec<String>,
    /// Whether no target was missed.
    pub met: bool,
}

/// Makes one part and writes its page and raw data.
///
/// # Errors
/// [`EvaluateError`]; the runs made until then are in `raw/PART.partial.json`.
pub fn run(part: Part, options: &Options) -> Result<Verdict, EvaluateError> {
    match part.made {
        Made::Here { measure, page, like } => {
            if !options.again {
                here(part, measure, options)?;
            }
            let data = read_json(&options.out.join(format!("raw/{}.json", part.name())))?;
            let page = PartPage::parse(part.name(), page, like.first().copied())?.page(&data)?;
            write_page(part, &page, &made_on(&data), options)
        }
        Made::Planned(planned) => {
            if !options.again {
                let raw = options.out.join("raw");
                fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
                planned.measure(options)?;
            }
            let (page, made) = planned.page(options)?;
            write_page(part, &page, &made, options)
        }
        Made::Judged { paper, page } => papers::run(part, paper, page, options),
    }
}

/// Measures a part, and writes its raw data.
fn here(
    part: Part,
    measure: fn(&Harness) -> Result<(), EvaluateError>,
    options: &Options,
) -> Result<(), EvaluateError> {
    if !rustix::process::geteuid().is_root() {
        return Err(EvaluateError::Root);
    }
    let name = part.name();
    let raw = options.out.join("raw");
    fs::create_dir_all(&raw).map_err(EvaluateError::file("make", &raw))?;
    let harness = Harness::open(name, options)?;
    let before = machine::describe(&options.luc)?;
    let outcome = measure(&harness);
    // A page of nothing must not replace one of something.
    let is_empty = harness.runs().as_array().is_none_or(Vec::is_empty);
    let outcome = outcome.and_then(|()| if is_empty { Err(options.no_cell()) } else { Ok(()) });
    let data = json!({
        "part": name,
        "made_by": format!("make evaluate-{name}"),
        "options": { "repeats": options.repeats, "seconds": options.seconds, "cuts": options.cuts,
                     "only": options.only, "seed": options.seed },
        "machine": before, "disturbances": harness.disturbances(),
        "finished": machine::now()?, "load_at_end": machine::load(), "runs": harness.runs(),
    });
    let partial = raw.join(format!("{name}.partial.json"));
    if outcome.is_err() {
        write_json(&partial, &data)?;
        return outcome;
    }
    write_json(&raw.join(format!("{name}.json")), &data)?;
    let _ = fs::remove_file(partial);
    Ok(())
}

/// Returns the sentences on the machine and on its disturbances that raw data have.
fn made_on(data: &Value) -> String {
    format!(
        "{}{}",
        machine::sentence(&data["machine"]),
        data["disturbances"].as_str().unwrap_or_default()
    )
}

/// Makes a page of any file of raw data, for whoever writes its templates.
///
/// # Errors
/// [`EvaluateError`]: a file cannot be read, or the page is wrong.
pub fn page_of(
    part: &str,
    page: &Path,
    raw: &Path,
    like: Option<&Path>,
) -> Result<String, EvaluateError> {
    let read = |path: &Path| fs::read_to_string(path).map_err(EvaluateError::file("read", path));
    let text = read(page)?;
    let like = like.map(read).transpose()?;
    let data = read_json(raw)?;
    let page = PartPage::parse(part, &text, like.as_deref())?.page(&data)?;
    Ok(page.markdown(part, &made_on(&data)))
}

/// Writes a part's page. `machine` is the sentence on the machine.
fn write_page(
    part: Part,
    page: &Page,
    machine: &str,
    options: &Options,
) -> Result<Verdict, EvaluateError> {
    let path = options.out.join(format!("{}.md", part.name()));
    fs::write(&path, page.markdown(part.name(), machine))
        .map_err(EvaluateError::file("write", &path))?;
    Ok(Verdict {
        page: path,
        targets: page.targets.iter().map(ToString::to_string).collect(),
        met: page.targets.iter().all(|target| target.met != Some(false)),
    })
}
