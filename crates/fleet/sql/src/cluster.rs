//! The same queries on many machines: Ballista's client, scheduler and executors, which know our tables and functions.
//!
//! The scheduler plans what the client sends it, and gives parts to executors, which read the files and exchange rows.
//! Whatever is not a plain plan goes through the codecs in `codec`.

mod codec;
mod loss;
mod serve;
mod watch;

use std::sync::Arc;

use ballista_core::config::BALLISTA_CLIENT_PULL;
use ballista_core::extension::{SessionConfigExt as _, SessionStateExt as _};
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionContext;

use crate::error::SqlError;
use codec::{LogicalCodec, PhysicalCodec};
pub use serve::{Executor, Scheduler};

/// Where a scheduler is, in a URL `df://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its name or address.
    pub host: String,
    pub port: u16,
}

/// What a job's error has in it if an executor is lost: the scheduler has cancelled the job (`loss`), its rows could not be
/// brought to another executor, or the client could not reach the executor that has the answer.
const LOST: [&str; 3] = [
    " failed: Cancelled",
    " has failed 1 times, most recent failure reason",
    "GrpcConnectionError",
];

/// Whether a query failed because an executor is lost, so that it can be asked anew.
pub(crate) fn is_lost(error: &DataFusionError) -> bool {
    match error.find_root() {
        // Of the job, or of a connection.
        DataFusionError::Execution(reason) => LOST.iter().any(|part| reason.contains(part)),
        // Of rows that executors send to the client once the job is done.
        DataFusionError::ArrowError(..) | DataFusionError::External(_) => true,
        _ => false,
    }
}

/// The port of a scheduler.
pub const SCHEDULER_PORT: u16 = 50050;

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is no scheduler: write it like df://host:{SCHEDULER_PORT}");
        let rest = text.strip_prefix("df://").ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // An IPv6 address stands in brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (rest, SCHEDULER_PORT),
        };
        if host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

/// A context whose plans are carried out by the cluster.
pub(crate) fn client(url: &str, state: SessionState) -> Result<SessionContext, SqlError> {
    let failed = |reason: String| SqlError::Cluster { url: url.to_owned(), reason };
    let address: Address = url.parse().map_err(failed)?;
    let config = state
        .config()
        .clone()
        .with_ballista_logical_extension_codec(Arc::new(LogicalCodec::default()))
        .with_ballista_physical_extension_codec(Arc::new(PhysicalCodec::default()))
        .upgrade_for_ballista()
        // The client asks how its job is. A scheduler that tells it instead drops what there is no room for
        // (`update_subscribers`), and a client that was not told of the end would wait for ever.
        .set_str(BALLISTA_CLIENT_PULL, "true");
    let state = SessionStateBuilder::new_from_existing(state).with_config(config).build();
    let scheduler = format!("http://{}:{}", address.host, address.port);
    let state = state.upgrade_for_ballista(scheduler).map_err(SqlError::of_engine)?;
    Ok(SessionContext::new_with_state(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_named_by_a_url() {
        let read = |text: &str| text.parse::<Address>().map(|found| (found.host, found.port));
        let is = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(read("df://a.example:5000"), is("a.example", 5000));
        assert_eq!(read("df://localhost/"), is("localhost", SCHEDULER_PORT));
        assert_eq!(read("df://[::1]:7"), is("[::1]", 7));
        assert_eq!(read("df://[::1]"), is("[::1]", SCHEDULER_PORT));
        for wrong in ["", "df://", "http://a:1", "df://a:b", "df://a:70000", "df://a/b:1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
