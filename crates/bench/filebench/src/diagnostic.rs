//! Mistakes in a workload file: position, problem and remedy.

use std::fmt;

use luc_workload::name_suggestion::nearest;

/// A place in a file, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    pub line: u32,
    pub column: u32,
}

/// Something wrong at a place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub at: TextPosition,
    what: String,
    advice: String,
}

impl Diagnostic {
    pub(super) fn new(
        at: TextPosition,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { at, what: what.into(), advice: advice.into() }
    }

    /// Builds the error for a `word` that is not in `known`: proposes the nearest, or lists all.
    pub(super) fn unknown(at: TextPosition, kind: &str, word: &str, known: &[&str]) -> Self {
        let advice = match nearest(word, known.iter().copied()) {
            Some(name) => format!("did you mean '{name}'?"),
            None if known.is_empty() => "there is none".to_owned(),
            None => format!("known: {}", known.join(", ")),
        };
        Self::new(at, format!("unknown {kind} '{word}'"), advice)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextPosition { line, column } = self.at;
        write!(out, "{line}:{column}: {}; {}", self.what, self.advice)
    }
}
