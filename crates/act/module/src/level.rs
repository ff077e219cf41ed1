//! The level at which a run's fsyncs are brought together: by the gate, by the module, or each where it can.
//!
//! One journal has one batcher. Two that hold the same fsyncs would add their holding times. Each would also measure
//! its gain while the other changes the load. [`plan`](plan::plan) chooses the batcher before the command starts.
//! [`Session`] lends the module's settings to the journals that the command uses, and reports the module's work at
//! the end.

mod plan;
mod session;

pub use plan::{EffectiveLevel, Level, Plan, plan};
pub use session::{JournalUse, Session};
