//! Advice: the best file system and options for a workload on a device.
//!
//! `candidates` lists what is worth trying, and `workload` resolves the workload. `request` makes a plan of both, which
//! a sweep runs. `answer` draws conclusions for somebody who has to decide.

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
