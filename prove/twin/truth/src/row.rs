//! The rows of a truth file.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// Maximum number of documents that a query may ask for.
pub const MAX_HITS: usize = 16;
pub const VERSION: u32 = 1;

/// Role of a process in the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Has a partition, and answers the front end.
    BackEnd,
    /// Scatters, gathers and merges.
    FrontEnd,
    Client,
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    pub role: Role,
    /// Name of the host and of the file.
    pub host: String,
    pub process: u32,
    /// Inode of its network namespace.
    pub namespace: u64,
    pub seed: u64,
    pub options: Vec<String>,
    /// Number of rows that found no room in memory. The truth is complete only if it is 0.
    pub dropped_rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Row {
    /// A message was sent or received.
    Message(Message),
    /// A thread worked for a request, or made it wait.
    Work(Work),
    /// A client got its answer.
    Answer(Answer),
    /// A connection's counters in the kernel at the end.
    Connection(Connection),
    Planted(Planted),
}

/// A message that was sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Time in ns: before the first call that sends, or after the call that received the last byte.
    pub at_ns: u64,
    /// The thread that made the call.
    pub thread: u32,
    /// Id of the request; an answer has its question's.
    pub request: u64,
    /// The request that this one is part of; 0 for a client's.
    pub parent: u64,
    pub kind: MessageKind,
    pub direction: Direction,
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    /// Offset of its first byte in the stream of this direction.
    pub first_byte: u64,
    pub bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    Query,
    Answer,
    /// The front end's question to a back end.
    Search,
    Found,
    /// The front end's second question, to owners of hits.
    Snippets,
    Texts,
}

impl MessageKind {
    /// Whether the message needs an answer.
    #[must_use]
    pub fn is_question(self) -> bool {
        matches!(self, Self::Query | Self::Search | Self::Snippets)
    }
}

/// Direction of a message, seen from the process that wrote the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Sent,
    Received,
}

/// A piece of work of a thread for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub request: u64,
    /// The thread that worked, or that took the request from the queue.
    pub thread: u32,
    pub kind: WorkKind,
    pub from_ns: u64,
    pub to_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    Search,
    Snippet,
    /// Merging of the gathered hits.
    Merge,
    /// No work: the request waited in a queue for a worker.
    Queue,
    /// Delay that the options add to every search: a sleep of known length.
    Delay,
    /// Work or wait that a planted trouble added.
    Planted,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub request: u64,
    /// Number of the client, and of the query among its own. The query follows from both and the seed.
    pub client: u32,
    pub sequence: u32,
    /// The documents, best first; only the first `hits` are valid.
    pub documents: [u32; MAX_HITS],
    pub hits: u8,
    pub snippet_bytes: u32,
    /// Time at which the client meant to ask, ns. Without fixed arrival times, the time at which it asked.
    pub due_ns: u64,
}

/// The kernel's counters of a connection when the process ended. Sent bytes are `tcpi_bytes_sent` less
/// `tcpi_bytes_retrans`. Received bytes are `tcpi_bytes_received`, less 1 if the other end had closed it (a FIN counts
/// as a byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    /// Bytes sent, each counted once.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub retransmitted_bytes: u64,
}

/// A planted trouble, on the host whose file it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    pub kind: Kind,
    pub from_ns: u64,
    pub to_ns: u64,
    /// Thread that is the cause; 0 if there is none, or if it is each request's own (see its [`WorkKind::Planted`]).
    pub thread: u32,
    /// Thread or process that holds what others wait for; 0 if there is none.
    pub holder: u32,
    /// Strength in the kind's own unit (see [`Kind`]).
    pub strength: u64,
    /// Number of times that it happened: searches that met it, holds of a lock, wake-ups.
    pub times: u64,
}
