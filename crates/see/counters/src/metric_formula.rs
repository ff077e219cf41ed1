//! Formulas of events, in the language of perf's metrics (`MetricExpr` in the kernel's tools/perf/pmu-events; its
//! grammar is tools/perf/util/expr.y).
//!
//! The language has numbers, event names, `#literals` and `A if C else B`. Its operators are `+ - * / %`, `< >` and
//! `& ^ |`. Its functions are `min`, `max`, `d_ratio`, `source_count` and `has_event`. `d_ratio` is a quotient that
//! is 0 where its divisor is. In a name `@` is a `/`, and `\` comes before `-`, `,` and `=`, as in
//! `cpu@inst_misc.any\,cmask\=1@`.

mod dual_number;
mod formula_tree;
mod parse_formula;

use std::collections::BTreeMap;

use dual_number::DualNumber;
use formula_tree::{FormulaFunction, FormulaNode, FormulaOperator};

use super::count_estimate::{CountEstimate, WithheldReason, figure};
use super::counter_recording::CounterRecording;
use super::hardware_event::CountMode;

pub use formula_tree::FormulaError;

/// Maximum depth of definitions that name definitions. Deeper ones count as a circle.
const MAX_DEPTH: usize = 32;

/// A formula that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula(FormulaNode);

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        parse_formula::parse(text).map(Self)
    }

    /// Computes its value by a recording, in a mode, with an interval.
    ///
    /// # Errors
    /// See [`WithheldReason`]. A literal that is not defined was not counted.
    pub fn evaluate(
        &self,
        definitions: &FormulaDefinitions,
        recording: &CounterRecording,
        mode: CountMode,
    ) -> Result<CountEstimate, WithheldReason> {
        let node = definitions.expand(&self.0, recording, mode, 0)?;
        let mut names = BTreeMap::new();
        let mut events = Vec::new();
        collect(&node, recording, mode, &mut names, &mut events)?;
        figure(recording, &events, |totals| {
            let value = evaluate(&node, &names, totals);
            (value.value, value.slopes)
        })
    }

    /// Returns the events that it needs, in the order in which it names them.
    #[must_use]
    pub fn events(&self, definitions: &FormulaDefinitions) -> Vec<String> {
        let mut found = Vec::new();
        definitions.names(&self.0, &mut found, 0);
        found
    }
}

/// Formulas by name, and values of `#literals`.
#[derive(Debug, Clone, Default)]
pub struct FormulaDefinitions {
    formulas: BTreeMap<String, Formula>,
    literals: BTreeMap<String, f64>,
}

impl FormulaDefinitions {
    /// Defines a formula, which others can name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn define(&mut self, name: &str, text: &str) -> Result<(), FormulaError> {
        let formula = Formula::parse(text)?;
        self.formulas.insert(name.to_ascii_lowercase(), formula);
        Ok(())
    }

    /// Sets the value of a literal, named without its mark.
    pub fn set(&mut self, literal: &str, value: f64) {
        self.literals.insert(literal.to_ascii_lowercase(), value);
    }

    /// Replaces the names of definitions in a formula by the definitions.
    fn expand(
        &self,
        node: &FormulaNode,
        recording: &CounterRecording,
        mode: CountMode,
        depth: usize,
    ) -> Result<FormulaNode, WithheldReason> {
        let expand = |node: &FormulaNode| self.expand(node, recording, mode, depth);
        let boxed = |node: &FormulaNode| expand(node).map(Box::new);
        Ok(match node {
            FormulaNode::Number(number) => FormulaNode::Number(*number),
            FormulaNode::Literal(name) => {
                let found = self.literals.get(name).copied();
                FormulaNode::Number(
                    found.ok_or_else(|| WithheldReason::NotCounted(format!("#{name}")))?,
                )
            }
            FormulaNode::Name(name) => match self.formulas.get(name) {
                Some(_) if depth == MAX_DEPTH => {
                    return Err(WithheldReason::NotCounted(name.clone()));
                }
                Some(formula) => self.expand(&formula.0, recording, mode, depth + 1)?,
                None => FormulaNode::Name(name.clone()),
            },
            FormulaNode::Binary(operator, left, right) => {
                FormulaNode::Binary(*operator, boxed(left)?, boxed(right)?)
            }
            FormulaNode::If(nodes) => {
                let [condition, then, other] = nodes.as_ref();
                FormulaNode::If(Box::new([expand(condition)?, expand(then)?, expand(other)?]))
            }
            FormulaNode::Call(FormulaFunction::HasEvent, arguments) => {
                let has = |node: &FormulaNode| match node {
                    FormulaNode::Name(name) => recording.find(name, mode).is_some(),
                    _ => false,
                };
                FormulaNode::Number(f64::from(u8::from(arguments.iter().all(has))))
            }
            // One source each: the recorder adds up PMUs of several units.
            FormulaNode::Call(FormulaFunction::SourceCount, _) => FormulaNode::Number(1.0),
            FormulaNode::Call(function, arguments) => {
                let arguments = arguments.iter().map(expand).collect::<Result<_, _>>()?;
                FormulaNode::Call(*function, arguments)
            }
        })
    }

    fn names(&self, node: &FormulaNode, found: &mut Vec<String>, depth: usize) {
        match node {
            FormulaNode::Number(_) | FormulaNode::Literal(_) => {}
            FormulaNode::Name(name) => match self.formulas.get(name) {
                Some(formula) if depth < MAX_DEPTH => self.names(&formula.0, found, depth + 1),
                _ if found.contains(name) => {}
                _ => found.push(name.clone()),
            },
            FormulaNode::Binary(_, left, right) => {
                self.names(left, found, depth);
                self.names(right, found, depth);
            }
            FormulaNode::If(nodes) => {
                let nodes = nodes.iter();
                nodes.for_each(|node| self.names(node, found, depth));
            }
            FormulaNode::Call(_, nodes) => {
                let nodes = nodes.iter();
                nodes.for_each(|node| self.names(node, found, depth));
            }
        }
    }
}

