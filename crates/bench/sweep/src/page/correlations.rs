//! Section on correlations of the figures with counters and their principal components.

use luc_graphs::{Graph, GraphTable, PageSection, TableEntry};
use luc_stats::RankCorrelation;

use crate::{FigureCorrelations, SweepReport};

/// Counters in a table.
const MAX_COUNTERS: usize = 30;
/// Counters in a table of loadings.
const MAX_LOADINGS: usize = 16;

pub(super) fn section(report: &SweepReport) -> PageSection {
    let mut section = PageSection { title: "Correlations".to_owned(), ..PageSection::default() };
    for explanation in &report.explanations {
        section.graphs.push(Graph::Table(counters(explanation)));
        if !explanation.components.is_empty() {
            section.graphs.push(Graph::Table(shares(explanation)));
            section.graphs.push(Graph::Table(loadings(explanation)));
        }
    }
    if !section.graphs.is_empty() {
        section.text = vec![
            "Rank correlations (Spearman) of counters with the figure. Over all repeats points differ in both, whatever \
             the reason; within points only repeats with the same settings are compared. p is the probability that any \
             of all counters is correlated as strongly by chance; those of at most 0.05 have a colour."
                .to_owned(),
            "A correlated counter need not be the cause: a faster run does more of everything in the same time.".to_owned(),
        ];
    }
    section
}

fn correlation(found: Option<RankCorrelation>) -> [TableEntry; 2] {
    let Some(found) = found else {
        return ["-".into(), "-".into()];
    };
    let p = if found.adjusted_p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{:.3}", found.adjusted_p)
    };
    let coloured = TableEntry {
        text: format!("{:+.2}", found.correlation),
        heat: (found.adjusted_p <= 0.05).then_some(found.correlation),
    };
    [coloured, p.into()]
}

fn counters(explanation: &FigureCorrelations) -> GraphTable {
    let columns = [
        ("counter", false),
        ("all repeats", true),
        ("p", true),
        ("within points", true),
        ("p", true),
        ("repeats", true),
    ];
    let rows = explanation.counters.iter().take(MAX_COUNTERS).map(|counter| {
        let rows = counter.across.or(counter.within).map_or(0, |found| found.rows);
        let [across, across_p] = correlation(counter.across);
        let [within, within_p] = correlation(counter.within);
        vec![
            counter.name.as_str().into(),
            across,
            across_p,
            within,
            within_p,
            rows.to_string().into(),
        ]
    });
    GraphTable {
        title: format!(
            "{}: counters that are correlated with {}",
            explanation.workload, explanation.unit
        ),
        columns: columns.map(|(name, is_number)| (name.to_owned(), is_number)).to_vec(),
        rows: rows.collect(),
        more: explanation.counters.len().saturating_sub(MAX_COUNTERS),
    }
}

fn shares(explanation: &FigureCorrelations) -> GraphTable {
    let mut sum = 0.0;
    let rows = explanation.components.iter().enumerate().map(|(number, component)| {
        sum += component.share;
        let figure = component.figure_correlation;
        vec![
            format!("component {}", number + 1).into(),
            format!("{:.1} %", component.share * 100.0).into(),
            format!("{:.1} %", sum * 100.0).into(),
            TableEntry {
                text: figure.map_or("-".to_owned(), |figure| format!("{figure:+.2}")),
                heat: figure,
            },
        ]
    });
    let columns = ["", "share of the variance", "with those before", "correlation with the figure"];
    GraphTable {
        title: format!("{}: principal components of the counters", explanation.workload),
        rows: rows.collect(),
        columns: columns
            .iter()
            .enumerate()
            .map(|(at, name)| ((*name).to_owned(), at > 0))
            .collect(),
        more: 0,
    }
}

/// Returns counters that are most in the components, and how much of each.
fn loadings(explanation: &FigureCorrelations) -> GraphTable {
    let components = &explanation.components;
    let of = |component: usize, name: &str| {
        let loadings = &components[component].loadings;
        let found = loadings.iter().find(|(counter, _)| counter == name);
        found.map_or(0.0, |(_, loading)| *loading)
    };
    let mut names: Vec<&str> = components[0].loadings.iter().map(|(name, _)| &**name).collect();
    let weight = |name: &str| -> f64 {
        let weights = (0..components.len()).map(|at| of(at, name).abs() * components[at].share);
        weights.fold(0.0, f64::max)
    };
    names.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let more = names.len().saturating_sub(MAX_LOADINGS);
    names.truncate(MAX_LOADINGS);
    let row = |name: &&str| {
        let entries = (0..components.len()).map(|at| {
            let loading = of(at, name);
            TableEntry { text: format!("{loading:+.2}"), heat: Some(loading) }
        });
        std::iter::once(TableEntry::from(*name)).chain(entries).collect()
    };
    let mut columns = vec![("counter".to_owned(), false)];
    columns.extend((1..=components.len()).map(|number| (format!("component {number}"), true)));
    GraphTable {
        title: format!("{}: loadings (correlation of counter and component)", explanation.workload),
        columns,
        rows: names.iter().map(row).collect(),
        more,
    }
}
