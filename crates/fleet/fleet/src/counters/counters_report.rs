//! Reports totals with intervals, and where the cycles went.

use std::cmp::Reverse;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use luc_counters::cycle_stack::{
    CounterFigure, CycleStack, LostCyclesSource, PROCESSORS, ProcessorFormulas,
};
use luc_counters::perf_stat_file::{self, PerfStatFile};
use luc_counters::{
    CountEstimate, CountMode, CounterRecording, Formula, FormulaDefinitions, HardwareEvent,
    WithheldReason,
};
use serde::Serialize;

use super::error::CountersError;
use super::sum_hardware_counts::{self, CounterRows};

/// Selection of the counters to report.
#[derive(Debug, Clone, Copy, Default)]
pub struct CounterSelection<'s> {
    /// Process, by name or id, to which the report is limited; for traces only.
    pub process: Option<&'s str>,
    /// Processor whose formulas are used; `None`: the one whose events were counted.
    pub processor: Option<&'s str>,
    /// Interval at which stacks are also shown, ns.
    pub every_ns: Option<u64>,
}

/// Counters of a trace or a file.
#[derive(Debug, Clone, Serialize)]
pub struct CountersReport {
    pub file: PathBuf,
    /// End of the last reading, ns after the first began; 0 for a file without `-I`.
    pub length_ns: u64,
    pub readings: usize,
    pub totals: Vec<EventTotal>,
    /// Totals of each process of a trace. The one with the longest time on processors comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessCounters>,
    pub not_supported: Vec<String>,
    /// Note to read first, if any.
    pub note: Option<&'static str>,
    /// Processor whose formulas the stacks use; `None` if not all events of any processor were counted.
    pub processor: Option<&'static str>,
    /// Sources that the processor does not tell apart, and where they are instead.
    pub within: &'static [(LostCyclesSource, &'static str)],
    /// Stacks of cycles for each mode in which they were counted.
    pub stacks: Vec<CycleStack>,
    /// Stacks of each part of the time.
    pub series: Vec<IntervalStacks>,
}

/// Counters of a process of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessCounters {
    pub process: u32,
    pub name: String,
    /// Number of its threads that have counted something.
    pub threads: usize,
    /// Time that they were on processors, ns.
    pub on_processor_ns: u64,
    /// Cycles per instruction, for each mode in which both were counted.
    pub cpi: Vec<ModeCpi>,
    pub totals: Vec<EventTotal>,
}

/// Cycles per instruction in one mode of the processor.
#[derive(Debug, Clone, Serialize)]
pub struct ModeCpi {
    pub mode: CountMode,
    #[serde(flatten)]
    pub figure: CounterFigure,
}

/// Total of one event, with its unit and interval.
#[derive(Debug, Clone, Serialize)]
pub struct EventTotal {
    /// Event as perf names it.
    pub event: String,
    /// Unit; empty for a plain count.
    pub unit: String,
    #[serde(flatten)]
    pub figure: CounterFigure,
}

/// Stacks of a part of the time.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalStacks {
    /// End of the part, ns after the recording began.
    pub end_ns: u64,
    /// Stacks for each mode in which cycles were counted.
    pub stacks: Vec<CycleStack>,
}

/// Reports the counters in the rows of a trace.
///
/// # Errors
/// [`CountersError`] for a trace without counters, or without those of the process, and for an unknown processor.
pub(crate) fn report_trace(
    path: &Path,
    rows: &CounterRows<'_>,
    show: CounterSelection<'_>,
) -> Result<CountersReport, CountersError> {
    let sum_hardware_counts::HardwareCountSums { recording, processes } =
        sum_hardware_counts::sum_trace(path, rows, show.process)?;
    let units: Vec<String> = recording.events().iter().map(unit).collect();
    let mut found = report_recording(path, &recording, &units, show)?;
    let cycles = ProcessorFormulas::of(&recording)
        .map_or(["cycles", "instructions"], |processor| [processor.cycles, processor.instructions]);
    let processes = processes.iter().map(|one| report_process(one, &units, cycles));
    found.processes = processes.collect::<Result<_, _>>()?;
    found.processes.sort_by_key(|one| (Reverse(one.on_processor_ns), one.process));
    Ok(found)
}

