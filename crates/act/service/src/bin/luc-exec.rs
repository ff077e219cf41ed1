//! `luc-exec`: the first of a service's processes. systemd starts it by the drop-in of `luc enable`, as the service's
//! user and within its sandbox.
//!
//! - `luc-exec prepare UNIT` makes the files that the service's processes share.
//! - `luc-exec notify UNIT MARK PROGRAM ...` becomes the program, under a filter that notifies `lucd` of its calls.
//!   MARK is `--` before a program and its arguments, `@` before a program, its argument zero and its arguments. With
//!   an `s` before it, SIGPIPE ends the program as by default (`IgnoreSIGPIPE=no`).
//! - `luc-exec clear` removes the files of a `lucd` that has ended; `lucd.service` calls it.
//!
//! Whatever fails here, the service starts: without luc, and a line says why.

#[macro_use]
extern crate luc_units;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use luc_gate::unit_shared_files::UnitSharedFiles;
use luc_notify::service_notifier::{self, ServiceProgram};

/// systemd's status for a program that cannot be executed (EXIT_EXEC).
const NOT_EXECUTED: u8 = 203;

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (command, unit) = (word(), word());
    let unit = unit.to_string_lossy();
    match command.to_str() {
        Some("prepare") if !unit.is_empty() => prepare(&unit),
        Some("clear") => clear(),
        Some("notify") => {
            let mark = word();
            notify(&mark.to_string_lossy(), words.collect())
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "luc-exec: these are not its words: systemd starts it, with those that `luc enable` writes; see `luc enable --help`"
    );
    ExitCode::from(2)
}

fn prepare(unit: &str) -> ExitCode {
    let user = rustix::process::geteuid().as_raw();
    match UnitSharedFiles::new(unit, user).make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("luc-exec: the service runs without luc: {error}");
            ExitCode::from(2)
        }
    }
}

/// Removes the files of a `lucd` that has ended.
fn clear() -> ExitCode {
    match luc_service::daemon::clear() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("luc-exec: {error}");
            ExitCode::from(2)
        }
    }
}

fn notify(mark: &str, words: Vec<OsString>) -> ExitCode {
    let is_pipe_ignored = !mark.starts_with('s');
    let has_name = match mark.trim_start_matches('s') {
        "--" => false,
        "@" => true,
        _ => return usage(),
    };
    let mut words = words;
    let Some(program) = words.first().cloned() else {
        return usage();
    };
    if has_name {
        words.remove(0);
    }
    let entered = service_notifier::enter(Path::new(luc_service::SOCKET));
    if let Err(error) = &entered {
        eprintln!("luc-exec: {} runs without luc: {error}", program.display());
    }
    let error = service_notifier::execute(ServiceProgram {
        path: program.clone(),
        words,
        is_notified: entered.is_ok(),
        is_pipe_ignored,
    });
    eprintln!("luc-exec: {} cannot be executed: {error}", program.display());
    ExitCode::from(NOT_EXECUTED)
}
