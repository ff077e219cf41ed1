//! Requests that carry a name in their bytes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A request, or a call made for it, with the place of its name in the bytes of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The name; a call has that of its request.
    pub(crate) name: u64,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// Offset of one of its bytes in this direction of its connection.
    pub(crate) first_byte: u64,
}

/// Returns the text of a request's name in its bytes: at least eight digits.
pub(crate) fn text(name: u64) -> String {
    format!("{name:08}")
}
