//! One file per subcommand: arguments in, a library call, text or JSON out.

pub(crate) mod advise;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod disk;
pub(crate) mod explain;
pub(crate) mod faults;
pub(crate) mod kernel;
pub(crate) mod man;
pub(crate) mod powercut;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod selection;
pub(crate) mod sweep;
pub(crate) mod top;

/// Exit status of a command that SIGINT or SIGTERM ended early: 128 + SIGINT, as the shell says it.
pub(crate) const INTERRUPTED: u8 = 130;
