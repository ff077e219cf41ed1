//! The points of a sweep: the cross product of a plan's axes, each as the workload and the target have it.

use std::collections::BTreeSet;

use luc_power::frequency::FrequencySetting;
use toml::Value;

use super::axis::SweepAxis;
use super::plan::{PlanWorkload, SweepPlan, SweepPolicy, SweepTarget};
use super::workload_options::{known_name, label, values};
use luc_borrow::IoScheduler;

/// Value of an axis that the workload does not have.
const NONE: &str = "-";

/// One value of each axis.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Workload, with one value for each option.
    pub workload: PlanWorkload,
    /// Options with several values, and the one here; `-` where the workload has not that option.
    pub parameters: Vec<(&'static str, String)>,
    pub threads: usize,
    pub target: SweepTarget,
    /// Under the gate, under the module, or without either.
    pub policy: SweepPolicy,
    /// The disk's I/O scheduler, where the plan has that axis.
    pub scheduler: Option<IoScheduler>,
    /// The processors' frequency, where the plan has that axis.
    pub frequency: Option<FrequencySetting>,
    /// The speed in virtual time, millions of instructions per second.
    pub mips: Option<u64>,
    /// Number of its guest's processors, if the plan has that axis.
    pub processors: Option<u32>,
}

impl SweepPoint {
    /// Lists its axes and values, in the order of the product.
    #[must_use]
    pub fn axes(&self) -> Vec<(SweepAxis, String)> {
        let scheduler = self.scheduler.map(|one| one.name().to_owned());
        let optional = [
            (SweepAxis::Scheduler, scheduler),
            (SweepAxis::Frequency, self.frequency.map(|one| one.label())),
            (SweepAxis::Mips, self.mips.map(|mips| mips.to_string())),
            (SweepAxis::Processors, self.processors.map(|some| some.to_string())),
        ];
        let mut axes = vec![
            (SweepAxis::Workload, self.workload.name.clone()),
            (SweepAxis::Threads, self.threads.to_string()),
            (SweepAxis::Target, self.target.name.clone()),
            (SweepAxis::Policy, self.policy.to_string()),
        ];
        let parameters = self.parameters.iter();
        axes.extend(parameters.map(|(name, value)| (SweepAxis::Option(name), value.clone())));
        axes.extend(optional.into_iter().filter_map(|(axis, value)| Some((axis, value?))));
        axes
    }

    /// Returns its name in the results.
    #[must_use]
    pub fn key(&self) -> String {
        let values: Vec<String> = self.axes().into_iter().map(|(_, value)| value).collect();
        values.join(",")
    }

    /// Returns the values that it shares with the points it is compared with: all but target and policy.
    #[must_use]
    pub fn group(&self) -> String {
        let axes = self.axes().into_iter();
        let common =
            axes.filter(|(axis, _)| ![SweepAxis::Target, SweepAxis::Policy].contains(axis));
        common.map(|(_, value)| value).collect::<Vec<_>>().join(",")
    }

    #[must_use]
    pub fn unit(&self) -> &str {
        match (self.workload.bench, &self.workload.figure) {
            (_, Some(figure)) => &figure.unit,
            _ if self.workload.filebench.is_some() => "operations/s",
            (Some(bench), None) => bench.unit(),
            (None, None) => "s",
        }
    }

    /// Returns the unit per joule if the figure is a rate: `files/J` for `files/s`.
    #[must_use]
    pub fn unit_per_joule(&self) -> Option<String> {
        Some(format!("{}/J", self.unit().strip_suffix("/s")?))
    }
}

