//! What each flowop does.

mod control;
mod directories;
mod names;
mod picks;
mod reads;
mod writes;
