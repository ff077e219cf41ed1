//! What each flowop does.

mod control;
mod directories;
mod names;
mod reads;
mod writes;
