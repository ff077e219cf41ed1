//! Hands commands over to a program of their own: `luc-fleet-store` reaches object stores.

use std::ffi::OsString;

use luc_host::installed_programs::{ExecFailure, become_program};

/// Program beside `luc-fleet` or on the PATH, and how it is installed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompanionProgram {
    name: &'static str,
    install: &'static str,
}

pub(crate) const STORE: CompanionProgram =
    CompanionProgram { name: luc_fleet_rings::STORE, install: luc_fleet_rings::INSTALL_STORE };

/// Runs a program in place of this one. Returns only on failure, with the reason.
pub(crate) fn hand_over(program: CompanionProgram, command: &str, words: Vec<OsString>) -> String {
    let CompanionProgram { name, install } = program;
    let words = std::iter::once(OsString::from(command)).chain(words);
    match become_program(name, words) {
        ExecFailure::Lost(error) => {
            format!("cannot find the luc-fleet binary: {error}; reinstall it")
        }
        ExecFailure::Missing(own) => {
            format!("{name} is neither beside {} nor on the PATH; {install}", own.display())
        }
        ExecFailure::Refused(program, error) => {
            format!("{}: {error}; reinstall it", program.display())
        }
    }
}
