//! Implementation of the flowops.

mod control;
mod directories;
mod names;
mod picks;
mod reads;
mod writes;
