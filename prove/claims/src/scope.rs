//! Evaluation of expressions and templates for a row.

use luc_harness::report::number;

use super::ClaimsError;
use super::claims::Claims;
use super::data::Data;
use super::expression::{self, Expression, Operator};
use super::functions;
use super::series::{Selection, Series, VALUE};
use super::value::{Value, to_number};

/// A row of a page, in which names have a meaning.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    pub(super) data: &'a Data,
    pub(super) claims: &'a Claims,
    pub(super) row: Selection,
    pub(super) names: Vec<(&'a str, Value)>,
}

/// Maximum depth of definitions.
const DEEPEST: usize = 20;

impl<'a> Scope<'a> {
    pub(super) fn new(data: &'a Data, claims: &'a Claims) -> Self {
        Self { data, claims, row: Selection::new(), names: Vec::new() }
    }

    /// Returns the scope within a row.
    pub(super) fn with_row(&self, row: &Selection) -> Self {
        let mut scope = self.clone();
        scope.row.extend(row.clone());
        scope
    }

    /// Returns the scope with one more name.
    pub(super) fn with(&self, name: &'a str, value: Value) -> Self {
        let mut scope = self.clone();
        scope.names.push((name, value));
        scope
    }

    pub(super) fn value(&self, text: &str) -> Result<Value, ClaimsError> {
        let expression = self.claims.expression(text)?;
        let value = self.evaluate(&expression, 0);
        value.map_err(|reason| self.claims.wrong(format!("'{text}': {reason}")))
    }

    /// Evaluates an expression to a number; `None` if it was not measured.
    pub(super) fn number(&self, text: &str) -> Result<Option<f64>, ClaimsError> {
        let number = to_number(&self.value(text)?);
        number.map_err(|reason| self.claims.wrong(format!("'{text}': {reason}")))
    }

    /// Evaluates a condition; `None` if a figure of it was not measured.
    pub(super) fn holds(&self, text: &str) -> Result<Option<bool>, ClaimsError> {
        match self.value(text)? {
            Value::Bool(holds) => Ok(Some(holds)),
            Value::Missing => Ok(None),
            other => Err(self.claims.wrong(format!("'{text}': {other:?} is no condition"))),
        }
    }

    /// Fills in a template: expressions in braces are replaced. `{x:2}` has two digits, `{x:%}` is a share in percent.
    pub(super) fn text(&self, template: &str) -> Result<String, ClaimsError> {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (inner, after) = after
                .split_once('}')
                .ok_or_else(|| self.claims.wrong(format!("'{template}': a }} is missing")))?;
            let (inner, format) = inner.split_once(':').unwrap_or((inner, ""));
            text += before;
            text += &format_value(&self.value(inner)?, format);
            rest = after;
        }
        Ok(text + rest)
    }

    fn evaluate(&self, expression: &Expression, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("definitions go round in a circle".to_owned());
        }
        match expression {
            Expression::Number(number) => Ok(Value::Number(*number)),
            Expression::Name(name) => self.look_up(name, depth),
            Expression::Binary(operator, left, right) => {
                let left = self.evaluate(left, depth)?;
                apply(*operator, left, self.evaluate(right, depth)?)
            }
            Expression::Call(function, arguments) => self.call(function, arguments, depth),
        }
    }

    fn look_up(&self, name: &str, depth: usize) -> Result<Value, String> {
        if let Some((_, value)) = self.names.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        if let Some(text) = self.claims.define.get(name) {
            let expression = expression::parse(text).map_err(|error| error.to_string())?;
            return self.evaluate(&expression, depth + 1);
        }
        if self.claims.setting.contains_key(name) {
            return self.series(name, VALUE).map(Value::Series);
        }
        if let Some(value) = self.row.get(name) {
            let number = value.parse().map(Value::Number);
            return Ok(number.unwrap_or_else(|_| Value::Text(value.clone())));
        }
        if name == "processors" {
            let processors = self.data.machine["cpus"].as_f64();
            return Ok(processors.map_or(Value::Missing, Value::Number));
        }
        Err(format!("what is '{name}'?"))
    }

    /// Returns a figure of a setting in this row.
    fn series(&self, setting: &str, figure: &str) -> Result<Series, String> {
        let selection = self.claims.setting.get(setting);
        let selection = selection.ok_or_else(|| format!("'{setting}' is no setting"))?;
        let mut all = self.row.clone();
        all.extend(selection.clone());
        self.data.series(&all, self.claims.along.as_deref(), figure)
    }

    fn call(
        &self,
        function: &str,
        arguments: &[Expression],
        depth: usize,
    ) -> Result<Value, String> {
        let name = |argument: &Expression| match argument {
            Expression::Name(name) => Ok(name.clone()),
            _ => Err(format!("{function}() takes names")),
        };
        if self.claims.figure.contains_key(function) {
            let [argument] = arguments else {
                return Err(format!("{function}() takes one setting"));
            };
            return self.series(&name(argument)?, function).map(Value::Series);
        }
        match (function, arguments) {
            ("in", [setting, expression]) => {
                let setting = name(setting)?;
                let selection = self.claims.setting.get(&setting);
                let selection = selection.ok_or_else(|| format!("'{setting}' is no setting"))?;
                self.with_row(selection).evaluate(expression, depth)
            }
            ("list", arguments) => {
                let mut list = Vec::new();
                for argument in arguments {
                    match self.evaluate(argument, depth)? {
                        Value::Series(series) => {
                            let name = name(argument)?;
                            let label = self.claims.label.get(&name);
                            list.push((label.unwrap_or(&name).clone(), series));
                        }
                        Value::List(more) => list.extend(more),
                        other => return Err(format!("{other:?} is no figure")),
                    }
                }
                list.retain(|(_, series)| !series.0.is_empty());
                Ok(Value::List(list))
            }
            _ => {
                let values = arguments.iter().map(|argument| self.evaluate(argument, depth));
                functions::call(function, values.collect::<Result<Vec<Value>, String>>()?)
            }
        }
    }
}

