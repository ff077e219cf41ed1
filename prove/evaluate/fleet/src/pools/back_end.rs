//! The back end: answers each call after a while, and notes the bytes of each name.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{io, mem};

use luc_harness::error::EvaluateError;
use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;

use crate::named::{Named, text};
use crate::wire::{Connection, wire_error};

/// Range of the duration of a call, µs; drawn evenly.
const DELAY_US: std::ops::Range<u64> = 200..3000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Options of `luc-evaluate back-end`.
#[derive(Debug, Clone, clap::Args)]
pub struct NamingBackEndArguments {
    port: u16,
    /// Seed of the calls' durations
    seed: u64,
    /// File for the names that it was called with
    calls: PathBuf,
}

/// Answers until it is interrupted, then writes its calls.
///
/// # Errors
/// A port or a file that it cannot have.
pub fn run(arguments: &NamingBackEndArguments) -> Result<(), EvaluateError> {
    let address = ("127.0.0.1", arguments.port);
    let listener =
        TcpListener::bind(address).map_err(EvaluateError::file("listen on", "127.0.0.1"))?;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (seed, of_all) = (arguments.seed, Arc::clone(&calls));
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let calls = Arc::clone(&of_all);
            thread::spawn(move || {
                // A peer that only looks whether somebody listens asks nothing.
                if let Err(error) = serve(socket, seed, &calls) {
                    eprintln!("back-end: {error}");
                }
            });
        }
    });
    while !interrupt_flag::interrupted() {
        thread::sleep(POLL_INTERVAL);
    }
    let calls = mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
    let text = serde_json::json!(calls).to_string();
    fs::write(&arguments.calls, text).map_err(EvaluateError::file("write", &arguments.calls))
}

/// Answers `GET /NAME` and `GET /NAME/CALL` with the name.
fn serve(socket: TcpStream, seed: u64, calls: &Mutex<Vec<Named>>) -> io::Result<()> {
    let mut connection = Connection::new(socket)?;
    let (from, to) = (connection.socket().peer_addr()?, connection.socket().local_addr()?);
    while let Some((first_byte, head)) = connection.head()? {
        let (name, call) = parse_path(&head).ok_or_else(|| wire_error("a call without a name"))?;
        let call_to_note = Named { name, from, to, first_byte };
        calls.lock().unwrap_or_else(PoisonError::into_inner).push(call_to_note);
        let mut random = seeded_random::stream(seed, name << 8 | call);
        thread::sleep(Duration::from_micros(random.random_range(DELAY_US)));
        let body = text(name);
        let length = body.len();
        connection.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"))?;
    }
    Ok(())
}

/// Returns the name in a request, and the number of the call that is made for it.
fn parse_path(head: &str) -> Option<(u64, u64)> {
    let path = head.split(' ').nth(1)?.strip_prefix('/')?;
    let (name, call) = path.split_once('/').unwrap_or((path, "0"));
    Some((name.parse().ok()?, call.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_paths() {
        assert_eq!(parse_path("GET /00000012/3 HTTP/1.1\r\n\r\n"), Some((12, 3)));
        assert_eq!(parse_path("GET /00000012 HTTP/1.0\r\n\r\n"), Some((12, 0)));
        for wrong in ["", "GET", "GET 12 x", "GET /x/1 x", "GET /1/x x"] {
            assert_eq!(parse_path(wrong), None, "{wrong}");
        }
    }
}
