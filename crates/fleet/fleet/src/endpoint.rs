//! Endpoints at which services answer.

use std::fmt;

/// Port or path at which a service answers, whatever its host's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Port(u16),
    /// Path or abstract name of a unix socket.
    Path(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port {port}"),
            Self::Path(path) => f.write_str(path),
        }
    }
}
