//! The level at which a run's fsyncs are brought together: by the gate, by the module, or each where it can.
//!
//! One journal has one batcher. Two that hold the same fsyncs would add their holding times. Each would also measure
//! its gain while the other changes the load. [`level_plan`](level_plan::plan) chooses the batcher before the command
//! starts. [`ModuleRun`] lends the module's settings to the journals that the command uses, and reports the module's
//! work at the end.

mod level_plan;
mod module_run;

pub use level_plan::{EffectiveLevel, LevelPlan, RequestedLevel, plan};
pub use module_run::{JournalUse, ModuleRun};
