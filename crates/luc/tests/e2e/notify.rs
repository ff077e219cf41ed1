//! `luc run` of programs that no library can be loaded into: their calls are notified. On a real ext4 journal; needs
//! root, FUSE and a loop device, and says so where they are missing.

mod keeper;
mod many_callers;
mod reported_errors;
mod supervisor_bounds;
mod supervisor_killed;
use crate::common::leftover_check;
mod programs;
mod reused_descriptors;
