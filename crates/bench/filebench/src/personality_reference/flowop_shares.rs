//! Parser of the table's loops; see `personality_parameters`.

use super::personality_parameters::APPEND;
use crate::plan::FlowopKind;

/// A flowop of a loop.
#[derive(Debug)]
pub(super) struct FlowopShare {
    pub(super) task: FlowopKind,
    /// Occurrences in a round.
    pub(super) weight: u64,
    /// The size of each call, bytes.
    pub(super) exact: Option<u64>,
    /// Mean and standard deviation of the sizes, bytes.
    pub(super) mean: Option<(f64, f64)>,
    /// Openings by each thread that count as well.
    pub(super) openings: u64,
    pub(super) skipped: bool,
}

/// Parses threads and flowops of a loop; `None` if the text is wrong.
pub(super) fn shares(text: &str) -> Option<(usize, Vec<FlowopShare>)> {
    let (threads, flowops) = text.split_once(": ")?;
    let text = flowops
        .replace("[A]", APPEND)
        .replace("[aw=2048x10]29", &["aw=2048x10+1", &" aw=2048x10".repeat(28)].concat())
        .replace("[r=2048]30", &["r=2048+1", &" r=2048".repeat(29)].concat());
    let shares: Option<_> = text.split_whitespace().map(share).collect();
    Some((threads.parse().ok()?, shares?))
}

fn share(word: &str) -> Option<FlowopShare> {
    let kept = word.strip_suffix('?');
    let (text, openings) = after(kept.unwrap_or(word), '+');
    let (text, weight) = after(text, 'x');
    let (text, mean) = after(text, '~');
    let (kind, exact) = after(text, '=');
    let mean = match mean.map(|sizes| sizes.split_once('/')) {
        Some(sizes) => {
            let (mean, deviation) = sizes?;
            Some((mean.parse().ok()?, deviation.parse().ok()?))
        }
        None => None,
    };
    Some(FlowopShare {
        task: task(kind)?,
        weight: weight.map_or(Some(1), |count| count.parse().ok())?,
        exact: match exact {
            Some(size) => Some(size.parse().ok()?),
            None => None,
        },
        mean,
        openings: openings.map_or(Some(0), |count| count.parse().ok())?,
        skipped: kept.is_some(),
    })
}

/// Splits a text at a mark; the second part is `None` without the mark.
fn after(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn task(letters: &str) -> Option<FlowopKind> {
    Some(match letters {
        "O" => FlowopKind::Open,
        "C" => FlowopKind::Close,
        "N" => FlowopKind::Create,
        "D" => FlowopKind::Delete,
        "S" => FlowopKind::Stat,
        "F" => FlowopKind::Fsync,
        "RW" => FlowopKind::ReadWhole,
        "WW" => FlowopKind::WriteWhole,
        "A" => FlowopKind::Append,
        "AR" => FlowopKind::AppendRandom,
        "r" => FlowopKind::Read,
        "w" => FlowopKind::Write,
        "aw" => FlowopKind::AioWrite,
        "ai" => FlowopKind::AioWait,
        "M" => FlowopKind::MakeDirectory,
        "X" => FlowopKind::RemoveDirectory,
        "L" => FlowopKind::ListDirectory,
        _ => return None,
    })
}
