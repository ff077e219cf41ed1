//! Measurements of the claims of `luc fleet` and `luc record --fleet`. Those about clocks are in
//! `luc-evaluate-fleet-clocks`.
//!
//! - [`arm64`]: the recorder and the gate on 64-bit Arm, in an emulated machine.
//! - [`cost`]: the cost of recording for servers and their clients.
//! - [`counters`]: the error of counters that take turns, and the accounting of cycles.
//! - [`known`]: functions of threads, holders of locks and times of threads.
//! - [`pools`]: requests that servers hand over inside a process.
//! - [`scale`]: traces of many hosts, and trees.
//! - [`solr`]: requests that Solr hands over, and causes planted in it.
//! - [`truth`]: causes planted in a search service.
//! - [`unix`]: requests over unix sockets.
//!
//! # Who knows the truth
//!
//! [`truth`] has the search twin's own log. [`pools`] and [`solr`] have numbers that requests carry, read from the
//! packets (`solr/tap`, `solr/streams`). `assigned_calls` compares calls with those numbers, `cause` the first finding
//! with what was planted. [`known`] asks the programs and the scheduler, [`unix`] a program that writes down what it did.
//! In [`arm64`], `machine` makes a guest; `inside` has it record, make files and lose power. `counted` compares
//! counters that the kernel rotates with pinned ones.

mod answer;
pub mod arm64;
mod assigned_calls;
mod calls;
mod cause;
pub mod cost;
pub mod counters;
mod helper;
mod hosts;
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

pub use helper::Helper;
