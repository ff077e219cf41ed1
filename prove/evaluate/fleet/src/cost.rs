//! Part `fleet-cost`: the throughput that servers and their clients lose while `luc record --fleet` records their
//! messages. Its page's section `[run]` has the runs; the servers are started here.

pub mod loaded;
pub mod recorded;
pub(crate) mod servers;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::runner;
use serde_json::json;

use servers::{Server, Servers};

/// Servers with the first words of the names of their cells.
const SERVERS: [(Server, &str); 3] =
    [(Server::Redis, "Redis"), (Server::Postgresql, "PostgreSQL"), (Server::Solr, "Solr")];

/// Makes part `fleet-cost`.
///
/// # Errors
/// A server, a client or the recorder that cannot be run, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    harness.let_others_pass()?;
    let only = harness.options.only.as_deref();
    let is_other = |name| {
        only.is_some_and(|only| {
            SERVERS.iter().any(|(_, other)| *other != name && only.contains(other))
        })
    };
    let wanted = SERVERS.into_iter().filter(|(_, name)| !is_other(*name));
    let servers = Servers::start(harness, wanted.map(|(server, _)| server))?;
    harness.keep(json!({ "servers": servers.versions }));
    let seconds = harness.options.seconds.unwrap_or(3.0);
    let variables = SERVERS.map(|(server, name)| {
        let of_server = json!({
            "port": servers.port(server), "processes": servers.processes(server),
            "pgbench": servers.of_postgresql("pgbench"),
            "clients": servers.searching(harness, seconds).join(" "),
        });
        (name.to_owned(), of_server)
    });
    let variables: serde_json::Map<_, _> = variables.into_iter().collect();
    runner::run_with(harness, [("servers".to_owned(), variables.into())].into_iter().collect())
}
