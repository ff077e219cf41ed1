//! `luc run` of programs that no library can be loaded into: their calls are notified. On a real ext4 journal; needs
//! root, FUSE and a loop device, and says so where they are missing.

mod bounds;
mod crowd;
mod errors;
mod keeper;
mod kills;
use crate::common::place;
mod programs;
mod reused;
