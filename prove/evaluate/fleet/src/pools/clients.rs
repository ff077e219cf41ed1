//! The clients. Each asks on a connection of its own, one request after the other, and notes the bytes of each name.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::harness::stop_if_interrupted;
use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;

use crate::named::Named;
use crate::wire::{Connection, body_bytes, wire_error};

/// Range of a client's wait between an answer and its next request, µs; drawn evenly.
const THINK_US: std::ops::Range<u64> = 0..2000;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of requests of each client.
const REQUESTS: u64 = 100;

/// Options of `luc-evaluate pool-clients`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Load {
    port: u16,
    seed: u64,
    clients: u64,
    /// Whether each request has a traceparent
    #[arg(long = "tokens")]
    has_tokens: bool,
}

/// Asks a server.
///
/// # Errors
/// A server that does not answer, or says what it was not asked for.
pub fn ask(load: Load) -> Result<Vec<Named>, EvaluateError> {
    let of_each: Vec<io::Result<Vec<Named>>> = thread::scope(|scope| {
        let spawn = |client| scope.spawn(move || run_client(client * REQUESTS, load));
        let threads: Vec<_> = (0..load.clients).map(spawn).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|asked| asked.unwrap_or_else(|_| Err(wire_error("a client has panicked"))))
            .collect()
    });
    let mut all = Vec::new();
    for asked in of_each {
        all.extend(asked.map_err(EvaluateError::file("ask", format!("port {}", load.port)))?);
    }
    stop_if_interrupted()?;
    Ok(all)
}

/// Asks as one client. Its requests' names begin with `first`.
fn run_client(first: u64, load: Load) -> io::Result<Vec<Named>> {
    let Load { port, seed, has_tokens, .. } = load;
    let mut random = seeded_random::stream(seed, first);
    let mut connection = Connection::new(TcpStream::connect(("127.0.0.1", port))?)?;
    connection.socket().set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let from = connection.socket().local_addr()?;
    let to = connection.socket().peer_addr()?;
    let mut asked = Vec::new();
    for name in first..first + REQUESTS {
        if interrupt_flag::interrupted() {
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
