//! `lucd`: serves services whose calls are notified. systemd starts it, by `lucd.service`.

#[macro_use]
extern crate luc_units;

use std::process::ExitCode;

fn main() -> ExitCode {
    match luc_service::daemon::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lucd: {error}");
            ExitCode::from(2)
        }
    }
}
