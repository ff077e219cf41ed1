//! What this machine is, and what a process of ours may do on it.
//!
//! [`interrupt`] turns Ctrl-C into a flag; [`memory`], [`mountinfo`], [`processors`] and [`sysfs`] read what the kernel
//! says of the machine; [`owned`] says whether root may act on a file, [`private`] makes directories that nobody else may enter.

pub mod interrupt;
pub mod memory;
pub mod mountinfo;
pub mod owned;
pub mod private;
pub mod processors;
pub mod sysfs;
