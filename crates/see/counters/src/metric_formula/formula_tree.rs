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

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Number(f64),
    /// An event, or a formula that is defined elsewhere; in lower case.
    Name(String),
    /// `#name`, without the mark.
    Literal(String),
    Binary(Operator, Box<Node>, Box<Node>),
    /// The condition, the value if it is not 0, and the value otherwise.
    If(Box<[Node; 3]>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Min,
    Max,
    Ratio,
    SourceCount,
    HasEvent,
}
