//! Judges whether the findings are the planted troubles.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::super::error::EvaluateError;
use super::super::harness::missing;
use super::cases::{Case, Expected, Figure, Named};
use crate::harness::elements;

/// Maximum relative error of a figure that the disk determines.
const MAX_KNOWN_ERROR: f64 = 0.15;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Actor {
    pub(super) name: String,
    pub(super) process: u64,
    /// Id of its own cgroup, if it had one.
    pub(super) cgroup: Option<u64>,
    pub(super) rounds: u64,
}

/// A figure that the disk determines.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Known {
    what: &'static str,
    measured_ms: f64,
    must_ms: f64,
}

impl Known {
    fn error(&self) -> f64 {
        self.measured_ms / self.must_ms - 1.0
    }

    fn is_close(&self) -> bool {
        self.error().abs() <= MAX_KNOWN_ERROR
    }
}

/// A finding, and whether it is right.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Judgement {
    pub(super) finding: String,
    pub(super) share: f64,
    pub(super) victim: String,
    pub(super) culprit: String,
    pub(super) known: Option<Known>,
    pub(super) is_kind_right: bool,
    pub(super) are_parties_right: bool,
    /// Parts that are wrong.
    pub(super) wrong: Vec<String>,
}

impl Judgement {
    pub(super) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Judges the first finding on the disk that `expected` is about.
pub(super) fn judge(
    expected: &Expected,
    case: &Case,
    actors: &[Actor],
    mounts: &[&Path],
    report: &Value,
) -> Result<Judgement, EvaluateError> {
    let on = expected.disk.unwrap_or(0);
    let mount = mounts[on];
    let file_system = elements(&report["file_systems"])
        .iter()
        .find(|found| found["mount_point"].as_str().map(Path::new) == Some(mount))
        .ok_or_else(|| missing("the disk's file system in the explanation"))?;
    let first = elements(&report["findings"])
        .iter()
        .find(|found| expected.disk.is_none() || found["dev"] == file_system["dev"])
        .unwrap_or(&Value::Null);

    let kind = first["kind"].as_str().unwrap_or("none");
    let is_kind_right = kind == expected.finding;
    let (victim, culprit) = (&first["victim"], &first["culprit"]);
    let is_victim_right = is_named(&expected.victim, victim, victim, actors);
    let is_culprit_right = is_named(&expected.culprit, culprit, victim, actors);
    let known = expected.figure.and_then(|wanted| {
        let (what, measured_ms) = figure(wanted, file_system)?;
        Some(Known { what, measured_ms, must_ms: case.disks[on].commit_ms() })
    });
    let is_close = known.as_ref().is_none_or(Known::is_close);
    let checks = [
        (is_kind_right, "the finding"),
        (is_victim_right, "the victim"),
        (is_culprit_right, "the culprit"),
        (is_close, "the figure"),
        (expected.figure.is_none() || known.is_some(), "no figure"),
    ];
    let wrong = checks.iter().filter(|(right, _)| !right);
    Ok(Judgement {
        finding: kind.to_owned(),
        share: first["share"].as_f64().unwrap_or(0.0),
        victim: describe_party(victim, actors),
        culprit: describe_party(culprit, actors),
        known,
        is_kind_right,
        are_parties_right: is_victim_right && is_culprit_right,
        wrong: wrong.map(|(_, what)| (*what).to_owned()).collect(),
    })
}

/// Returns the actor of a party. Its cgroup must be right, too.
fn actor<'a>(party: &Value, actors: &'a [Actor]) -> Option<&'a Actor> {
    actors.iter().find(|actor| {
        party["process"].as_u64() == Some(actor.process)
            && actor.cgroup.is_none_or(|cgroup| party["cgroup"].as_u64() == Some(cgroup))
    })
}

fn is_named(named: &Named, party: &Value, victim: &Value, actors: &[Actor]) -> bool {
    let found = actor(party, actors).map(|actor| &actor.name);
    match named {
        Named::Any => true,
        Named::Role(name) => found == Some(name),
        Named::Other => {
            let victim = actor(victim, actors).map(|actor| &actor.name);
            found.is_some() && victim.is_some() && found != victim
        }
    }
}

fn describe_party(party: &Value, actors: &[Actor]) -> String {
    match (party, actor(party, actors)) {
        (Value::Null, _) => "-".to_owned(),
        (_, Some(actor)) if actor.cgroup.is_some() => format!("{}, its cgroup", actor.name),
        (_, Some(actor)) => actor.name.to_owned(),
        (party, None) => format!("{} in cgroup {}", party["comm"], party["cgroup"]),
    }
}