/// Finds each name's events: its places among all events of the formula.
fn collect(
    node: &FormulaNode,
    recording: &CounterRecording,
    mode: CountMode,
    names: &mut BTreeMap<String, Vec<usize>>,
    events: &mut Vec<usize>,
) -> Result<(), WithheldReason> {
    match node {
        FormulaNode::Number(_) | FormulaNode::Literal(_) => Ok(()),
        FormulaNode::Name(name) => {
            if !names.contains_key(name) {
                let missing = || {
                    let wanted = super::hardware_event::HardwareEvent::new(name, mode);
                    WithheldReason::NotCounted(wanted.to_string())
                };
                let found = recording.find(name, mode).ok_or_else(missing)?;
                let first = events.len();
                events.extend(&found);
                names.insert(name.clone(), (first..events.len()).collect());
            }
            Ok(())
        }
        FormulaNode::Binary(_, left, right) => {
            collect(left, recording, mode, names, events)?;
            collect(right, recording, mode, names, events)
        }
        FormulaNode::If(nodes) => {
            let mut nodes = nodes.iter();
            nodes.try_for_each(|node| collect(node, recording, mode, names, events))
        }
        FormulaNode::Call(_, nodes) => {
            let mut nodes = nodes.iter();
            nodes.try_for_each(|node| collect(node, recording, mode, names, events))
        }
    }
}

