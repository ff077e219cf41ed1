//! A workload file as parsed: commands in their order, values not yet looked up.

use super::diagnostic::Position;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A number, also of bytes.
    Integer(u64),
    /// `true` or `false`; also an attribute without a value.
    Boolean(bool),
    /// A word or text.
    Text(String),
    /// A variable, by name.
    Variable(String),
    /// The rows of a `randtable`: percent, lowest, highest.
    Table(Vec<[u64; 3]>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) at: Position,
    pub(super) name: String,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) at: Position,
    pub(super) list: Vec<Attribute>,
    /// Values for a composite flowop's local variables; `None`: declared without one.
    pub(super) locals: Vec<(String, Option<Value>)>,
}

impl Attributes {
    /// Returns an attribute; of repeats the last.
    pub(super) fn get(&self, name: &str) -> Option<&Attribute> {
        self.list.iter().rev().find(|found| found.name == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// A value, or the product of several.
    Product(Vec<Value>),
    Random(Attributes),
    Custom(Attributes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) at: Position,
    pub(super) action: Action,
}

/// Rule by which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Timeout,
    /// Ends when all threads are done.
    AllDone,
    /// Ends when the first thread is done.
    FirstDone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// `set $name = ...`
    Set(String, Setting),
    /// `set mode quit ...`
    Mode(Mode),
    /// `define file` (true) or `define fileset`.
    Files(bool, Attributes),
    Process(Attributes, Vec<Thread>),
    /// `define flowop`: a composite.
    Composite(Attributes, Vec<Flowop>),
    /// `run` and `psrun`, with their length.
    Run(Option<Value>),
    /// `create files`; without it they are made when the run begins.
    Create,
    Sleep(Value),
    /// `echo`, with its variables.
    Echo(String),
    System(String),
    Events(Attributes),
    /// `enable multi` and `domultisync`.
    Multi,
    /// Commands that change no figure here: `list`, `debug`, `version`, `enable lathist`, `set mode nousestats`.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) attributes: Attributes,
    pub(super) flowops: Vec<Flowop>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flowop {
    /// Position of its type.
    pub(super) at: Position,
    /// Type of the flowop, or the name of a composite.
    pub(super) kind: String,
    pub(super) attributes: Attributes,
}
