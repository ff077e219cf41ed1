//! A live view of disks that tasks share: the cost of switches, who waits, and who is frozen and why.
//!
//! [`View`] is its state, pure; [`show`] the loop in a terminal, [`print()`] the one that writes lines.

mod columns;
mod print;
mod screen;
#[cfg(test)]
mod tests;
mod view;

pub use print::{Text, print};
pub use screen::show;
pub use view::View;
