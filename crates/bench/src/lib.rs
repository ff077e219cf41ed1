//! Experiments that prove what LUC claims.
//!
//! [`powercut`] asks whether an acknowledged fsync is durable, [`faults`] whether a failed write reaches the program that
//! asked; [`sweep`] repeats workloads over the points of a plan; [`selection`] says which candidate is best and how sure
//! that is, [`advise`] what to do about it; [`evaluate`] drives `luc` itself and writes `docs/evaluation`.

pub mod evaluate;
