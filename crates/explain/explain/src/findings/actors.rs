//! Victims and culprits of findings.

use super::Finding;
use crate::actor::Actor;
use crate::call_time_parts::CallTimePart;
use crate::report::{CommitActor, FileSystemReport};
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum number of processes that a sentence names.
const MAX_NAMED: usize = 3;

/// Sums losses to some parts by victim, most first.
fn victims<'a>(file_system: &'a FileSystemReport, parts: &[CallTimePart]) -> Vec<(&'a Actor, u64)> {
    let mut sums: Vec<(&Actor, u64)> = Vec::new();
    for lost in file_system.lost.iter().filter(|lost| parts.contains(&lost.part)) {
        match sums.iter_mut().find(|(actor, _)| **actor == lost.victim) {
            Some((_, sum)) => sum.grow(lost.ns),
            None => sums.push((&lost.victim, lost.ns)),
        }
    }
    sums.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    sums
}

/// Names the actor that lost most to some parts.
pub(super) fn with_victim(
    file_system: &FileSystemReport,
    parts: &[CallTimePart],
    finding: Finding,
) -> Finding {
    let victim = victims(file_system, parts).first().map(|&(actor, _)| actor.clone());
    Finding { victim, ..finding }
}

/// Names the culprit, which has the largest `amount`, and the victim, which lost most. The culprit's own loss is its
/// own fault. So another is the victim if it lost at least a tenth of what the culprit did.
fn with_culprit(
    file_system: &FileSystemReport,
    part: CallTimePart,
    amount: impl Fn(&CommitActor) -> u64,
    finding: Finding,
) -> Finding {
    let most = file_system.commits.by.iter().max_by_key(|by| amount(by));
    let culprit = most.filter(|by| amount(by) > 0).map(|by| &by.actor);
    let victims = victims(file_system, &[part]);
    let own_ns = victims.iter().find(|(actor, _)| Some(*actor) == culprit).map_or(0, |&(_, ns)| ns);
    let other = victims
        .iter()
        .find(|&&(actor, ns)| Some(actor) != culprit && ns.saturating_mul(10) >= own_ns);
    Finding {
        victim: other.or(victims.first()).map(|&(actor, _)| actor.clone()),
        culprit: culprit.cloned(),
        ..finding
    }
}

/// Names who filled the journal.
pub(super) fn with_filler(file_system: &FileSystemReport, finding: Finding) -> Finding {
    with_culprit(file_system, CallTimePart::Checkpoint, |by| by.blocks, finding)
}

/// Names who made most data dirty.
pub(super) fn with_dirtier(file_system: &FileSystemReport, finding: Finding) -> Finding {
    with_culprit(file_system, CallTimePart::Throttle, |by| by.dirtied_bytes, finding)
}

/// Names who lost most to a part, and who held that one up longest.
pub(super) fn with_holder(
    file_system: &FileSystemReport,
    part: CallTimePart,
    finding: Finding,
) -> Finding {
    let victims = victims(file_system, &[part]);
    let victim = victims.first().map(|&(actor, _)| actor);
    // Sorted by time, so the first is the longest.
    let mut held = file_system.held.iter().filter(|held| held.part == part);
    let culprit = held.find(|held| Some(&held.victim) == victim);
    Finding { victim: victim.cloned(), culprit: culprit.map(|held| held.holder.clone()), ..finding }
}

/// A process in words.
pub(super) fn in_words(actor: &Actor) -> String {
    if actor.comm.is_empty() {
        format!("process {}", actor.process)
    } else {
        format!("{} ({})", actor.comm, actor.process)
    }
}

/// Processes in words, those beyond [`MAX_NAMED`] as their number.
pub(super) fn names(actors: &[&Actor]) -> String {
    join(actors.iter().map(|actor| in_words(actor)).collect())
}

/// Processes in words, those of one name as their number.
pub(super) fn grouped_names(actors: &[Actor]) -> String {
    let mut groups: Vec<(&Actor, usize)> = Vec::new();
    for actor in actors {
        let is_known = !actor.comm.is_empty();
        match groups.iter_mut().find(|(first, _)| is_known && first.comm == actor.comm) {
            Some((_, count)) => *count += 1,
            None => groups.push((actor, 1)),
        }
    }
    let in_words = |(first, count): (&Actor, usize)| match count {
        1 => in_words(first),
        _ => format!("{} ({count} processes)", first.comm),
    };
    join(groups.into_iter().map(in_words).collect())
}

fn join(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    match more {
        0 => {}
        1 => names.push("one more".to_owned()),
        more => names.push(format!("{more} more")),
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() {
        return last;
    }
    format!("{} and {last}", names.join(", "))
}
