//! Prints counters of processors.

use std::fmt;

use luc_counters::NoInterval;
use luc_counters::cycle_stack::{CounterFigure, CycleClosure, CycleStack, LostCyclesSource};
use luc_units::number_formats::{FormattedShare, FormattedTime, digits};
use luc_units::plain;

use super::style::{TextStyle, count, dash_or};
use super::table::TextTable;
use crate::counters::{CountersReport, IntervalStacks};

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &CountersReport,
) -> fmt::Result {
    if let Some(note) = all.note {
        writeln!(f, "{note}")?;
    }
    let length = if all.length_ns > 0 {
        format!("{}, ", FormattedTime::from(all.length_ns))
    } else {
        String::new()
    };
    writeln!(
        f,
        "{}: {length}{} of {}",
        plain(&all.file.to_string_lossy()),
        count(all.readings as u64, "reading", "readings"),
        count(all.totals.len() as u64, "event", "events"),
    )?;
    if !all.not_supported.is_empty() {
        let names = plain(&all.not_supported.join(", "));
        writeln!(f, "not supported there: {names}")?;
    }
    write_totals(f, style, all)?;
    write_processes(f, style, all)?;
    write_stacks(f, style, all)?;
    write_series(f, style, &all.series)
}

fn write_totals(f: &mut fmt::Formatter<'_>, style: TextStyle, all: &CountersReport) -> fmt::Result {
    if all.totals.is_empty() {
        return Ok(());
    }
    style.title(f, "Totals, with 95 % intervals")?;
    let mut table = TextTable::new("event | >total | >+- | >counted for | remark");
    for total in &all.totals {
        let mut cells = vec![plain(&total.event)];
        match &total.figure {
            CounterFigure::Known(found) => {
                let unit = if total.unit.is_empty() {
                    String::new()
                } else {
                    format!(" {}", plain(&total.unit))
                };
                cells.push(format!("{}{unit}", digits(found.value)));
                let error = found.half_width.map(|half_width| half_width / found.value.abs());
                cells.push(dash_or(error, |share| FormattedShare(finite(share)).to_string()));
                cells.push(FormattedShare(found.running_share).to_string());
                cells.push(describe_missing(found.no_interval).to_owned());
            }
            CounterFigure::Withheld { withheld } => {
                cells.extend(["-", "-", "-"].map(str::to_owned));
                cells.push(plain(&withheld.to_string()));
            }
        }
        table.row(cells);
    }
    write!(f, "{table}")
}

/// Maximum number of processes; those that were on processors for the longest stay.
const MAX_PROCESSES: usize = 15;
/// Maximum number of columns for events.
const MAX_EVENT_COLUMNS: usize = 6;

fn write_processes(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &CountersReport,
) -> fmt::Result {
    let Some(first) = all.processes.first() else {
        return Ok(());
    };
    style.title(f, "By process")?;
    let mut table = TextTable::new("process | >threads | >on processors");
    table.extend_heads(first.cpi.iter().map(|cpi| format!(">CPI {}", cpi.mode)));
    let shown = first.totals.iter().take(MAX_EVENT_COLUMNS);
    table.extend_heads(shown.map(|total| format!(">{}", plain(&total.event))));
    for one in all.processes.iter().take(MAX_PROCESSES) {
        let mut cells = vec![
            format!("{} {}", plain(&one.name), one.process),
            one.threads.to_string(),
            FormattedTime::from(one.on_processor_ns).to_string(),
        ];
        cells.extend(one.cpi.iter().map(|cpi| format_number(&cpi.figure)));
        let shown = one.totals.iter().take(MAX_EVENT_COLUMNS);
        cells.extend(shown.map(|total| format_number(&total.figure)));
        table.row(cells);
    }
    write!(f, "{table}")?;
    if all.processes.len() > MAX_PROCESSES {
        let more = all.processes.len() - MAX_PROCESSES;
        writeln!(f, "  and {more} more (--json has all)")?;
    }
    Ok(())
}

/// Replaces 0 of 0 by 0.
fn finite(share: f64) -> f64 {
    if share.is_finite() { share } else { 0.0 }
}

fn describe_missing(no_interval: Option<NoInterval>) -> &'static str {
    match no_interval {
        None => "",
        Some(NoInterval::FewRotations) => {
            "no interval: too few turns; read more often, or record for longer"
        }
        Some(NoInterval::FewTurns) => "no interval: seen in few turns",
    }
}