pub(super) fn points(plan: &SweepPlan) -> Vec<SweepPoint> {
    let parameters = parameters(plan);
    let mut points = Vec::new();
    let schedulers: Vec<Option<IoScheduler>> = if plan.scheduler.is_empty() {
        vec![None]
    } else {
        plan.scheduler.iter().copied().map(Some).collect()
    };
    for workload in &plan.workload {
        for with_options in with_options(workload) {
            let of_workload = |name: &&'static str| {
                let value = with_options.options.get(*name);
                (*name, value.map_or(NONE.to_owned(), label))
            };
            let parameters: Vec<(&str, String)> = parameters.iter().map(of_workload).collect();
            for &threads in workload.threads.as_ref().unwrap_or(&plan.threads) {
                for target in targets(plan, workload) {
                    let policies = workload.policy.as_ref().unwrap_or(&plan.policy);
                    for &policy in target.policy.as_ref().unwrap_or(policies) {
                        for &scheduler in &schedulers {
                            for (frequency, mips, processors) in speeds(plan, workload) {
                                points.push(SweepPoint {
                                    workload: with_options.clone(),
                                    parameters: parameters.clone(),
                                    threads,
                                    target: target.clone(),
                                    policy,
                                    scheduler,
                                    frequency,
                                    mips,
                                    processors,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    points
}

/// Returns the targets of a workload.
fn targets<'a>(
    plan: &'a SweepPlan,
    workload: &'a PlanWorkload,
) -> impl Iterator<Item = &'a SweepTarget> {
    let is_mine = |target: &&SweepTarget| {
        let names = workload.target.as_ref();
        names.is_none_or(|names| names.contains(&target.name))
    };
    plan.target.iter().filter(is_mine)
}

/// A frequency, or in virtual time a speed and a number of processors.
type OfProcessors = (Option<FrequencySetting>, Option<u64>, Option<u32>);

/// Returns frequencies, or speeds and numbers of processors in virtual time, or neither.
fn speeds(plan: &SweepPlan, workload: &PlanWorkload) -> Vec<OfProcessors> {
    if let Some(virtual_time) = &plan.virtual_time {
        let mips = workload.mips.as_ref().unwrap_or(&virtual_time.mips);
        let numbers: Vec<Option<u32>> = match &workload.processors {
            Some(numbers) => numbers.iter().copied().map(Some).collect(),
            None if plan.has_processors_axis() => vec![virtual_time.processors],
            None => vec![None],
        };
        let each = mips.iter();
        return each
            .flat_map(|&mips| numbers.iter().map(move |&some| (None, Some(mips), some)))
            .collect();
    }
    if plan.frequency.is_empty() {
        return vec![(None, None, None)];
    }
    let frequencies = plan.frequency.iter().copied();
    frequencies.map(|setting| (Some(setting), None, None)).collect()
}

/// Lists the options for which any workload has a list of values.
fn parameters(plan: &SweepPlan) -> BTreeSet<&'static str> {
    let of_workload = |workload: &PlanWorkload| {
        let lists = workload.options.iter().filter(|(_, value)| value.is_array());
        let names = lists.filter_map(|(name, _)| known_name(workload.bench?, name));
        names.collect::<Vec<_>>()
    };
    plan.workload.iter().flat_map(of_workload).collect()
}

/// Returns the workload once for each combination of its options' values. The list `set` of a workload file is one
/// value.
fn with_options(workload: &PlanWorkload) -> Vec<PlanWorkload> {
    let mut made = vec![workload.clone()];
    if workload.bench.is_none() {
        return made;
    }
    for (name, value) in &workload.options {
        let Value::Array(_) = value else { continue };
        let with = |workload: &PlanWorkload, value: &Value| {
            let mut workload = workload.clone();
            workload.options.insert(name.clone(), value.clone());
            workload
        };
        made = made
            .iter()
            .flat_map(|workload| values(value).into_iter().map(|value| with(workload, value)))
            .collect();
    }
    made
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        points(&plan).iter().map(SweepPoint::key).collect()
    }

    #[test]
    fn a_list_of_an_option_is_an_axis_and_others_have_none() {
        let found = keys(
            "[[workload]]
             name = 'w'
             bench = 'initial-write'
             options = { file-size = ['64k', '128k'], record-size = '32k', processes = [false, true] }
             [[workload]]
             name = 'v'
             bench = 'varmail'
             [[target]]
             name = 't'
             directory = '/'",
        );
        assert_eq!(
            found,
            [
                "w,1,t,off,64k,false",
                "w,1,t,off,64k,true",
                "w,1,t,off,128k,false",
                "w,1,t,off,128k,true",
                "v,1,t,off,-,-"
            ]
        );
        let found = keys(
            "[[workload]]
             name = 'w'
             filebench = 'webserver'
             options = { set = ['nfiles=100', 'nthreads={threads}'] }
             [[target]]
             name = 't'
             directory = '/'",
        );
        assert_eq!(found, ["w,1,t,off"]);
    }

    #[test]
    fn workloads_and_targets_have_lists_of_their_own() {
        let found = keys(
            "policy = ['kernel:off', 'kernel:pid']
             [virtual]
             mips = [1000, 2000]
             [[workload]]
             name = 'm'
             bench = 'metarates'
             threads = [4, 8]
             mips = [500]
             [[workload]]
             name = 'v'
             bench = 'varmail'
             policy = ['kernel:auto']
             target = ['nojc']
             [[target]]
             name = 'ext4'
             fs = 'ext4'
             [[target]]
             name = 'nojc'
             fs = 'ext4'
             mkfs = '-O ^has_journal'
             policy = ['off']",
        );
        assert_eq!(
            found,
            [
                "m,4,ext4,kernel:off,500",
                "m,4,ext4,kernel:pid,500",
                "m,4,nojc,off,500",
                "m,8,ext4,kernel:off,500",
                "m,8,ext4,kernel:pid,500",
                "m,8,nojc,off,500",
                "v,1,nojc,off,1000",
                "v,1,nojc,off,2000",
            ]
        );
    }
}
