//! The kernel module `luc.ko`, from user space: built, loaded, set, watched, unloaded, and lent.
//!
//! - [`Machine`]: paths of a machine; a test's own tree can stand for a whole one.
//! - [`build`]: from sources and the headers of a kernel to `luc.ko`; [`modinfo`] reads the built file.
//! - [`capability`]: obstacles to loading; [`load()`] and [`unload()`].
//! - [`Module`], [`Journal`], [`Stats`]: the module's files in sysfs.
//! - [`table`]: their figures for people.
//! - [`Settings`]: settings of a journal, checked before anything is written; [`set()`] writes all or none.
//! - [`lease`]: settings that last as long as a process.
//! - [`level`]: decides who batches where, the module or the gate; [`touch`]: the file systems that a command uses.

pub mod build;
pub mod capability;
mod device;
mod error;
mod journal;
pub mod lease;
pub mod level;
mod load;
mod machine;
pub mod modinfo;
mod set;
mod setting;
mod stats;
pub mod table;
pub mod touch;
mod unload;

pub use device::Device;
pub use error::Error;
pub use journal::{Journal, Module};
pub use load::{Loaded, load};
pub use machine::{Machine, TEST_ROOT_VARIABLE};
pub use set::set;
pub use setting::{Key, Settings};
pub use stats::Stats;
pub use unload::{Waiting, unload};

/// The version of the module's files that this library knows.
pub const INTERFACE: u32 = 1;
