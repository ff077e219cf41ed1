//! What really happened: one file of JSON lines for each process.
//!
//! The first line is a [`Header`]; each other one is a [`Row`]. Rows are kept in memory that is there before the first
//! request, and written when the process ends.

mod file;
mod folder;
mod log;
mod row;

pub(crate) use file::write;
pub use file::{Truth, TruthError, read};
pub use folder::Folder;
pub(crate) use log::{Log, Recorder, thread_id};
pub use row::{
    Answer, Connection, Direction, Header, Message, MessageKind, Planted, Role, Row, VERSION, Work,
    WorkKind,
};
