//! Latency models of requests: pure functions of the time and the request to the time of its end.

mod cloud;
mod dirty_ranges;
mod fixed;
mod hdd;
mod model_spec;
mod seek_curve;
mod ssd;
#[cfg(test)]
mod test_support;

pub use cloud::CloudParameters;
pub(crate) use fixed::FixedModel;
pub use hdd::HddParameters;
pub use model_spec::ModelSpec;
pub use ssd::SsdParameters;

/// Kind of a request to the disk: read, write, flush or discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskRequestKind {
    Read,
    /// Bytes to the disk, or to its volatile cache.
    Write,
    /// Make every completed write durable.
    Flush,
    /// Forget a range: it reads as zeroes afterwards.
    Discard,
}

/// A request as a model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    pub kind: DiskRequestKind,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub len_bytes: u64,
}

/// A model of a disk's timing. It has no clock: the caller passes the time, which must not go back between calls.
pub trait LatencyModel: Send + std::fmt::Debug {
    /// Returns the completion time of a request that arrives at `now_ns`; never before `now_ns`. Requests may complete
    /// in another order than they arrived.
    fn complete_at_ns(&mut self, now_ns: u64, request: DiskRequest) -> u64;
}