/// Returns a figure's name and its value in milliseconds.
fn figure(figure: Figure, file_system: &Value) -> Option<(&'static str, f64)> {
    let (syncs, commits) = (&file_system["syncs"], &file_system["commits"]);
    Some(match figure {
        Figure::OwnCommit => ("own commit", quick_ms(&syncs["own_commit"])?),
        Figure::Commit => ("a commit", quick_ms(&commits["full"])?),
        Figure::FastCommit => ("a fast commit", quick_ms(&commits["fast"])?),
    })
}

/// Returns the maximum time of the quickest tenth of a distribution, in milliseconds. That is the disk's; a busy
/// machine adds to the others.
///
/// It is the middle of its bucket, which is a sixteenth wide.
fn quick_ms(latency: &Value) -> Option<f64> {
    const HALF_BUCKET: f64 = 1.0 / 32.0;
    let rank = latency["count"].as_f64()? * 0.1;
    let buckets = latency["buckets"].as_array()?.iter();
    let mut seen = 0.0;
    let mut edges = buckets.filter_map(|bucket| Some((bucket[0].as_f64()?, bucket[1].as_f64()?)));
    let (edge_ns, _) = edges.find(|(_, count)| {
        seen += count;
        seen >= rank
    })?;
    Some(edge_ns * (1.0 - HALF_BUCKET) / 1e6)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::all;
    use super::*;

    fn actors() -> Vec<Actor> {
        let actor = |name: &str, process, cgroup| Actor {
            name: name.to_owned(),
            process,
            cgroup: Some(cgroup),
            rounds: 1,
        };
        vec![actor("small", 10, 70), actor("dumper", 11, 71)]
    }

    fn case() -> Case {
        let cases = all(1.0).expect("cases");
        assert_eq!(cases.len(), 14);
        let is_dump = |case: &Case| case.roles.iter().any(|role| role.name == "dumper");
        cases.into_iter().find(is_dump).expect("the case")
    }

    fn judged(kind: &str, culprit: (u64, u64)) -> Judgement {
        let report = json!({
            "file_systems": [{ "mount_point": "/mnt", "dev": "7:1" }],
            "findings": [{
                "kind": kind, "dev": "7:1", "share": 0.5,
                "victim": { "process": 10, "comm": "small", "cgroup": 70 },
                "culprit": { "process": culprit.0, "comm": "dumper", "cgroup": culprit.1 },
            }],
        });
        let case = case();
        let mounts = [Path::new("/mnt")];
        judge(&case.expected[0], &case, &actors(), &mounts, &report).expect("judged")
    }

    #[test]
    fn the_planted_finding_with_its_culprit_is_right() {
        assert!(judged("someone_elses_data", (11, 71)).is_right());
    }

    #[test]
    fn another_finding_process_or_cgroup_is_wrong() {
        assert_eq!(judged("device_bound", (11, 71)).wrong, ["the finding"]);
        assert_eq!(judged("someone_elses_data", (10, 70)).wrong, ["the culprit"]);
        assert_eq!(judged("someone_elses_data", (11, 1)).wrong, ["the culprit"]);
    }

    #[test]
    fn a_figure_is_close_or_not() {
        let known = |measured_ms| Known { what: "own commit", measured_ms, must_ms: 20.0 };
        assert!(known(21.0).is_close());
        assert!(!known(24.0).is_close());
    }

    #[test]
    fn the_quickest_tenth() {
        let latency = json!({ "count": 100, "buckets": [[8e6, 5], [16e6, 5], [32e6, 90]] });
        assert_eq!(quick_ms(&latency), Some(15.5));
        assert_eq!(quick_ms(&json!({ "count": 0, "buckets": [] })), None);
    }

    #[test]
    fn what_is_named_other_is_not_the_victim() {
        let party = |process, cgroup| json!({ "process": process, "cgroup": cgroup });
        let (small, dumper) = (party(10, 70), party(11, 71));
        assert!(is_named(&Named::Other, &dumper, &small, &actors()));
        assert!(!is_named(&Named::Other, &small, &small, &actors()));
        assert!(!is_named(&Named::Other, &Value::Null, &small, &actors()));
        assert!(!is_named(&Named::Other, &small, &Value::Null, &actors()));
    }
}