fn evaluate(
    node: &FormulaNode,
    names: &BTreeMap<String, Vec<usize>>,
    totals: &[f64],
) -> DualNumber {
    let of = |node: &FormulaNode| evaluate(node, names, totals);
    let constant = |value| DualNumber::constant(value, totals.len());
    match node {
        FormulaNode::Number(number) => constant(*number),
        // `expand` leaves none.
        FormulaNode::Literal(_) => constant(f64::NAN),
        FormulaNode::Name(name) => {
            let places = names.get(name).map_or(&[][..], Vec::as_slice);
            DualNumber::sum_of(places, totals)
        }
        FormulaNode::Binary(operator, left, right) => of(left).combine(*operator, of(right)),
        FormulaNode::If(nodes) => {
            let [condition, then, other] = nodes.as_ref();
            of(if of(condition).value != 0.0 { then } else { other })
        }
        FormulaNode::Call(function, arguments) => {
            let mut values = arguments.iter().map(of);
            let (Some(first), Some(second)) = (values.next(), values.next()) else {
                return constant(f64::NAN);
            };
            match function {
                FormulaFunction::Min if second.value < first.value => second,
                FormulaFunction::Max if second.value > first.value => second,
                FormulaFunction::Ratio if second.value == 0.0 => constant(0.0),
                FormulaFunction::Ratio => first.combine(FormulaOperator::Over, second),
                FormulaFunction::Min | FormulaFunction::Max => first,
                FormulaFunction::SourceCount | FormulaFunction::HasEvent => constant(f64::NAN),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_recording::CounterReading;
    use crate::hardware_event::HardwareEvent;

    /// Events of these counts, counted all the time.
    fn counted(events: &[(&str, f64)]) -> CounterRecording {
        let names = events.iter().map(|(name, _)| HardwareEvent::of_perf(name));
        let mut recording = CounterRecording::new(names.collect());
        let readings = events.iter().map(|&(_, value)| CounterReading {
            value,
            enabled_ns: 10,
            running_ns: 10,
        });
        recording.add(10, &readings.collect::<Vec<_>>());
        recording
    }

    fn value(text: &str, recording: &CounterRecording) -> Result<f64, WithheldReason> {
        let mut definitions = FormulaDefinitions::default();
        definitions.set("slots", 8.0);
        definitions.define("CPI", "cycles / instructions").expect("a formula");
        definitions.define("circle", "circle + 1").expect("a formula");
        let formula = Formula::parse(text).expect(text);
        let found = formula.evaluate(&definitions, recording, CountMode::Total);
        found.map(|estimate| estimate.value)
    }

    #[test]
    fn values_as_perf_has_them() {
        let recording = counted(&[
            ("cycles", 30.0),
            ("instructions", 20.0),
            ("zero", 0.0),
            ("topdown-be-bound", 4.0),
            ("cpu/any,cmask=0x6/", 7.0),
            ("l.1_port", 3.0),
        ]);
        for (text, expected) in [
            ("1 + 2 * 3 - 4 / 2", 5.0),
            ("(1 + 2) * -3", -9.0),
            ("- 2 + 5 % 3", 0.0),
            ("CPI", 1.5),
            ("CPU@any\\,cmask\\=0x6@ + topdown\\-be\\-bound", 11.0),
            ("L.1_PORT * #slots", 24.0),
            ("min(cycles, instructions) + max(1, 2)", 22.0),
            ("d_ratio(cycles, zero)", 0.0),
            ("1 if cycles > 20 else 2", 1.0),
            ("1 if cycles < 20 else 2 if zero else 3", 3.0),
            ("(1 if 0 | 1 else 2) + (5 & 6) + (5 ^ 6)", 8.0),
            ("source_count(cycles) + has_event(cycles) + has_event(nothing)", 2.0),
            ("1e3 + .5", 1000.5),
        ] {
            assert_eq!(value(text, &recording), Ok(expected), "{text}");
        }
        assert_eq!(value("cycles / zero", &recording), Err(WithheldReason::Undefined));
        // However many terms come first.
        let long = format!("{}CPI", "1 + ".repeat(100));
        assert_eq!(value(&long, &recording), Ok(101.5));
        let last = format!("CPI{}", " + 1".repeat(100));
        assert_eq!(value(&last, &recording), Ok(101.5));
        for missing in ["branches + 1", "#nothing", "circle"] {
            let refused = value(missing, &recording);
            assert!(matches!(refused, Err(WithheldReason::NotCounted(_))), "{missing}");
        }
    }

    #[test]
    fn modes_are_kept_apart_and_add_up() {
        let recording = counted(&[
            ("cycles:u", 30.0),
            ("cycles:k", 10.0),
            ("instructions:u", 20.0),
            ("instructions:k", 5.0),
        ]);
        let formula = Formula::parse("cycles / instructions").expect("a formula");
        let in_mode = |mode| {
            let found = formula.evaluate(&FormulaDefinitions::default(), &recording, mode);
            found.expect("a figure").value
        };
        assert_eq!(CountMode::ALL.map(in_mode), [1.5, 2.0, 1.6]);
    }

    #[test]
    fn events_are_named_once_and_through_definitions() {
        let mut definitions = FormulaDefinitions::default();
        definitions.define("cpi", "cycles / instructions").expect("a formula");
        let formula = Formula::parse("cpi * max(CYCLES, stalls) if #x else 1").expect("a formula");
        assert_eq!(formula.events(&definitions), ["cycles", "instructions", "stalls"]);
    }
}
