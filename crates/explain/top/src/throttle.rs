//! A live view of disks that tasks share: the cost of switches, who waits, and who is frozen and why.
//!
//! [`ThrottleView`] is its state, pure; [`show`] the loop in a terminal, [`print()`] the one that writes lines.

mod columns;
mod print_observations;
mod screen;
#[cfg(test)]
mod tests;
mod throttle_view;

pub use print_observations::{ObservationText, print};
pub use screen::show;
pub use throttle_view::ThrottleView;
