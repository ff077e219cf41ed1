//! Section on the machine during the repeats.

use std::collections::BTreeMap;

use luc_graphs::{Graph, GraphTable, PageSection};
use luc_units::number_formats::digits;

use crate::{RepeatEnvironment, SweepReport};

/// Different values of a row that are named.
const MAX_VALUES: usize = 12;

pub(super) fn section(report: &SweepReport, notes: Vec<String>) -> PageSection {
    let all = || report.repeats.iter().map(|repeat| &repeat.environment);
    let mut rows = Vec::new();
    let mut row = |name: &str, text: String| {
        if !text.is_empty() {
            rows.push(vec![name.into(), text.into()]);
        }
    };
    row("kernel", join_values(all().map(|about| Some(about.kernel.clone()))));
    row("QEMU", join_values(all().map(|about| about.qemu.clone())));
    row("mkfs", join_values(all().map(|about| about.mkfs.clone())));
    let mounts = all().map(|about| about.mount.as_deref().map(without_device));
    row("mounts", join_values(mounts));
    row("governor", join_values(all().map(|about| about.governor.clone())));
    let frequencies = || all().filter_map(|about| about.frequency_khz);
    let lowest = frequencies().map(|[low, _]| low).min();
    if let (Some(low), Some(high)) = (lowest, frequencies().map(|[_, high]| high).max()) {
        let ghz = |khz: u64| digits(khz as f64 / 1e6);
        row("frequency", format!("{} to {} GHz", ghz(low), ghz(high)));
    }
    let caches = all().map(|about| {
        let words = if about.caches_dropped { "dropped" } else { "not dropped: no root" };
        Some(words.to_owned())
    });
    row("caches", join_values(caches));
    let range = |of: fn(&RepeatEnvironment) -> Option<f64>| {
        let values: Vec<f64> = all().filter_map(of).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(format!("{} to {}", digits(low), digits(high)))
    };
    let load = range(|about| Some(about.load)).unwrap_or_default();
    row("load average", load);
    let stolen = range(|about| Some(about.stolen_share * 100.0));
    row(
        "processor time that the hypervisor took",
        stolen.map_or(String::new(), |range| format!("{range} %")),
    );
    for (name, of) in [
        ("time under I/O pressure", (|about| about.io_pressure_us) as fn(&RepeatEnvironment) -> _),
        ("time under processor pressure", |about| about.cpu_pressure_us),
    ] {
        let values = || all().filter_map(of).map(|us| us as f64 / 1e6);
        if let (Some(low), Some(high)) = (values().reduce(f64::min), values().reduce(f64::max)) {
            row(name, format!("{} to {} s a repeat", digits(low), digits(high)));
        }
    }
    let table = GraphTable {
        title: "What the repeats ran on".to_owned(),
        columns: vec![(String::new(), false), (String::new(), false)],
        rows,
        more: 0,
    };
    PageSection { title: "Environment".to_owned(), text: notes, graphs: vec![Graph::Table(table)] }
}

/// Returns the different values, the most frequent first, with how often they are there if there are several.
fn join_values(values: impl Iterator<Item = Option<String>>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values.flatten() {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if let [(value, _)] = counts.as_slice() {
        return value.clone();
    }
    let more = counts.len().saturating_sub(MAX_VALUES);
    let named = counts.iter().take(MAX_VALUES);
    let mut words: Vec<String> = named.map(|(value, count)| format!("{value} ({count})")).collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.join("; ")
}

/// Returns a mount without its source, which is another one for every repeat.
fn without_device(mount: &str) -> String {
    let mut words = mount.split(' ');
    let kind = words.next().unwrap_or_default();
    let options: Vec<&str> = words.skip(1).collect();
    format!("{kind} {}", options.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_how_often() {
        let some = |values: &[&str]| {
            values.iter().map(|value| Some((*value).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(join_values(some(&["a", "a"]).into_iter()), "a");
        assert_eq!(join_values(some(&["a", "b", "b"]).into_iter()), "b (2); a (1)");
        assert_eq!(join_values([None, None].into_iter()), "");
        assert_eq!(without_device("ext4 /dev/loop3 rw,noatime rw"), "ext4 rw,noatime rw");
    }
}
