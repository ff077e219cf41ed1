//! What each flowop does.

mod names;
mod reads;
mod writes;
