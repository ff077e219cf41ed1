//! What `luc fleet` and `luc record --fleet` claim, measured; of clocks in `luc-evaluate-fleet-clocks`.
//!
//! - [`arm64`]: what the recorder and the gate do on 64-bit Arm, in an emulated machine.
//! - [`cost`]: what servers and their clients lose while they are recorded.
//! - [`counters`]: how far counters that take turns are off, and whether cycles are accounted for.
//! - [`known`]: whether functions of threads, holders of locks and times of threads are known.
//! - [`pools`]: whether what servers hand over inside a process is found.
//! - [`scale`]: how long it takes to explain many hosts, and to number trees.
//! - [`solr`]: whether what Solr hands over, and what was planted in it, is found.
//! - [`truth`]: whether what was planted in a search service is found.
//! - [`unix`]: whether requests over unix sockets are found.

mod answer;
pub mod arm64;
mod asked;
mod calls;
mod cause;
pub mod cost;
pub mod counters;
mod hosts;
mod judge;
pub mod known;
mod named;
mod network;
pub mod pools;
mod program;
mod recorder;
mod running;
pub mod scale;
pub mod solr;
pub mod truth;
pub mod unix;
mod wire;
