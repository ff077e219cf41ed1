//! A live view: file systems, their commits, who waits, and for whose work.
//!
//! It is made of the recorder's *events*, not of its summary mode. Sums in the kernel could give rates of fsyncs and
//! commits. They cannot give the two figures that this view is for. The number of fsyncs that a commit served needs
//! each call's transaction. Whose work a caller waited for needs the content of that very commit. Recording events
//! costs at most two in a hundred of the throughput, and only while somebody looks; `luc record --summary` is what
//! can be left on.
//!
//! - [`Window`] puts events in order, feeds an [`Analysis`](luc_explain::Analysis) and forgets what is old;
//! - [`Interval`] is what happened between two of its reports: rates, parts, victims, culprits;
//! - [`Top`] is the view's state: pure, changed by [`Top::update`] and [`Top::key`], shown by [`Top::draw`];
//! - [`batch`] writes intervals as lines;
//! - [`SharedDisk`] is a disk for which tasks contended, [`Throttled`] what the throttle's daemon does;
//! - [`throttle`] is another view: disks that tasks share, and `luc throttle`;
//! - [`Live`] is the recorder and the window, [`show`] the loop in a terminal, [`print()`] the one that writes lines.

pub mod batch;
mod columns;
mod draw;
mod error;
mod group;
mod help;
mod interval;
mod keys;
mod list;
mod live;
mod machine;
mod model;
mod print;
mod row;
mod screen;
mod sharing;
mod theme;
pub mod throttle;
mod window;

#[cfg(test)]
mod tests;

pub use error::TopError;
pub use group::{Group, Groups};
pub use interval::{Host, Interval, Machine, Pressure};
pub use keys::{Action, Key};
pub use live::Live;
pub use model::Top;
pub use print::print;
pub use row::{ActorRow, FileSystemRow, Found};
pub use screen::show;
pub use sharing::{DiskUser, FrozenTask, SharedDisk, Throttled};
pub use window::Window;
