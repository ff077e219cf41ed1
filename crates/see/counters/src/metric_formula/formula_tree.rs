//! The parts of a formula.

/// An error in a formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {what} at character {at}; formulas are written as perf's MetricExpr")]
pub struct FormulaError {
    pub(super) text: String,
    /// Number of the character, from 1.
    pub(super) at: usize,
    pub(super) what: String,
}

/// A node of a formula's syntax tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormulaNode {
    Number(f64),
    /// An event, or a formula that is defined elsewhere; in lower case.
    Name(String),
    /// `#name`, without the mark.
    Literal(String),
    Binary(FormulaOperator, Box<FormulaNode>, Box<FormulaNode>),
    /// The condition, the value if it is not 0, and the value otherwise.
    If(Box<[FormulaNode; 3]>),
    Call(FormulaFunction, Vec<FormulaNode>),
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormulaOperator {
    Or,
    Xor,
    And,
    Less,
    Greater,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

/// A function that formulas may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormulaFunction {
    Min,
    Max,
    Ratio,
    SourceCount,
    HasEvent,
}