fn write_stacks(f: &mut fmt::Formatter<'_>, style: TextStyle, all: &CountersReport) -> fmt::Result {
    let processor = match all.processor {
        Some(processor) if !all.stacks.is_empty() => processor,
        chosen => {
            let what = match chosen {
                Some(processor) => format!("the cycles of {processor} were not counted"),
                None => "not all events of a processor were counted".to_owned(),
            };
            return writeln!(
                f,
                "\nwhere cycles go is not known: {what}; `luc fleet counters --events NAME` lists the events"
            );
        }
    };
    style.title(f, &format!("Where the cycles go, in % of them ({processor})"))?;
    let mut table = TextTable::new(" | >user | >kernel | >total");
    let mut row = |name: &str, cell: &dyn Fn(&CycleStack) -> String| {
        let mut cells = vec![name.to_owned()];
        for mode in luc_counters::CountMode::ALL {
            let stack = all.stacks.iter().find(|stack| stack.mode == mode);
            cells.push(dash_or(stack, cell));
        }
        table.row(cells);
    };
    row("cycles of an instruction", &|stack| format_number(&stack.cpi));
    row("completion", &|stack| format_share(&stack.completion));
    for source in LostCyclesSource::ALL {
        if all.stacks.iter().any(|stack| find_part(stack, source).is_some()) {
            row(&source.to_string(), &|stack| dash_or(find_part(stack, source), format_share));
        }
    }
    row("in none of these", &|stack| format_share(&stack.missing));
    row("", &|stack| {
        let closes = match stack.closure {
            CycleClosure::Closes => "closes",
            CycleClosure::Misses => "does not close",
            CycleClosure::Unknown => "not known",
        };
        closes.to_owned()
    });
    write!(f, "{table}")?;
    for (source, place) in all.within {
        writeln!(f, "  {source}: {place}")?;
    }
    let unknown = all.stacks.iter().find_map(|stack| match &stack.missing {
        CounterFigure::Withheld { withheld } => Some((stack.mode, withheld)),
        CounterFigure::Known(_) => None,
    });
    if let Some((mode, withheld)) = unknown {
        writeln!(f, "  not all is known of {mode}: {}", plain(&withheld.to_string()))?;
    }
    Ok(())
}

/// Prints the stacks of each part of the time, in the last counted mode: the total, if it was counted.
fn write_series(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    series: &[IntervalStacks],
) -> fmt::Result {
    let Some(first) = series.first().and_then(|at| at.stacks.last()) else {
        return Ok(());
    };
    style.title(f, &format!("Over time, {}", first.mode))?;
    let mut table = TextTable::new(">until | >CPI | >completion");
    table.extend_heads(first.parts.iter().map(|part| short_head(part.source).to_owned()));
    table.extend_heads([">none of these".to_owned()]);
    for at in series {
        let Some(stack) = at.stacks.last() else {
            continue;
        };
        let value = |figure: &CounterFigure| {
            dash_or(figure.known(), |found| FormattedShare(found.value).to_string())
        };
        let mut cells = vec![
            FormattedTime::from(at.end_ns).to_string(),
            dash_or(stack.cpi.known(), |found| digits(found.value)),
            value(&stack.completion),
        ];
        cells.extend(stack.parts.iter().map(|part| value(&part.share)));
        cells.push(value(&stack.missing));
        table.row(cells);
    }
    write!(f, "{table}")
}

fn short_head(source: LostCyclesSource) -> &'static str {
    match source {
        LostCyclesSource::InstructionCache => ">I-cache",
        LostCyclesSource::BranchMisprediction => ">branches",
        LostCyclesSource::DataCache => ">D-cache",
        LostCyclesSource::Translation => ">TLB",
        LostCyclesSource::LoadStore => ">load/store",
        LostCyclesSource::Rejects => ">rejects",
        LostCyclesSource::FloatingPoint => ">FP",
        LostCyclesSource::Integer => ">integer",
        LostCyclesSource::Other => ">other",
    }
}

fn find_part(stack: &CycleStack, source: LostCyclesSource) -> Option<&CounterFigure> {
    stack.parts.iter().find(|part| part.source == source).map(|part| &part.share)
}

fn format_number(figure: &CounterFigure) -> String {
    dash_or(figure.known(), |found| match found.half_width {
        Some(half_width) => format!("{} +- {}", digits(found.value), digits(half_width)),
        None => digits(found.value),
    })
}

fn format_share(figure: &CounterFigure) -> String {
    dash_or(figure.known(), |found| match found.half_width {
        Some(half_width) => {
            format!("{:.1} +- {:.1}", 100.0 * found.value + 0.0, 100.0 * half_width)
        }
        None => format!("{:.1}", 100.0 * found.value + 0.0),
    })
}
