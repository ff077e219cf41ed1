//! Traces of many hosts that were made here, so that the truth is known.

mod clocks;
mod counters;
mod findings;
mod host_by_host;
mod mapping;
mod planted;
mod program;
mod random;
mod refusals;
mod report;
mod rings;
mod spans;
