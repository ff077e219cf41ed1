//! Conclusions from a selection, for somebody who has to decide.

use std::fmt;

use luc_power::energy::EnergyProvenance;
use serde::Serialize;

use super::advice_request::AdvicePlan;
use super::candidates::{NotTried, commands};
use luc_stats::selection::{
    CandidateComparison, CandidateRanking, CandidateSelection, ComparisonMethod, ComparisonVerdict,
    SelectionVerdict,
};
use luc_sweep::{DeviceDescription, SweepPlan, SweepPolicy, SweepReport, SweepTarget};

/// Result of `luc advise`: the workload, where it ran, and the recommended candidate.
#[derive(Debug, Serialize)]
pub struct AdviceReport {
    pub workload: String,
    pub place: String,
    pub device: Option<DeviceDescription>,
    pub repeats: usize,
    /// Whether the budget ended it before it was decided; the same command goes on.
    pub unfinished: bool,
    /// Whether it was interrupted; the same command goes on.
    pub interrupted: bool,
    pub unit: String,
    /// Result of the comparison; `None` of fewer than 3 rounds.
    pub selection: Option<CandidateSelection>,
    pub by_rate: Option<CandidateAdvice>,
    pub by_joule: Option<CandidateAdvice>,
    /// Source of the energy figures, or the reason why there are none.
    pub energy: EnergyProvenance,
    /// Conditions that all of this depends on.
    pub holds_for: &'static str,
    /// Candidates that were not tried or could not be measured, with the reason.
    pub not_tried: Vec<NotTried>,
}

/// Recommendation of one candidate, with the commands to set it up and the reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CandidateAdvice {
    /// The place of the advised candidate in the selection.
    pub candidate: usize,
    pub name: String,
    /// The commands that make it.
    pub commands: Vec<String>,
    /// Why, by how much, and how sure: a sentence each.
    pub reasons: Vec<String>,
}

impl AdviceReport {
    /// Draws the conclusions from a request and its report.
    #[must_use]
    pub fn of(prepared: &AdvicePlan, report: &SweepReport) -> Self {
        let group = report.groups.first();
        let selection = group.and_then(|group| group.selection.clone());
        let points: Vec<(&SweepTarget, SweepPolicy)> = points(&report.plan);
        let advice = |ranking: &CandidateRanking| {
            let selection = selection.as_ref()?;
            Some(advice(selection, ranking, &points))
        };
        let by_rate = selection.as_ref().and_then(|found| advice(&found.rate));
        let in_virtual_time = report.plan.virtual_time.is_some();
        let per_joule = selection.as_ref().and_then(|found| found.per_joule.as_ref());
        let mut not_tried = prepared.not_tried.clone();
        not_tried.extend(report.failures.iter().map(|failure| {
            let at = group.and_then(|group| group.keys.iter().position(|key| *key == failure.key));
            let names = selection.as_ref().map(|found| &found.candidates);
            let name = at.and_then(|at| Some(names?.get(at)?.name()));
            NotTried {
                what: name.unwrap_or_else(|| failure.key.clone()),
                why: shorten_reason(&failure.failed),
            }
        }));
        Self {
            workload: prepared.workload.clone(),
            place: prepared.place.clone(),
            device: prepared.device.clone(),
            repeats: report.repeats.len(),
            unfinished: report.wants_more(),
            interrupted: report.interrupted,
            unit: group.map(|group| group.unit.clone()).unwrap_or_default(),
            by_joule: per_joule.and_then(advice),
            by_rate,
            energy: if in_virtual_time {
                EnergyProvenance {
                    unavailable: Some("virtual time takes none".to_owned()),
                    ..EnergyProvenance::default()
                }
            } else {
                report.energy.clone()
            },
            holds_for: if in_virtual_time {
                "this workload, disk, kernel and processor; the processor is a simulated one"
            } else {
                "this workload, disk, kernel and machine; the processors' part is this machine's"
            },
            not_tried,
            selection,
        }
    }

    /// Returns a line for each candidate.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "figure,file_system,options,default,unsafe,rounds,median,low,high,bounds,best_over_it,ratio_low,\
                        ratio_high,method,best_is\n"
            .to_owned();
        let Some(selection) = &self.selection else {
            return text;
        };
        let per_joule = selection.per_joule.as_ref().map(|ranking| ("per_joule", ranking));
        for (figure, ranking) in [("rate", &selection.rate)].into_iter().chain(per_joule) {
            for (at, name) in selection.candidates.iter().enumerate() {
                let own =
                    ranking.figures[at].map_or(vec!["0".to_owned(), "-,-,-,-".to_owned()], |own| {
                        let bounds = serde_json::json!(own.bounds);
                        let bounds = bounds.as_str().unwrap_or_default();
                        vec![
                            own.rounds.to_string(),
                            format!("{},{},{},{bounds}", own.median, own.low, own.high),
                        ]
                    });
                let ratio = ranking.against(at).map_or("-,-,-,-,-".to_owned(), |found| {
                    let word = |value: serde_json::Value| {
                        value.as_str().map(str::to_owned).unwrap_or_default()
                    };
                    let (method, side) = (
                        word(serde_json::json!(found.method)),
                        word(serde_json::json!(found.best_is)),
                    );
                    format!("{},{},{},{method},{side}", found.ratio, found.low, found.high)
                });
                text += &format!(
                    "{figure},{},{},{},{},{},{ratio}\n",
                    name.file_system,
                    name.options,
                    name.is_default,
                    name.danger.is_some(),
                    own.join(",")
                );
            }
        }
        text
    }
}

