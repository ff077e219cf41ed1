//! Roots of small stories whose truth is written down. Each test says who waited, and what the root is.

mod event_loops;
mod forged_rows;
mod hosts;
mod locks;
mod processors;
mod queues;
mod rolling;
mod story;
mod tables;
mod timers;
mod unknown;