/// Reports the counters of a file that `perf stat` wrote.
///
/// # Errors
/// [`CountersError`] for a file that is unreadable or not perf's, for a process, and for an unknown processor.
pub(crate) fn report_file(
    path: &Path,
    show: CounterSelection<'_>,
) -> Result<CountersReport, CountersError> {
    if show.process.is_some() {
        return Err(CountersError::NotOfProcesses { path: path.to_owned() });
    }
    let bytes =
        fs::read(path).map_err(|reason| CountersError::File { path: path.to_owned(), reason })?;
    let parsed = perf_stat_file::parse(&String::from_utf8_lossy(&bytes));
    let PerfStatFile { recording, units, not_supported } =
        parsed.map_err(|reason| CountersError::NotPerf { path: path.to_owned(), reason })?;
    let found = report_recording(path, &recording, &units, show)?;
    Ok(CountersReport {
        note: has_none(&not_supported).then_some("no hardware counters (virtual machine)"),
        not_supported,
        ..found
    })
}

fn report_recording(
    path: &Path,
    recording: &CounterRecording,
    units: &[String],
    show: CounterSelection<'_>,
) -> Result<CountersReport, CountersError> {
    let processor = match show.processor {
        Some(name) => Some(find_processor(name)?),
        None => ProcessorFormulas::of(recording),
    };
    let stacks = |recording: &CounterRecording| match processor {
        Some(processor) => stacks(processor, recording),
        None => Ok(Vec::new()),
    };
    let mut series = Vec::new();
    for range in ranges(recording.ends_ns(), show.every_ns) {
        let part = recording.part(range);
        series.push(IntervalStacks {
            end_ns: part.ends_ns().last().copied().unwrap_or(0),
            stacks: stacks(&part)?,
        });
    }
    Ok(CountersReport {
        file: path.to_owned(),
        length_ns: recording.ends_ns().last().copied().unwrap_or(0),
        readings: recording.ends_ns().len(),
        totals: totals(recording, units),
        processes: Vec::new(),
        note: None,
        not_supported: Vec::new(),
        processor: processor.map(|processor| processor.name),
        within: processor.map_or(&[], |processor| processor.within),
        stacks: stacks(recording)?,
        series,
    })
}

fn totals(recording: &CounterRecording, units: &[String]) -> Vec<EventTotal> {
    let total = |(place, event): (usize, &HardwareEvent)| EventTotal {
        event: event.to_string(),
        unit: units.get(place).cloned().unwrap_or_default(),
        figure: figure(luc_counters::total(recording, place)),
    };
    recording.events().iter().enumerate().map(total).collect()
}

fn report_process(
    one: &sum_hardware_counts::ProcessCounts,
    units: &[String],
    cycles: [&str; 2],
) -> Result<ProcessCounters, CountersError> {
    let recording = &one.recording;
    let [cycles, instructions] = cycles;
    let ratio = Formula::parse(&format!("d_ratio({cycles}, {instructions})"))?;
    let definitions = FormulaDefinitions::default();
    let counted = |mode: &CountMode| {
        [cycles, instructions].iter().all(|name| recording.find(name, *mode).is_some())
    };
    let modes = CountMode::ALL.into_iter().filter(counted);
    let cpi = modes.map(|mode| ModeCpi {
        mode,
        figure: figure(ratio.evaluate(&definitions, recording, mode)),
    });
    // Each event is enabled whenever a thread runs.
    let enabled_ns = |place| {
        recording.readings(place).iter().fold(0, |sum: u64, one| sum.saturating_add(one.enabled_ns))
    };
    Ok(ProcessCounters {
        process: one.id,
        name: one.name.clone(),
        threads: one.threads,
        on_processor_ns: (0..recording.events().len()).map(enabled_ns).max().unwrap_or(0),
        cpi: cpi.collect(),
        totals: totals(recording, units),
    })
}

fn figure(found: Result<CountEstimate, WithheldReason>) -> CounterFigure {
    match found {
        Ok(estimate) => CounterFigure::Known(estimate),
        Err(withheld) => CounterFigure::Withheld { withheld },
    }
}

