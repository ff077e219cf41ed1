//! `luc-fleet sql` and `serve`: hand over to `luc-fleet-sql`, which has an engine for SQL in it.

use std::ffi::OsString;

use luc_host::programs::{NotRun, become_program};

use crate::Failure;

/// The program beside `luc-fleet` or on the PATH.
const PROGRAM: &str = "luc-fleet-sql";

/// Runs it in place of this program. Returns only where that cannot be done.
pub(crate) fn hand_over(command: &str, words: Vec<OsString>) -> Failure {
    let words = std::iter::once(OsString::from(command)).chain(words);
    Failure::NoSql(match become_program(PROGRAM, words) {
        NotRun::Lost(error) => format!("cannot find the luc-fleet binary: {error}; reinstall it"),
        NotRun::Missing(own) => format!(
            "{PROGRAM} is neither beside {} nor on the PATH; `make product-sql install` in luc's sources builds and \
             installs it, which takes long",
            own.display()
        ),
        NotRun::Refused(program, error) => format!("{}: {error}; reinstall it", program.display()),
    })
}
