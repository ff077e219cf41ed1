//! Requests that carry a name in their bytes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A request, or a call that was made for it, by where in the bytes of a connection its name was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// The name; a call has that of the request that it was made for.
    pub(crate) name: u64,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// One of its bytes, counted from the first one of this direction of its connection.
    pub(crate) first_byte: u64,
}

/// The name of a request as it is in its bytes.
pub(crate) fn text(name: u64) -> String {
    format!("{name:08}")
}
