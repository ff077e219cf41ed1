//! The rows.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// The most documents that a query may ask for.
pub const MAX_HITS: usize = 16;
/// Of the files' form; another number is another form.
pub const VERSION: u32 = 1;

/// Which part of the service a process is.
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
    /// Of the form: [`VERSION`].
    pub version: u32,
    /// What the process is.
    pub role: Role,
    /// The host's name; the file has the same.
    pub host: String,
    pub process: u32,
    /// The inode of its network namespace.
    pub namespace: u64,
    /// All random numbers follow from it.
    pub seed: u64,
    pub options: Vec<String>,
    /// How many rows found no place in memory: 0, or the truth is not whole.
    pub dropped_rows: u64,
}

/// Any line but the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Row {
    /// A message was sent or received.
    Message(Message),
    /// A thread worked for a request, or had it wait.
    Work(Work),
    /// A client got its answer.
    Answer(Answer),
    /// A connection, as the kernel saw it at the end.
    Connection(Connection),
    Planted(Planted),
}

/// A message that was sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Sent: before the first call that sends. Received: after the call that gave the last byte. ns.
    pub at_ns: u64,
    /// The thread that made the call.
    pub thread: u32,
    /// The request's id; an answer has its question's.
    pub request: u64,
    /// The request that this one is part of; 0 for a client's.
    pub parent: u64,
    pub kind: MessageKind,
    pub direction: Direction,
    /// The socket's own address.
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    /// Where it begins in the stream of this direction, from 0.
    pub first_byte: u64,
    /// How long it is.
    pub bytes: u32,
}

/// What a message is.
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
    /// Whether somebody has to answer it.
    #[must_use]
    pub fn is_question(self) -> bool {
        matches!(self, Self::Query | Self::Search | Self::Snippets)
    }
}

/// Which way a message went, seen from the process that wrote the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Sent,
    Received,
}

/// What a thread did for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub request: u64,
    /// The thread that worked, or that took the request from the queue.
    pub thread: u32,
    pub kind: WorkKind,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    Search,
    Snippet,
    /// Merged what was gathered.
    Merge,
    /// Nothing: the request waited in a queue for a worker.
    Queue,
    /// What the options add to every search: a sleep of known length.
    Delay,
    /// What a planted trouble added: work, or a wait.
    Planted,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub request: u64,
    /// The client's number, from 0, and the query's among its own: the query follows from both and the seed.
    pub client: u32,
    pub sequence: u32,
    /// The documents, best first; the first `hits` of them are meant.
    pub documents: [u32; MAX_HITS],
    pub hits: u8,
    /// Bytes of all snippets.
    pub snippet_bytes: u32,
    /// When the client meant to ask, ns. Without fixed arrival times: when it did.
    pub due_ns: u64,
}

/// A connection, as the kernel saw it when the process ended: `tcpi_bytes_sent` less `tcpi_bytes_retrans`, and
/// `tcpi_bytes_received`, less 1 if the other end had closed it (a FIN counts as a byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The socket's own address.
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    /// Bytes that were sent, each counted once.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Bytes that were sent again.
    pub retransmitted_bytes: u64,
}

/// A planted trouble, on the host whose file it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    pub kind: Kind,
    pub from_ns: u64,
    pub to_ns: u64,
    /// The thread that is the cause; 0 if it is none, or each request's own (see its [`WorkKind::Planted`]).
    pub thread: u32,
    /// Who holds what others wait for; 0 if nobody does.
    pub holder: u32,
    /// How strong it is, in the kind's own unit (see [`Kind`]).
    pub strength: u64,
    /// How often it happened: searches that it met, holds of a lock, wake-ups.
    pub times: u64,
}
