//! Stacks of a processor's cycles, in user space, in the kernel and in all. The cycles of an instruction (CPI) are
//! split into those in which instructions complete and those lost to nine sources. The sources are those of
//! *Experiences Understanding Performance in a Commercial Scale-Out Environment*, figures 2a and 2b.
//!
//! Processors differ in the sources that their counters separate. [`PROCESSORS`] has formulas for these, and names
//! the source that contains the others. The shares are of the slots in which a processor could begin an operation, as
//! in top-down analysis. Yasin describes that in *A Top-Down Method for Performance Analysis and Counters
//! Architecture*, ISPASS 2014.
//!
//! Completion and the sources come from different counters. They must sum to all cycles; the missing part is a separate
//! figure with an interval.

mod processor_formulas;

use std::fmt;

use serde::Serialize;

use super::count_estimate::{CountEstimate, WithheldReason};
use super::counter_recording::CounterRecording;
use super::hardware_event::CountMode;
use super::metric_formula::{Formula, FormulaDefinitions, FormulaError};

pub use processor_formulas::PROCESSORS;

/// A source of lost cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LostCyclesSource {
    /// Instructions are not in the cache.
    InstructionCache,
    /// A branch went another way than predicted, or its target was not known.
    BranchMisprediction,
    /// Data are not in the first cache.
    DataCache,
    /// An address is not in a TLB, of instructions or data.
    Translation,
    /// Loads and stores wait, though their data are in the first cache.
    LoadStore,
    /// Work is thrown away and done again for another reason than a branch: the order of memory accesses, say.
    Rejects,
    /// Floating-point units and the divider.
    FloatingPoint,
    /// Integer units, ports and dependences.
    Integer,
    /// The rest: decoding, the other thread of the core.
    Other,
}

impl LostCyclesSource {
    /// All sources, in the paper's order.
    pub const ALL: [Self; 9] = [
        Self::InstructionCache,
        Self::BranchMisprediction,
        Self::DataCache,
        Self::Translation,
        Self::LoadStore,
        Self::Rejects,
        Self::FloatingPoint,
        Self::Integer,
        Self::Other,
    ];
}

impl fmt::Display for LostCyclesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InstructionCache => "instruction cache",
            Self::BranchMisprediction => "branch misprediction",
            Self::DataCache => "data cache",
            Self::Translation => "address translation",
            Self::LoadStore => "load and store latency",
            Self::Rejects => "rejects",
            Self::FloatingPoint => "floating point, divider",
            Self::Integer => "integer",
            Self::Other => "other",
        })
    }
}

/// Formulas for the cycles of a processor.
#[derive(Debug, Clone, Copy)]
pub struct ProcessorFormulas {
    /// Name on a command line.
    pub name: &'static str,
    /// Description, and the origin of the formulas.
    pub about: &'static str,
    /// Event that counts cycles.
    pub cycles: &'static str,
    /// Event that counts completed instructions.
    pub instructions: &'static str,
    /// Events that the hardware counts together, the leader of the group first.
    pub together: &'static [&'static str],
    /// Formulas that others name.
    pub definitions: &'static [(&'static str, &'static str)],
    /// Share of the cycles in which instructions complete.
    pub completion: &'static str,
    /// Share of the cycles that is lost to each source.
    pub parts: &'static [(LostCyclesSource, &'static str)],
    /// Sources that it does not separate, and the names of what contains them.
    pub within: &'static [(LostCyclesSource, &'static str)],
}

/// A figure, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CounterFigure {
    /// A known figure.
    Known(CountEstimate),
    /// No figure.
    Withheld {
        /// The reason.
        withheld: WithheldReason,
    },
}

impl CounterFigure {
    /// Returns the figure, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&CountEstimate> {
        match self {
            Self::Known(estimate) => Some(estimate),
            Self::Withheld { .. } => None,
        }
    }
}

/// Cycles that are lost to a source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CyclesPart {
    /// Source of the loss.
    pub source: LostCyclesSource,
    /// Share of the cycles.
    pub share: CounterFigure,
    /// Cycles of an instruction.
    pub cpi: CounterFigure,
}

/// Whether completion and the sources sum to all cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleClosure {
    /// The sum is right, within the interval.
    Closes,
    /// The sum is wrong: some cycles are lost without a counter, or are counted twice.
    Misses,
    /// A figure is withheld, or there is no interval.
    Unknown,
}