fn format_value(value: &Value, format: &str) -> String {
    let figure = match value {
        Value::Text(text) => return text.clone(),
        Value::Bool(holds) => return holds.to_string(),
        Value::Series(series) if format.is_empty() => return series.text(),
        Value::List(list) => {
            let names: Vec<&str> = list.iter().map(|(name, _)| name.as_str()).collect();
            return names.join(", ");
        }
        other => to_number(other).ok().flatten(),
    };
    let Some(figure) = figure else {
        return "-".to_owned();
    };
    match format {
        "" if figure.fract() == 0.0 => figure.to_string(),
        "" => number(figure),
        "%" => format!("{:.1} %", figure * 100.0),
        digits => digits
            .parse()
            .map_or_else(|_| number(figure), |digits: usize| format!("{figure:.digits$}")),
    }
}

fn apply(operator: Operator, left: Value, right: Value) -> Result<Value, String> {
    use Operator::{
        Above, Add, And, AtLeast, AtMost, Below, Divide, Equal, Multiply, Or, Subtract,
    };
    let arithmetic: fn(f64, f64) -> f64 = match operator {
        Add => |a, b| a + b,
        Subtract => |a, b| a - b,
        Multiply => |a, b| a * b,
        Divide => |a, b| a / b,
        And | Or => {
            return match (operator, left, right) {
                (And, Value::Bool(false), _) | (And, _, Value::Bool(false)) => {
                    Ok(Value::Bool(false))
                }
                (Or, Value::Bool(true), _) | (Or, _, Value::Bool(true)) => Ok(Value::Bool(true)),
                (_, Value::Bool(_), Value::Bool(right)) => Ok(Value::Bool(right)),
                (_, Value::Missing, _) | (_, _, Value::Missing) => Ok(Value::Missing),
                (_, left, right) => Err(format!("{left:?} and {right:?} are no conditions")),
            };
        }
        AtLeast | AtMost | Above | Below | Equal => {
            if let (Value::Text(left), Value::Text(right)) = (&left, &right) {
                return Ok(Value::Bool(left == right && operator == Equal));
            }
            let (Some(left), Some(right)) = (to_number(&left)?, to_number(&right)?) else {
                return Ok(Value::Missing);
            };
            return Ok(Value::Bool(match operator {
                AtLeast => left >= right,
                AtMost => left <= right,
                Above => left > right,
                Below => left < right,
                _ => left == right,
            }));
        }
    };
    Ok(match (left, right) {
        (Value::Series(left), Value::Series(right)) => {
            Value::Series(left.combine(&right, arithmetic))
        }
        (Value::Series(left), Value::Number(right)) => {
            Value::Series(left.map(|value| arithmetic(value, right)))
        }
        (Value::Number(left), Value::Series(right)) => {
            Value::Series(right.map(|value| arithmetic(left, value)))
        }
        (left, right) => match (to_number(&left)?, to_number(&right)?) {
            (Some(left), Some(right)) => Value::Number(arithmetic(left, right)),
            _ => Value::Missing,
        },
    })
}
