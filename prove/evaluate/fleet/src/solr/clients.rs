//! The clients. Each asks on a connection of its own, one query after the other, and each query carries a name.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::stop_if_interrupted;
use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::settings::VOCABULARY;
use crate::named::text;
use crate::wire::{Connection, body_bytes, wire_error};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of bytes of an error that are shown.
const MAX_ERROR_BYTES: usize = 400;
/// Distance between the first names of two clients.
const NAMES_PER_CLIENT: u64 = 1_000_000;

/// Options of `luc-evaluate search-clients`.
#[derive(Debug, Clone, clap::Args)]
pub struct SearchClientsArguments {
    to: SocketAddr,
    /// Addresses of the shards, separated by commas as for Solr
    shards: String,
    #[arg(long)]
    clients: u64,
    /// Number of queries of each client; absent: as many as it can make in the time
    #[arg(long)]
    queries: Option<u64>,
    /// Maximum time that they ask
    #[arg(long)]
    seconds: f64,
    /// Maximum wait of a client between an answer and its next query; drawn evenly
    #[arg(long)]
    think_ms: u64,
    /// Seed of the queries
    #[arg(long)]
    seed: u64,
}

/// Results of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub process: u32,
    pub queries: u64,
    /// Time from the first query to the last answer.
    pub seconds: f64,
}

/// Runs the clients.
///
/// # Errors
/// A front end that does not answer, or says what it was not asked for.
pub fn run(arguments: &SearchClientsArguments) -> Result<Asked, EvaluateError> {
    let began = Instant::now();
    let of_each: Vec<io::Result<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.clients)
            .map(|client| scope.spawn(move || run_client(arguments, client, began)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|asked| asked.unwrap_or_else(|_| Err(wire_error("a client has panicked"))))
            .collect()
    });
    let mut queries = 0;
    for asked in of_each {
        queries += asked.map_err(EvaluateError::file("ask", arguments.to.to_string()))?;
    }
    stop_if_interrupted()?;
    Ok(Asked { process: std::process::id(), queries, seconds: began.elapsed().as_secs_f64() })
}

/// Asks as one client, and returns the number of queries.
fn run_client(arguments: &SearchClientsArguments, client: u64, began: Instant) -> io::Result<u64> {
    let mut random = seeded_random::stream(arguments.seed, client);
    let mut connection = Connection::new(TcpStream::connect(arguments.to)?)?;
    connection.socket().set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut asked = 0;
    let most = arguments.queries.unwrap_or(NAMES_PER_CLIENT).min(NAMES_PER_CLIENT);
    while asked < most
        && began.elapsed().as_secs_f64() < arguments.seconds
        && !interrupt_flag::interrupted()
    {
        let think = 1000 * arguments.think_ms;
        thread::sleep(Duration::from_micros(random.random_range(0..=think)));
        let name = text(client * NAMES_PER_CLIENT + asked);
        connection.send(&query(arguments, &name, &mut random))?;
        let closed = || wire_error("the connection was closed without an answer");
        let (_, head) = connection.head()?.ok_or_else(closed)?;
        let Some(length) = body_bytes(&head) else {
            // The first bytes of the body say why.
            let why = connection.body(MAX_ERROR_BYTES).unwrap_or_default();
            return Err(wire_error(&format!("{}: {why}", head.lines().next().unwrap_or_default())));
        };
        let body = connection.body(length)?;
        // Solr says what it was asked for, and what it has found.
        if !body.contains(&format!("\"planted\":\"{name}\"")) || !body.contains("\"numFound\":") {
            return Err(wire_error("an answer to another query"));
        }
        asked += 1;
    }
    Ok(asked)
}

/// Returns a query for two words, with highlighted snippets of the hits.
fn query(arguments: &SearchClientsArguments, name: &str, random: &mut ChaCha8Rng) -> String {
    let mut word = || {
        let drawn: f64 = random.random();
        (drawn * drawn * VOCABULARY as f64) as u64
    };
    let (first, second) = (word(), word());
    let SearchClientsArguments { to, shards, .. } = arguments;
    format!(
        "GET /solr/search/select?q=w{first}+w{second}&shards={shards}&hl=true&hl.fl=body&fl=id,body&rows=10&wt=json\
         &echoParams=explicit&{}{name} HTTP/1.1\r\nHost: {to}\r\n\r\n",
        String::from_utf8_lossy(super::streams::MARK)
    )
}
