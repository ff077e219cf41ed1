//! Facts about this machine, and what this process may do on it.
//!
//! [`block`] finds the whole disk of a device. [`clock`] reads the kernel's clocks. [`descendants`] are the processes
//! that one has started. [`interrupt`] turns Ctrl-C into a flag. [`memory`], [`mountinfo`], [`processors`] and
//! [`sysfs`] read the kernel's files. [`owned`] says whether root may act on a file. [`private`] makes directories that
//! no other user can enter. [`programs`] runs those that are installed beside this one. [`run_dir`] says where what runs
//! now is noted, [`usage`] what processes have used. [`whole`] replaces files.

pub mod block;
pub mod clock;
pub mod descendants;
pub mod interrupt;
pub mod memory;
pub mod mountinfo;
pub mod owned;
pub mod private;
pub mod processors;
pub mod programs;
pub mod run_dir;
pub mod sysfs;
pub mod usage;
pub mod whole;