/// Cuts the name of the point, and advice about plans, off a sweep's message.
fn shorten_reason(said: &str) -> String {
    let said = said.split_once(": ").map_or(said, |(_, rest)| rest);
    let advice = said.find("; correct the plan");
    said[..advice.unwrap_or(said.len())].to_owned()
}

/// Returns the points of a plan with one workload, in the order of the sweep.
fn points(plan: &SweepPlan) -> Vec<(&SweepTarget, SweepPolicy)> {
    let of = |target| plan.policy.iter().map(move |&policy| (target, policy));
    plan.target.iter().flat_map(of).collect()
}

fn advice(
    selection: &CandidateSelection,
    ranking: &CandidateRanking,
    points: &[(&SweepTarget, SweepPolicy)],
) -> CandidateAdvice {
    let name = |at: usize| selection.candidates[at].name();
    // The default stays unless something is shown to be better.
    let advised = ranking.keep.unwrap_or(ranking.best);
    let mut reasons = Vec::new();
    if advised != ranking.best {
        reasons.push(format!(
            "{} has the highest median, but is not shown to be better: {}",
            name(ranking.best),
            ranking.against(advised).map(format_ratio).unwrap_or_default()
        ));
    } else if ranking.verdict == SelectionVerdict::Best {
        reasons.push("it is better than every other that was measured".to_owned());
    }
    for (at, candidate) in selection.candidates.iter().enumerate() {
        let is_rival_default = candidate.is_default && at != advised && candidate.danger.is_none();
        if let Some(found) = ranking.against(at).filter(|_| is_rival_default) {
            let who = if advised == ranking.best { "" } else { "the best is " };
            reasons.push(match found.best_is {
                ComparisonVerdict::Better => {
                    format!("{who}{} times {}", format_ratio(found), name(at))
                }
                _ => format!("no significant difference to {}: {}", name(at), format_ratio(found)),
            });
        }
    }
    let others: Vec<String> = ranking
        .as_good
        .iter()
        .chain([&ranking.best])
        .filter(|&&at| at != advised && !selection.candidates[at].is_default)
        .map(|&at| name(at))
        .collect();
    if !others.is_empty() {
        reasons.push(format!("as good, as far as this shows: {}", others.join(", ")));
    }
    if !ranking.unjudged.is_empty() {
        let names: Vec<String> = ranking.unjudged.iter().map(|&at| name(at)).collect();
        reasons.push(format!("too few rounds to judge: {}", names.join(", ")));
    }
    for (at, candidate) in selection.candidates.iter().enumerate() {
        let faster = ranking.against(at).filter(|found| found.best_is == ComparisonVerdict::Worse);
        if let (Some(danger), Some(found)) = (&candidate.danger, faster) {
            reasons.push(format!(
                "{} is {:.2} times as fast as the best, and UNSAFE: {danger}",
                name(at),
                1.0 / found.ratio
            ));
        }
    }
    CandidateAdvice {
        candidate: advised,
        name: name(advised),
        commands: points
            .get(advised)
            .map(|(target, policy)| commands(target, *policy))
            .unwrap_or_default(),
        reasons,
    }
}

/// Returns `1.31 (1.22 to 1.43, 6 rounds)`.
fn format_ratio(found: &CandidateComparison) -> String {
    let CandidateComparison { ratio, low, high, rounds, method, .. } = found;
    let by = match method {
        ComparisonMethod::OrderStatistics => "",
        ComparisonMethod::LogT => ", by t",
    };
    format!("{ratio:.3} ({low:.3} to {high:.3}, {rounds} rounds{by})")
}

impl fmt::Display for AdviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workload: {}", self.workload)?;
        writeln!(f, "place: {}", self.place)?;
        match &self.selection {
            Some(selection) => write!(f, "{}", selection.text(&self.unit))?,
            None => writeln!(
                f,
                "no advice yet: {} repeats, and nothing safe has 3 rounds",
                self.repeats
            )?,
        }
        let EnergyProvenance { source, scope, unavailable, .. } = &self.energy;
        match (source, scope) {
            (Some(source), Some(scope)) => writeln!(f, "joules are gross, by {source}: {scope}")?,
            _ => {
                let why = unavailable.as_deref().unwrap_or("not measured");
                writeln!(f, "operations per joule: unavailable: {why}")?;
            }
        }
        let advices = [(&self.by_rate, "advice"), (&self.by_joule, "advice by energy")];
        for (advice, title) in advices {
            let Some(advice) = advice else { continue };
            writeln!(f, "{title}: {}", advice.name)?;
            for command in &advice.commands {
                writeln!(f, "    {command}")?;
            }
            for reason in &advice.reasons {
                writeln!(f, "  {reason}")?;
            }
        }
        for NotTried { what, why } in &self.not_tried {
            writeln!(f, "not tried: {what}: {why}")?;
        }
        if self.unfinished {
            writeln!(f, "not decided yet: the same command goes on measuring")?;
        }
        writeln!(f, "this holds for {}", self.holds_for)
    }
}
