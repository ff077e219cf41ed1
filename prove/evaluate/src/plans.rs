//! Parts that are a sweep: a plan that `luc sweep` runs, and claims about its figures.
//!
//! `prove/plans/NAME.toml` is the plan, and `NAME.claims.toml` has the claims. The sweep's repeats become the raw data,
//! and `luc_claims` makes the page of these alone.

mod folder;

use std::path::{Path, PathBuf};
use std::time::Instant;

use luc_claims::{Claims, Data, Later, page};
use luc_harness::report::Page;
use luc_sweep::{Sweep, SweepPlan};

use crate::progress::Progress;
use crate::{EvaluateError, Options, machine};
use folder::Folder;

/// A plan, and the claims about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) name: &'static str,
    pub(super) plan: &'static str,
    pub(super) claims: &'static str,
}

/// Includes the files of a part: `prove/plans/NAME.toml` and `prove/plans/NAME.claims.toml`.
macro_rules! planned {
    ($name:literal) => {
        $crate::plans::Planned {
            name: $name,
            plan: include_str!(concat!("../../plans/", $name, ".toml")),
            claims: include_str!(concat!("../../plans/", $name, ".claims.toml")),
        }
    };
}
pub(super) use planned;

impl Planned {
    fn raw(self, options: &Options) -> PathBuf {
        options.out.join(format!("raw/{}.json", self.name))
    }

    /// Makes the page from the existing raw data, and the sentence on their origin.
    pub(super) fn page(self, options: &Options) -> Result<(Page, String), EvaluateError> {
        let data = Data::read(&self.raw(options))?;
        let page = page(&Claims::parse(self.name, self.claims)?, &data)?;
        let unfinished = match data.unfinished {
            0 => String::new(),
            points => format!(" {points} points still lack repeats."),
        };
        let disturbed = match data.disturbed {
            0 => String::new(),
            count => format!(
                " The machine is a virtual one that others share: {count} repeats during which the hypervisor took more \
                 of the processors' time than the plan allows were made again, whatever they had shown."
            ),
        };
        let sentence = format!(
            "`luc sweep prove/plans/{}.toml` makes the same repeats. {} of them are there; the points ran on Linux {}{}. \
             {}{}{unfinished}{disturbed}",
            self.name,
            data.repeats(),
            data.kernel.join(", "),
            data.qemu.iter().map(|qemu| format!(", {qemu}")).collect::<String>(),
            machine::sentence(&data.machine),
            data.later.iter().map(later_sentence).collect::<String>(),
        );
        Ok((page, sentence))
    }

    /// Runs what an interrupted sweep lacks, or all of it, and keeps its figures.
    pub(super) fn measure(self, options: &Options) -> Result<(), EvaluateError> {
        let given = [
            ("--repeats", options.repeats.is_some()),
            ("--seconds", options.seconds.is_some()),
            ("--cuts", options.cuts.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let part = self.name;
            return Err(EvaluateError::OfPlan { part, option });
        }
        let claims = Claims::parse(self.name, self.claims)?;
        let mut plan =
            SweepPlan::parse(self.plan, Path::new(&format!("prove/plans/{}.toml", self.name)))?;
        plan.seed = options.seed;
        let workloads: Vec<String> =
            plan.workload.iter().map(|workload| workload.name.clone()).collect();
        if let Some(only) = &options.only {
            plan.workload.retain(|workload| workload.name.contains(only.as_str()));
            if plan.workload.is_empty() {
                return Err(EvaluateError::OfPlan { part: self.name, option: "--only" });
            }
        }
        let in_guests = plan.virtual_time.is_some();
        if !in_guests && !rustix::process::geteuid().is_root() {
            return Err(EvaluateError::Root);
        }
        if in_guests {
            plan.set_jobs(options.jobs)?;
        }
        let deadline = options.budget.map(|budget| Instant::now() + budget);
        let machine = machine::describe(&options.luc)?;
        let only = options.only.as_deref();
        let folder = Folder::open(self.name, only, &options.myself, &options.luc)?;
        let mut progress: Option<Progress> = None;
        let sweep = Sweep {
            plan: &plan,
            out: folder.path(),
            luc: &options.luc,
            sysfs: Path::new("/sys"),
            deadline,
        };
        let report = sweep.run(&mut |made, wanted, what| match &mut progress {
            Some(progress) => progress.step(what),
            None => progress = Some(Progress::new(self.name, wanted - made)),
        })?;
        drop(progress);
        if report.interrupted {
            return Err(EvaluateError::Interrupted);
        }
        if report.repeats.is_empty() {
            return Err(EvaluateError::NoTime);
        }
        let data = Data::of(self.name, &report, &claims, machine)?;
        let unfinished = data.unfinished;
        let data = match only {
            Some(_) => {
                let mut all = Data::read(&self.raw(options))?.with_part(data);
                drop_former(&mut all, &workloads);
                all
            }
            None => data,
        };
        data.write(&self.raw(options))?;
        if unfinished == 0 {
            // The raw data have all of it, and the next evaluation measures anew.
            folder.remove()?;
        }
        Ok(())
    }
}

/// Removes the points of workloads that the plan has no more.
fn drop_former(data: &mut Data, workloads: &[String]) {
    let Some(axis) = data.axes.iter().position(|axis| axis == "workload") else {
        return;
    };
    data.points.retain(|point| workloads.contains(&point.point[axis]));
    for later in &mut data.later {
        later.workloads.retain(|name| workloads.contains(name));
    }
    data.later.retain(|later| !later.workloads.is_empty());
}

/// Says which workloads were measured at another time than the rest, and by which commit.
fn later_sentence(later: &Later) -> String {
    let workloads = later.workloads.join(", ");
    format!(" Later, and alone: {workloads}. {}", machine::sentence(&later.machine))
}
