//! The clients. Each asks on a connection of its own, one request after the other, and notes the bytes of each name.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::harness::stop_if_interrupted;
use luc_host::interrupt;
use luc_stats::random;
use rand::RngExt as _;

use crate::named::Named;
use crate::wire::{Connection, body_bytes, wire_error};

/// Range of a client's wait between an answer and its next request, µs; drawn evenly.
const THINK_US: std::ops::Range<u64> = 0..2000;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Work of the clients.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) clients: u64,
    /// Number of requests of each client.
    pub(super) requests: u64,
    /// Whether each request has a traceparent.
    pub(super) has_tokens: bool,
    pub(super) seed: u64,
}

/// Asks a server on this port.
///
/// # Errors
/// A server that does not answer, or says what it was not asked for.
pub(super) fn ask(port: u16, load: Load) -> Result<Vec<Named>, EvaluateError> {
    let of_each: Vec<io::Result<Vec<Named>>> = thread::scope(|scope| {
        let spawn = |client| scope.spawn(move || run_client(port, client * load.requests, load));
        let threads: Vec<_> = (0..load.clients).map(spawn).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|asked| asked.unwrap_or_else(|_| Err(wire_error("a client has panicked"))))
            .collect()
    });
    let mut all = Vec::new();
    for asked in of_each {
        all.extend(asked.map_err(EvaluateError::file("ask", format!("port {port}")))?);
    }
    stop_if_interrupted()?;
    Ok(all)
}

/// Asks as one client. Its requests' names begin with `first`.
fn run_client(port: u16, first: u64, load: Load) -> io::Result<Vec<Named>> {
    let Load { requests, has_tokens, seed, .. } = load;
    let mut random = random::stream(seed, first);
    let mut connection = Connection::new(TcpStream::connect(("127.0.0.1", port))?)?;
    connection.socket().set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let from = connection.socket().local_addr()?;
    let to = connection.socket().peer_addr()?;
    let mut asked = Vec::new();
    for name in first..first + requests {
        if interrupt::interrupted() {
            break;
        }
        thread::sleep(Duration::from_micros(random.random_range(THINK_US)));
        let text = crate::named::text(name);
        let token = if has_tokens {
            format!("traceparent: 00-{:032x}-{:016x}-01\r\n", name + 1, name + 1)
        } else {
            String::new()
        };
        let first_byte =
            connection.send(&format!("GET /{text} HTTP/1.1\r\nHost: subject\r\n{token}\r\n"))?;
        let closed = || wire_error("the connection was closed without an answer");
        let (_, head) = connection.head()?.ok_or_else(closed)?;
        let length = body_bytes(&head).ok_or_else(|| wire_error(&head))?;
        if connection.body(length)? != text {
            return Err(wire_error("an answer to another request"));
        }
        asked.push(Named { name, from, to, first_byte });
    }
    Ok(asked)
}
