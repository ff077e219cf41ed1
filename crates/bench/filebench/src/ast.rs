//! A workload file as parsed: commands in their order, values not yet looked up.

use super::diagnostic::TextPosition;

/// Value in a workload file, before variables are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AstValue {
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

/// Attribute of a definition: its name, its value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AstAttribute {
    pub(super) at: TextPosition,
    pub(super) name: String,
    pub(super) value: AstValue,
}

/// Attributes of a definition, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AstAttributes {
    pub(super) at: TextPosition,
    pub(super) list: Vec<AstAttribute>,
    /// Values for a composite flowop's local variables; `None`: declared without one.
    pub(super) locals: Vec<(String, Option<AstValue>)>,
}

impl AstAttributes {
    /// Returns an attribute; of repeats the last.
    pub(super) fn get(&self, name: &str) -> Option<&AstAttribute> {
        self.list.iter().rev().find(|found| found.name == name)
    }
}

/// Right-hand side of a `set` command: a value or a random variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VariableSetting {
    /// A value, or the product of several.
    Product(Vec<AstValue>),
    Random(AstAttributes),
    Custom(AstAttributes),
}

/// Command of a workload file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AstCommand {
    pub(super) at: TextPosition,
    pub(super) action: CommandAction,
}

/// Rule by which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEndRule {
    Timeout,
    /// Ends when all threads are done.
    AllDone,
    /// Ends when the first thread is done.
    FirstDone,
}

/// Effect of a command of a workload file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandAction {
    /// `set $name = ...`
    Set(String, VariableSetting),
    /// `set mode quit ...`
    Mode(RunEndRule),
    /// `define file` (true) or `define fileset`.
    Files(bool, AstAttributes),
    Process(AstAttributes, Vec<AstThread>),
    /// `define flowop`: a composite.
    Composite(AstAttributes, Vec<AstFlowop>),
    /// `run` and `psrun`, with their length.
    Run(Option<AstValue>),
    /// `create files`; without it they are made when the run begins.
    Create,
    Sleep(AstValue),
    /// `echo`, with its variables.
    Echo(String),
    System(String),
    Events(AstAttributes),
    /// `enable multi` and `domultisync`.
    Multi,
    /// Commands that change no figure here: `list`, `debug`, `version`, `enable lathist`, `set mode nousestats`.
    Nothing,
}

/// Thread of a process as the workload file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AstThread {
    pub(super) attributes: AstAttributes,
    pub(super) flowops: Vec<AstFlowop>,
}

/// Flowop as the workload file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AstFlowop {
    /// Position of its type.
    pub(super) at: TextPosition,
    /// Type of the flowop, or the name of a composite.
    pub(super) kind: String,
    pub(super) attributes: AstAttributes,
}
