//! Workloads and statistics.
