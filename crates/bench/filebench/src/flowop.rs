//! Implementation of the flowops.

mod control;
mod directories;
mod open_and_delete;
mod pick_file;
mod reads;
mod writes;
