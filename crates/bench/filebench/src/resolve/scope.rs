//! The variables of a file, and attributes whose values may be variables.

use std::collections::HashMap;

use super::super::ast::{AstAttribute, AstAttributes, AstValue, VariableSetting};
use super::super::diagnostic::{Diagnostic, TextPosition};
use super::super::drawn_numbers::{RandomSource, WorkloadNumber};

/// Value that a variable of a workload file is bound to.
#[derive(Debug, Clone)]
pub(super) enum VariableBinding {
    Plain(AstValue),
    Number(WorkloadNumber),
}

/// Variables of a workload file, by name.
#[derive(Default, Clone)]
pub(super) struct VariableScope {
    bound: HashMap<String, VariableBinding>,
    /// Streams that random variables have for themselves.
    pub(super) sources: Vec<RandomSource>,
}

impl VariableScope {
    /// Sets the user's value of a variable, which overrides the file's.
    pub(super) fn give(&mut self, name: &str, value: &AstValue) {
        self.bound.insert(name.to_owned(), VariableBinding::Plain(value.clone()));
    }

    /// Returns the value of a variable, if it is set.
    pub(super) fn bound(&self, name: &str) -> Option<&VariableBinding> {
        self.bound.get(name)
    }

    /// Binds a composite's local variable.
    pub(super) fn bind(&mut self, name: &str, bound: VariableBinding) {
        self.bound.insert(name.to_owned(), bound);
    }

    pub(super) fn set(
        &mut self,
        at: TextPosition,
        name: &str,
        setting: &VariableSetting,
    ) -> Result<(), Diagnostic> {
        let bound = match setting {
            VariableSetting::Random(attributes) => {
                VariableBinding::Number(self.random(attributes)?)
            }
            VariableSetting::Custom(attributes) => {
                VariableBinding::Number(self.custom(attributes)?)
            }
            VariableSetting::Product(factors) => match &factors[..] {
                [one] => self.look_up(at, one)?,
                many => {
                    let product = many.iter().try_fold(1_u64, |product, factor| {
                        let factor = self.integer(at, factor)?;
                        product.checked_mul(factor).ok_or_else(|| {
                            Diagnostic::new(at, "the product is too large", "use less than 16 EiB")
                        })
                    })?;
                    VariableBinding::Plain(AstValue::Integer(product))
                }
            },
        };
        self.bound.insert(name.to_owned(), bound);
        Ok(())
    }

    pub(super) fn look_up(
        &self,
        at: TextPosition,
        value: &AstValue,
    ) -> Result<VariableBinding, Diagnostic> {
        let AstValue::Variable(name) = value else {
            return Ok(VariableBinding::Plain(value.clone()));
        };
        self.bound.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.bound.keys().map(String::as_str).collect();
            Diagnostic::unknown(at, "variable", name, &known)
        })
    }

    pub(super) fn number(
        &self,
        at: TextPosition,
        value: &AstValue,
    ) -> Result<WorkloadNumber, Diagnostic> {
        match self.look_up(at, value)? {
            VariableBinding::Number(number) => Ok(number),
            VariableBinding::Plain(AstValue::Integer(number)) => Ok(WorkloadNumber::Fixed(number)),
            VariableBinding::Plain(_) => {
                Err(Diagnostic::new(at, "this value is no number", "write a number or a $variable"))
            }
        }
    }

    pub(super) fn integer(&self, at: TextPosition, value: &AstValue) -> Result<u64, Diagnostic> {
        match self.number(at, value)? {
            WorkloadNumber::Fixed(number) => Ok(number),
            WorkloadNumber::Drawn(_) => {
                Err(Diagnostic::new(at, "a random value cannot stand here", "write a number"))
            }
        }
    }

    pub(super) fn integer_or(
        &self,
        attributes: &AstAttributes,
        name: &str,
        default: u64,
    ) -> Result<u64, Diagnostic> {
        attributes.get(name).map_or(Ok(default), |found| self.integer(found.at, &found.value))
    }

    pub(super) fn number_or(
        &self,
        attributes: &AstAttributes,
        name: &str,
        default: u64,
    ) -> Result<WorkloadNumber, Diagnostic> {
        attributes
            .get(name)
            .map_or(Ok(WorkloadNumber::Fixed(default)), |found| self.number(found.at, &found.value))
    }

    pub(super) fn boolean(
        &self,
        attributes: &AstAttributes,
        name: &str,
    ) -> Result<bool, Diagnostic> {
        let Some(found) = attributes.get(name) else {
            return Ok(false);
        };
        match self.look_up(found.at, &found.value)? {
            VariableBinding::Plain(AstValue::Boolean(value)) => Ok(value),
            // Stock files say directio=$directio with 0.
            VariableBinding::Plain(AstValue::Integer(value @ 0..=1)) => Ok(value == 1),
            _ => Err(Diagnostic::new(
                found.at,
                format!("'{name}' is neither true nor false"),
                "write one of them",
            )),
        }
    }

    pub(super) fn text(&self, found: &AstAttribute) -> Result<String, Diagnostic> {
        match self.look_up(found.at, &found.value)? {
            VariableBinding::Plain(AstValue::Text(text)) => Ok(text),
            VariableBinding::Plain(AstValue::Integer(number)) => Ok(number.to_string()),
            _ => Err(Diagnostic::new(
                found.at,
                format!("'{}' is no text", found.name),
                "write a name",
            )),
        }
    }

    pub(super) fn required(
        &self,
        attributes: &AstAttributes,
        name: &str,
    ) -> Result<String, Diagnostic> {
        let found = attributes.get(name).ok_or_else(|| {
            Diagnostic::new(
                attributes.at,
                format!("'{name}' is missing"),
                format!("add {name}=..."),
            )
        })?;
        self.text(found)
    }
}
