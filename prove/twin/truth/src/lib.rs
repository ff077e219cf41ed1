//! Record of what really happened in a run of the search twin: one file of JSON lines for each process.
//!
//! The first line is a [`Header`]; each other one is a [`Row`]. [`Folder`] reads what a run left. [`trees()`] puts the
//! requests together, and [`streams()`] says whether the messages are all that went over the connections.
//!
//! A crate of its own, so that a comparison with the truth does not compile the twin.

mod file;
mod folder;
mod kind;
mod row;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

pub use file::{Truth, TruthError, read, write};
pub use folder::Folder;
pub use kind::Kind;
pub use row::{
    Answer, Connection, Direction, Header, MAX_HITS, Message, MessageKind, Planted, Role, Row,
    VERSION, Work, WorkKind,
};
pub use stream::{StreamFault, streams};
pub use tree::{Question, Tree, TreeFault, trees};
