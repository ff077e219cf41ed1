//! Traces of many hosts that were made here, so that the truth is known.

mod clocks;
mod counters;
mod findings;
mod host_by_host;
mod planted_hosts;
mod random_rows;
mod refusals;
mod report;
mod rings;
mod row_conversion;
mod run_luc_fleet;
mod spans;
