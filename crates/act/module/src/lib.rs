//! The kernel module `luc.ko`, from user space: built, loaded, set, watched, unloaded, and lent.
//!
//! - [`MachinePaths`]: paths of a machine; a test's own tree can stand for a whole one.
//! - [`build_module`]: from sources and the headers of a kernel to `luc.ko`; [`modinfo`] reads the built file.
//! - [`load_obstacles`]: obstacles to loading; [`load()`] and [`unload()`].
//! - [`LucModule`], [`ModuleJournal`], [`JournalStats`]: the module's files in sysfs.
//! - [`stats_table`]: their figures for people.
//! - [`JournalSettings`]: settings of a journal, checked before anything is written; [`set()`] writes all or
//!   none.
//! - [`setting_leases`]: settings that last as long as a process.
//! - [`level`]: decides who batches where, the module or the gate; [`used_file_systems`]: the file systems that a
//!   command uses.

mod block_device_number;
pub mod build_module;
mod error;
mod journal_setting;
mod journal_stats;
pub mod level;
mod load_module;
pub mod load_obstacles;
mod machine_paths;
pub mod modinfo;
mod module_sysfs;
pub mod setting_leases;
pub mod stats_table;
mod unload_module;
pub mod used_file_systems;
mod write_settings;

pub use block_device_number::BlockDeviceNumber;
pub use error::Error;
pub use journal_setting::{JournalSettings, SettingKey};
pub use journal_stats::JournalStats;
pub use load_module::{LoadResult, load};
pub use machine_paths::{MachinePaths, TEST_ROOT_VARIABLE};
pub use module_sysfs::{LucModule, ModuleJournal};
pub use unload_module::{OnUnloadWait, unload};
pub use write_settings::set;

/// The version of the module's files that this library knows.
pub const INTERFACE: u32 = 1;
