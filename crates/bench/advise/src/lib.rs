//! Advice: the best file system and options for a workload on a device.
//!
//! `candidates` lists what is worth trying, and `resolve_workload` resolves the workload. `advice_request` makes a plan
//! of both, which a sweep runs. `advice_report` draws conclusions for somebody who has to decide.

mod advice_report;
mod advice_request;
mod candidates;
mod emulated_disk;
mod erasable_device;
mod error;
mod resolve_workload;

pub use advice_report::AdviceReport;
pub use advice_request::{AdvicePlan, AdviceRequest, CandidateStorage, prepare};
pub use candidates::NotTried;
pub use erasable_device::ErasableDevice;
pub use error::AdviseError;
