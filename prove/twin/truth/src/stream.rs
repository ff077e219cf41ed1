//! Check that the messages of the truth are all that went over each connection.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use crate::folder::Folder;
use crate::row::{Direction, Message, Row};

/// A stream that does not fit the truth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host}, {direction:?} between {local} and {remote}: {why}")]
pub struct StreamFault {
    pub host: String,
    pub direction: Direction,
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    pub why: String,
}

/// One direction of a connection, seen from one end.
type Stream = (SocketAddrV4, SocketAddrV4);

/// Checks all streams, and returns their number: each direction of each connection counts once.
///
/// In each stream the messages follow each other without gap or overlap, and both ends have the same ones. The kernel
/// has counted as many bytes at both ends.
///
/// # Errors
/// The first stream of which this is not true.
pub fn streams(folder: &Folder) -> Result<usize, StreamFault> {
    let mut sent = BTreeMap::new();
    let mut received = BTreeMap::new();
    for process in &folder.processes {
        let mut by_stream: BTreeMap<(bool, Stream), Vec<&Message>> = BTreeMap::new();
        for message in process.messages() {
            let is_sent = message.direction == Direction::Sent;
            let ends = (message.local, message.remote);
            by_stream.entry((is_sent, ends)).or_default().push(message);
        }
        let fault = |is_sent, (local, remote), why| StreamFault {
            host: process.header.host.clone(),
            direction: if is_sent { Direction::Sent } else { Direction::Received },
            local,
            remote,
            why,
        };
        for ((is_sent, ends), messages) in &mut by_stream {
            let fault = |why| fault(*is_sent, *ends, why);
            let total = end(messages).map_err(fault)?;
            let counted = find_kernel_count(&process.rows, *ends, *is_sent);
            if counted != Some(total) {
                let why = format!("{total} bytes of messages, the kernel has counted {counted:?}");
                return Err(fault(why));
            }
            let shapes: Vec<Shape> = messages.iter().map(|message| shape(message)).collect();
            if *is_sent {
                sent.insert(*ends, shapes);
            } else {
                received.insert((ends.1, ends.0), (process.header.host.clone(), shapes));
            }
        }
    }
    for ((remote, local), (host, shapes)) in &received {
        if sent.get(&(*remote, *local)) != Some(shapes) {
            return Err(StreamFault {
                host: host.clone(),
                direction: Direction::Received,
                local: *local,
                remote: *remote,
                why: "the other end has sent other messages".into(),
            });
        }
    }
    if let Some((local, remote)) = sent.keys().find(|ends| !received.contains_key(ends)) {
        return Err(StreamFault {
            host: local.to_string(),
            direction: Direction::Sent,
            local: *local,
            remote: *remote,
            why: "nobody has received it".into(),
        });
    }
    Ok(sent.len())
}

/// Properties that a message has at both ends: offset, request, parent and length.
type Shape = (u64, u64, u64, u32);

fn shape(message: &Message) -> Shape {
    (message.first_byte, message.request, message.parent, message.bytes)
}

/// Returns the end of a stream, whose messages it sorts.
fn end(messages: &mut [&Message]) -> Result<u64, String> {
    messages.sort_by_key(|message| message.first_byte);
    let mut end = 0;
    for message in messages {
        if message.first_byte != end {
            return Err(format!(
                "request {:x} begins at {}, the one before ends at {end}",
                message.request, message.first_byte
            ));
        }
        end += u64::from(message.bytes);
    }
    Ok(end)
}

/// Returns the kernel's count of a stream's bytes.
fn find_kernel_count(rows: &[Row], ends: Stream, is_sent: bool) -> Option<u64> {
    rows.iter().find_map(|row| match row {
        Row::Connection(connection) if (connection.local, connection.remote) == ends => {
            Some(if is_sent { connection.sent_bytes } else { connection.received_bytes })
        }
        _ => None,
    })
}