/// Unit of a trace's event.
fn unit(event: &HardwareEvent) -> String {
    match event.name.as_str() {
        "task-clock" | "cpu-clock" => "ns".to_owned(),
        _ => String::new(),
    }
}

/// Lists the events that a processor's stack needs, for `perf stat -e`: in user space and in the kernel. Events that
/// the hardware counts together form a group.
///
/// # Errors
/// [`CountersError::NoSuchProcessor`].
pub fn events_of(processor: &str) -> Result<String, CountersError> {
    let processor = find_processor(processor)?;
    let all = processor.events()?;
    let mut words = Vec::new();
    for mode in [CountMode::User, CountMode::Kernel] {
        let name = |name: &str| HardwareEvent::new(name, mode).to_string();
        if !processor.together.is_empty() {
            let group: Vec<String> = processor.together.iter().map(|one| name(one)).collect();
            words.push(format!("{{{}}}", group.join(",")));
        }
        let alone = all.iter().filter(|one| !processor.together.contains(&one.as_str()));
        words.extend(alone.map(|one| name(one)));
    }
    Ok(words.join(","))
}

fn find_processor(name: &str) -> Result<&'static ProcessorFormulas, CountersError> {
    ProcessorFormulas::named(name).ok_or_else(|| CountersError::NoSuchProcessor {
        name: name.to_owned(),
        names: PROCESSORS.map(|processor| processor.name).join(", "),
    })
}

fn stacks(
    processor: &ProcessorFormulas,
    recording: &CounterRecording,
) -> Result<Vec<CycleStack>, CountersError> {
    let counted = |mode: &CountMode| recording.find(processor.cycles, *mode).is_some();
    let modes = CountMode::ALL.into_iter().filter(counted);
    modes.map(|mode| Ok(processor.stack(recording, mode)?)).collect()
}

/// Ranges of the readings that end in each part of the time.
fn ranges(ends_ns: &[u64], every_ns: Option<u64>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let Some(every_ns) = every_ns.filter(|&every_ns| every_ns > 0) else {
        return ranges;
    };
    // A reading that is due at the end of a part may be late by less than half a reading.
    let reading_ns = ends_ns.last().map_or(0, |last| last / ends_ns.len() as u64);
    let part = |end_ns: u64| end_ns.saturating_sub(reading_ns / 2 + 1) / every_ns;
    for (at, &end_ns) in ends_ns.iter().enumerate() {
        match ranges.last_mut() {
            Some(last) if part(ends_ns[last.start]) == part(end_ns) => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Whether the machine lacks even a counter for cycles.
fn has_none(not_supported: &[String]) -> bool {
    let mut events = not_supported.iter().map(|text| HardwareEvent::of_perf(text));
    events.any(|event| ["cycles", "cpu-cycles", "instructions"].contains(&event.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_are_a_little_late_are_in_their_part() {
        let ends_ns = [500, 1_001, 1_500, 2_002, 2_500];
        assert_eq!(ranges(&ends_ns, Some(1_000)), [0..2, 2..4, 4..5]);
        // A part of many readings takes none of the next part.
        let ends_ns: Vec<u64> = (1..=80).map(|at| at * 100 + 1).collect();
        assert_eq!(ranges(&ends_ns, Some(4_000)), [0..40, 40..80]);
        assert_eq!(ranges(&ends_ns, None), []);
        assert_eq!(ranges(&ends_ns, Some(0)), []);
    }

    #[test]
    fn what_is_recorded_by_these_events_has_a_stack() {
        for processor in &PROCESSORS {
            let words = events_of(processor.name).expect("events");
            for event in processor.events().expect("events") {
                for mode in [CountMode::User, CountMode::Kernel] {
                    assert!(
                        words.contains(&HardwareEvent::new(&event, mode).to_string()),
                        "{event}"
                    );
                }
            }
        }
        let refused = events_of("abacus").expect_err("no processor").to_string();
        assert!(refused.contains("amd-zen4"), "{refused}");
    }
}
