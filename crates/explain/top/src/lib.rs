//! A live view: file systems, their commits, who waits, and for whose work.
//!
//! It is made of the recorder's *events*, not of its summary mode. Sums in the kernel could give rates of fsyncs and
//! commits. They cannot give the two figures that this view is for. The number of fsyncs that a commit served needs
//! each call's transaction. Whose work a caller waited for needs the content of that very commit. Recording events
//! costs at most two in a hundred of the throughput, and only while somebody looks; `luc record --summary` is what
//! can be left on.
//!
//! - [`SlidingAnalysis`] puts events in order, feeds an [`Analysis`](luc_explain::Analysis) and forgets what is old;
//! - [`TopInterval`] is what happened between two of its reports: rates, parts, victims, culprits;
//! - [`TopState`] is the view's state: pure, changed by [`TopState::update`] and [`TopState::key`], shown by
//!   [`TopState::draw`];
//! - [`interval_text`] writes intervals as lines;
//! - [`SharedDisk`] is a disk for which tasks contended, [`ThrottleState`] what the throttle's daemon does;
//! - [`throttle`] is another view: disks that tasks share, and `luc throttle`;
//! - [`LiveAnalysis`] is the recorder and the window, [`show`] the loop in a terminal, [`print()`] the one that writes
//!   lines.

mod columns;
mod disk_sharing;
mod draw;
mod error;
mod help;
pub mod interval_text;
mod kernel_figures;
mod keys;
mod live_analysis;
mod part_groups;
mod print_intervals;
mod screen;
mod sliding_analysis;
mod table_rows;
mod table_state;
mod theme;
pub mod throttle;
mod top_interval;
mod top_state;

#[cfg(test)]
mod tests;

pub use disk_sharing::{DiskUser, FrozenTask, SharedDisk, ThrottleState};
pub use error::TopError;
pub use keys::{KeyAction, KeyPress};
pub use live_analysis::LiveAnalysis;
pub use part_groups::{PartGroup, PartGroupTimes};
pub use print_intervals::print;
pub use screen::show;
pub use sliding_analysis::SlidingAnalysis;
pub use table_rows::{ActorRow, FileSystemRow, ShownFinding};
pub use top_interval::{HostDescription, IoPressureLast10s, MachineFigures, TopInterval};
pub use top_state::TopState;
