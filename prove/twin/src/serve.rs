//! Ways in which a server's threads share its requests. Handing over inside a process is hard to see from outside, so
//! each way is an option.

mod pool;
mod thread;

use std::fmt;
use std::net::TcpListener;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::TwinError;
use crate::fatal;
use crate::log::{Log, Recorder};
use crate::wire::Frame;

const DEFAULT_WORKERS: u32 = 8;
const MAX_WORKERS: u32 = 1_024;

/// Division of a server's work among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serve {
    /// A thread for each connection reads, works and answers.
    Thread,
    /// A thread for each connection puts requests into one queue, from which `workers` threads take.
    Pool {
        workers: u32,
        /// Thread that sends the answer.
        answerer: Answerer,
    },
    /// A pool whose workers answer themselves. Questions to other processes share one connection for all threads, with
    /// several requests in flight.
    Shared { workers: u32 },
}

/// Thread that sends the answer of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// The connection's thread, which waits for the worker.
    Connection,
    Worker,
}

impl FromStr for Serve {
    type Err = TwinError;

    fn from_str(text: &str) -> Result<Self, TwinError> {
        let wrong = || TwinError::Option {
            what: format!("--serve {text}"),
            why: format!(
                "it is thread, pool:W, pool:W:worker or shared:W, with 1 to {MAX_WORKERS} workers"
            ),
        };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut workers = || match parts.next() {
            None => Some(DEFAULT_WORKERS),
            Some(number) => {
                let number = number.parse().ok();
                number.filter(|number| (1..=MAX_WORKERS).contains(number))
            }
        };
        let serve = match name {
            "thread" => Self::Thread,
            "pool" => {
                let workers = workers().ok_or_else(wrong)?;
                let answerer = match parts.next() {
                    None => Answerer::Connection,
                    Some("worker") => Answerer::Worker,
                    Some(_) => return Err(wrong()),
                };
                Self::Pool { workers, answerer }
            }
            "shared" => Self::Shared { workers: workers().ok_or_else(wrong)? },
            _ => return Err(wrong()),
        };
        match parts.next() {
            None => Ok(serve),
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for Serve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread => f.write_str("thread"),
            Self::Pool { workers, answerer: Answerer::Connection } => write!(f, "pool:{workers}"),
            Self::Pool { workers, answerer: Answerer::Worker } => {
                write!(f, "pool:{workers}:worker")
            }
            Self::Shared { workers } => write!(f, "shared:{workers}"),
        }
    }
}

/// Makes the handlers of a server's requests.
pub(crate) trait Service: fmt::Debug + Send + Sync {
    /// Makes a thread's handler, in that thread and before its first request.
    fn handler(&self) -> Result<Box<dyn Handler + '_>, TwinError>;
}

pub(crate) trait Handler {
    fn handle(&mut self, question: &Frame, recorder: &Recorder) -> Result<Frame, TwinError>;
}

/// State that all threads of a server share.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) log: Arc<Log>,
}

impl Server {
    /// Starts the threads that serve all connections. They end with the process.
    pub(crate) fn start(self, listener: TcpListener, serve: Serve) -> Result<(), TwinError> {
        match serve {
            Serve::Thread => thread::start(self, listener),
            Serve::Pool { workers, answerer } => pool::start(self, listener, workers, answerer),
            Serve::Shared { workers } => pool::start(self, listener, workers, Answerer::Worker),
        }
    }

    /// Starts a thread of this name, whose failure ends the process.
    fn spawn(
        &self,
        name: &str,
        body: impl FnOnce(&Self) -> Result<(), TwinError> + Send + 'static,
    ) -> Result<(), TwinError> {
        let server = self.clone();
        fatal::spawn(name, move || body(&server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_they_are_written() {
        for text in ["thread", "pool:3", "pool:1:worker", "shared:4"] {
            let serve: Serve = text.parse().expect("valid");
            assert_eq!(serve.to_string(), text);
        }
        assert_eq!("pool".parse::<Serve>().expect("valid").to_string(), "pool:8");
        for text in ["", "threads", "pool:0", "pool:x", "pool:1:me", "shared:1:2", "thread:1"] {
            text.parse::<Serve>().expect_err(text);
        }
    }
}
