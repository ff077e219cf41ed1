//! The variables of a file, and attributes whose values may be variables.

use std::collections::HashMap;

use super::super::ast::{Attribute, Attributes, Setting, Value};
use super::super::diagnostic::{Diagnostic, Position};
use super::super::variables::{Number, Source};

#[derive(Debug, Clone)]
pub(super) enum Bound {
    Plain(Value),
    Number(Number),
}

#[derive(Default, Clone)]
pub(super) struct Scope {
    bound: HashMap<String, Bound>,
    /// Streams that random variables have for themselves.
    pub(super) sources: Vec<Source>,
}

impl Scope {
    /// Sets the user's value of a variable, which overrides the file's.
    pub(super) fn give(&mut self, name: &str, value: &Value) {
        self.bound.insert(name.to_owned(), Bound::Plain(value.clone()));
    }

    /// Returns the value of a variable, if it is set.
    pub(super) fn bound(&self, name: &str) -> Option<&Bound> {
        self.bound.get(name)
    }

    /// Binds a composite's local variable.
    pub(super) fn bind(&mut self, name: &str, bound: Bound) {
        self.bound.insert(name.to_owned(), bound);
    }

    pub(super) fn set(
        &mut self,
        at: Position,
        name: &str,
        setting: &Setting,
    ) -> Result<(), Diagnostic> {
        let bound = match setting {
            Setting::Random(attributes) => Bound::Number(self.random(attributes)?),
            Setting::Custom(attributes) => Bound::Number(self.custom(attributes)?),
            Setting::Product(factors) => match &factors[..] {
                [one] => self.look_up(at, one)?,
                many => {
                    let product = many.iter().try_fold(1_u64, |product, factor| {
                        let factor = self.integer(at, factor)?;
                        product.checked_mul(factor).ok_or_else(|| {
                            Diagnostic::new(at, "the product is too large", "use less than 16 EiB")
                        })
                    })?;
                    Bound::Plain(Value::Integer(product))
                }
            },
        };
        self.bound.insert(name.to_owned(), bound);
        Ok(())
    }

    pub(super) fn look_up(&self, at: Position, value: &Value) -> Result<Bound, Diagnostic> {
        let Value::Variable(name) = value else {
            return Ok(Bound::Plain(value.clone()));
        };
        self.bound.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.bound.keys().map(String::as_str).collect();
            Diagnostic::unknown(at, "variable", name, &known)
        })
    }

    pub(super) fn number(&self, at: Position, value: &Value) -> Result<Number, Diagnostic> {
        match self.look_up(at, value)? {
            Bound::Number(number) => Ok(number),
            Bound::Plain(Value::Integer(number)) => Ok(Number::Fixed(number)),
            Bound::Plain(_) => {
                Err(Diagnostic::new(at, "this value is no number", "write a number or a $variable"))
            }
        }
    }

    pub(super) fn integer(&self, at: Position, value: &Value) -> Result<u64, Diagnostic> {
        match self.number(at, value)? {
            Number::Fixed(number) => Ok(number),
            Number::Drawn(_) => {
                Err(Diagnostic::new(at, "a random value cannot stand here", "write a number"))
            }
        }
    }

    pub(super) fn integer_or(
        &self,
        attributes: &Attributes,
        name: &str,
        default: u64,
    ) -> Result<u64, Diagnostic> {
        attributes.get(name).map_or(Ok(default), |found| self.integer(found.at, &found.value))
    }

    pub(super) fn number_or(
        &self,
        attributes: &Attributes,
        name: &str,
        default: u64,
    ) -> Result<Number, Diagnostic> {
        attributes
            .get(name)
            .map_or(Ok(Number::Fixed(default)), |found| self.number(found.at, &found.value))
    }

    pub(super) fn boolean(&self, attributes: &Attributes, name: &str) -> Result<bool, Diagnostic> {
        let Some(found) = attributes.get(name) else {
            return Ok(false);
        };
        match self.look_up(found.at, &found.value)? {
            Bound::Plain(Value::Boolean(value)) => Ok(value),
            // Stock files say directio=$directio with 0.
            Bound::Plain(Value::Integer(value @ 0..=1)) => Ok(value == 1),
            _ => Err(Diagnostic::new(
                found.at,
                format!("'{name}' is neither true nor false"),
                "write one of them",
            )),
        }
    }

    pub(super) fn text(&self, found: &Attribute) -> Result<String, Diagnostic> {
        match self.look_up(found.at, &found.value)? {
            Bound::Plain(Value::Text(text)) => Ok(text),
            Bound::Plain(Value::Integer(number)) => Ok(number.to_string()),
            _ => Err(Diagnostic::new(
                found.at,
                format!("'{}' is no text", found.name),
                "write a name",
            )),
        }
    }

    pub(super) fn required(
        &self,
        attributes: &Attributes,
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
