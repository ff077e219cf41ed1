//! The folder for notes on running processes: `/run/luc`, in memory, gone after a reboot.

use std::env;
use std::path::PathBuf;

/// Variable with another folder: for tests, and for a second set of disks and services beside the first.
pub const VARIABLE: &str = "LUC_RUN_DIR";
const DEFAULT: &str = "/run/luc";

#[must_use]
pub fn path() -> PathBuf {
    env::var_os(VARIABLE).map_or_else(|| DEFAULT.into(), PathBuf::from)
}
