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
//!
//! # Who knows the truth
//!
//! [`truth`] has the search twin's own log. [`pools`] and [`solr`] have numbers that requests carry, read from the
//! packets (`solr/tap`, `solr/streams`). `judge` compares calls with those numbers, `cause` the first finding with
//! what was planted. [`known`] asks the programs and the scheduler, [`unix`] a program that writes down what it did.
//! In [`arm64`], `machine` makes a guest; `inside` has it record, make files and lose power. `counted` compares
//! counters that the kernel rotates with pinned ones.

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
