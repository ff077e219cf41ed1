//! Facts about this machine, and what this process may do on it.
//!
//! [`block_device`] finds the whole disk of a device. [`kernel_clocks`] reads the kernel's clocks. [`descendants`] are
//! the processes that one has started. [`interrupt_flag`] turns Ctrl-C into a flag. [`available_memory`],
//! [`mountinfo`], [`processor_time`] and [`sysfs`] read the kernel's files. [`root_owned`] says whether root may act on
//! a file. [`private_directory`] makes directories that no other user can enter. [`installed_programs`] runs those that
//! are installed beside this one. [`run_dir`] says where what runs now is noted, [`resource_usage`] what processes have
//! used. [`write_whole`] replaces files.

pub mod available_memory;
pub mod block_device;
pub mod descendants;
pub mod installed_programs;
pub mod interrupt_flag;
pub mod kernel_clocks;
pub mod mountinfo;
pub mod private_directory;
pub mod processor_time;
pub mod resource_usage;
pub mod root_owned;
pub mod run_dir;
pub mod sysfs;
pub mod write_whole;