/// The cycles in a mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CycleStack {
    /// Mode of the processor.
    pub mode: CountMode,
    /// Cycles of an instruction.
    pub cpi: CounterFigure,
    /// Share of the cycles in which instructions complete.
    pub completion: CounterFigure,
    /// Completion as cycles of an instruction.
    pub completion_cpi: CounterFigure,
    /// Losses to each source that the processor separates, in the order of [`LostCyclesSource::ALL`].
    pub parts: Vec<CyclesPart>,
    /// Share of the cycles in none of these; negative if cycles are counted twice.
    pub missing: CounterFigure,
    /// Whether the sum is right.
    pub closure: CycleClosure,
}

impl ProcessorFormulas {
    /// Returns the processor with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROCESSORS.iter().find(|processor| processor.name == name)
    }

    /// Returns the first processor whose events are all in a recording, in some mode.
    #[must_use]
    pub fn of(recording: &CounterRecording) -> Option<&'static Self> {
        PROCESSORS.iter().find(|processor| {
            let has = |name: &String| {
                let mut modes = CountMode::ALL.into_iter();
                modes.any(|mode| recording.find(name, mode).is_some())
            };
            processor.events().is_ok_and(|events| events.iter().all(has))
        })
    }

    /// Returns the events that it needs, as the kernel's tables name them, cycles and instructions first.
    ///
    /// # Errors
    /// A formula that cannot be read.
    pub fn events(&self) -> Result<Vec<String>, FormulaError> {
        let definitions = self.read()?;
        let mut events = vec![self.cycles.to_owned(), self.instructions.to_owned()];
        let parts = self.parts.iter().map(|(_, text)| *text);
        for text in std::iter::once(self.completion).chain(parts) {
            for event in Formula::parse(text)?.events(&definitions) {
                if !events.contains(&event) {
                    events.push(event);
                }
            }
        }
        Ok(events)
    }

    /// Splits the cycles of a recording.
    ///
    /// # Errors
    /// A formula that cannot be read.
    pub fn stack(
        &self,
        recording: &CounterRecording,
        mode: CountMode,
    ) -> Result<CycleStack, FormulaError> {
        let definitions = self.read()?;
        let evaluate = |text: &str| -> Result<CounterFigure, FormulaError> {
            let found = Formula::parse(text)?.evaluate(&definitions, recording, mode);
            Ok(match found {
                Ok(estimate) => CounterFigure::Known(estimate),
                Err(withheld) => CounterFigure::Withheld { withheld },
            })
        };
        let per_instruction = |share: &str| evaluate(&format!("({share}) * stack.cpi"));
        let mut parts = Vec::new();
        for (source, share) in self.parts {
            parts.push(CyclesPart {
                source: *source,
                share: evaluate(share)?,
                cpi: per_instruction(share)?,
            });
        }
        parts.sort_by_key(|part| part.source);
        let missing = evaluate("stack.missing")?;
        let closure = match missing.known() {
            Some(CountEstimate { value, half_width: Some(half_width), .. }) => {
                // Of 1; sums of shares are not exact.
                if value.abs() <= half_width + 1e-9 {
                    CycleClosure::Closes
                } else {
                    CycleClosure::Misses
                }
            }
            _ => CycleClosure::Unknown,
        };
        Ok(CycleStack {
            mode,
            cpi: evaluate("stack.cpi")?,
            completion: evaluate(self.completion)?,
            completion_cpi: per_instruction(self.completion)?,
            parts,
            missing,
            closure,
        })
    }

    fn read(&self) -> Result<FormulaDefinitions, FormulaError> {
        let mut definitions = FormulaDefinitions::default();
        for (name, text) in self.definitions {
            definitions.define(name, text)?;
        }
        let cpi = format!("{} / {}", self.cycles, self.instructions);
        definitions.define("stack.cpi", &cpi)?;
        let mut missing = format!("1 - ({})", self.completion);
        for (_, text) in self.parts {
            missing.push_str(&format!(" - ({text})"));
        }
        definitions.define("stack.missing", &missing)?;
        Ok(definitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_recording::CounterReading;
    use crate::hardware_event::HardwareEvent;

    #[test]
    fn each_processor_has_each_source_once_and_formulas_that_can_be_read() {
        for processor in &PROCESSORS {
            let parts = processor.parts.iter().map(|(source, _)| *source);
            let within = processor.within.iter().map(|(source, _)| *source);
            let mut sources: Vec<LostCyclesSource> = parts.chain(within).collect();
            sources.sort();
            assert_eq!(sources, LostCyclesSource::ALL, "{}", processor.name);
            let events = processor.events().expect(processor.name);
            assert!(events.len() <= 40, "{}", processor.name);
            // What is no event is a definition that is missing.
            for event in &events {
                let known = event.contains(['.', '-', '_', '/'])
                    || event == "cycles"
                    || event == "instructions"
                    || event == "slots";
                assert!(known, "{}: {event}", processor.name);
            }
            assert_eq!(
                ProcessorFormulas::named(processor.name).map(|found| found.name),
                Some(processor.name)
            );
        }
    }

    /// A recording of these counts in user space, counted all the time.
    fn counted(counts: &[(&str, f64)]) -> CounterRecording {
        let events = counts.iter().map(|(name, _)| HardwareEvent::new(name, CountMode::User));
        let mut recording = CounterRecording::new(events.collect());
        let readings = counts.iter().map(|&(_, value)| CounterReading {
            value,
            enabled_ns: 10,
            running_ns: 10,
        });
        recording.add(10, &readings.collect::<Vec<_>>());
        recording
    }

    #[test]
    fn each_figure_of_each_processor_is_known_if_all_its_events_are_counted() {
        for processor in &PROCESSORS {
            let events = processor.events().expect("formulas");
            let counts: Vec<(&str, f64)> = events.iter().map(|name| (name.as_str(), 8.0)).collect();
            let recording = counted(&counts);
            let stack = processor.stack(&recording, CountMode::User).expect("formulas");
            let whole = [&stack.cpi, &stack.completion, &stack.completion_cpi, &stack.missing];
            let parts = stack.parts.iter().flat_map(|part| [&part.share, &part.cpi]);
            for figure in whole.into_iter().chain(parts) {
                assert!(figure.known().is_some(), "{}: {figure:?}", processor.name);
            }
            assert_eq!(stack.parts.len(), processor.parts.len());
        }
    }

    fn share(stack: &CycleStack, source: LostCyclesSource) -> f64 {
        let part = stack.parts.iter().find(|part| part.source == source);
        part.expect("told").share.known().expect("known").value
    }

    /// 1000 cycles of 6 slots: 1500 retire, 900 are lost in the front end, 300 to speculation, 3000 in the back end.
    const ZEN_4: [(&str, f64); 12] = [
        ("ls_not_halted_cyc", 1000.0),
        ("ex_ret_instr", 500.0),
        ("ex_ret_ops", 1500.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 900.0),
        ("cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/", 100.0),
        ("de_src_op_disp.all", 1800.0),
        ("de_no_dispatch_per_slot.backend_stalls", 3000.0),
        ("de_no_dispatch_per_slot.smt_contention", 300.0),
        ("ex_ret_brn_misp", 30.0),
        ("resyncs_or_nc_redirects", 10.0),
        ("ex_no_retire.load_not_complete", 300.0),
        ("ex_no_retire.not_complete", 500.0),
    ];

    #[test]
    fn a_stack_by_hand() {
        let recording = counted(&ZEN_4);
        let processor = ProcessorFormulas::of(&recording).expect("its events are there");
        assert_eq!(processor.name, "amd-zen4");
        let stack = processor.stack(&recording, CountMode::User).expect("formulas");
        assert_eq!(stack.cpi.known().expect("known").value, 2.0);
        assert_eq!(stack.completion.known().expect("known").value, 0.25);
        assert_eq!(stack.completion_cpi.known().expect("known").value, 0.5);
        for (source, expected) in [
            (LostCyclesSource::InstructionCache, 0.1),
            (LostCyclesSource::BranchMisprediction, 0.0375),
            (LostCyclesSource::Rejects, 0.0125),
            (LostCyclesSource::DataCache, 0.3),
            (LostCyclesSource::Integer, 0.2),
            (LostCyclesSource::Other, 0.1),
        ] {
            let found = share(&stack, source);
            assert!((found - expected).abs() < 1e-9, "{source}: {found}");
        }
        assert_eq!(stack.closure, CycleClosure::Closes);
        let kernel = processor.stack(&recording, CountMode::Kernel).expect("formulas");
        assert_eq!(kernel.closure, CycleClosure::Unknown);
        assert!(
            matches!(&kernel.cpi, CounterFigure::Withheld { withheld: WithheldReason::NotCounted(name) } if name == "ls_not_halted_cyc:k")
        );
    }

    #[test]
    fn what_no_counter_tells_is_missing() {
        let mut counts = ZEN_4;
        counts[7].1 = 0.0;
        let recording = counted(&counts);
        let processor = ProcessorFormulas::of(&recording).expect("its events are there");
        let stack = processor.stack(&recording, CountMode::User).expect("formulas");
        assert_eq!(stack.closure, CycleClosure::Misses);
        let missing = stack.missing.known().expect("known").value;
        assert!((missing - 0.05).abs() < 1e-9, "{missing}");
    }
}
