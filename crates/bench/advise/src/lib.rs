//! Advice: which file system, with which options, for a workload on a device.
//!
//! `candidates` knows what is worth trying, `workload` what is run, `request` makes a plan of both, which a sweep
//! carries out ([`crate`]), and `answer` says what follows for somebody who has to decide.

mod answer;
mod candidates;
mod devices;
mod disks;
mod error;
mod request;
mod workload;

pub use answer::Answer;
pub use candidates::NotTried;
pub use devices::Device;
pub use error::AdviseError;
pub use request::{Place, Prepared, Request, prepare};
