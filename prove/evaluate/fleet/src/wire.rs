//! The part of HTTP/1.1 that clients and the back end use.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

/// Maximum length of a head that is read, bytes.
const MAX_HEAD_BYTES: usize = 1 << 16;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A connection with one request after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    unread: Vec<u8>,
    /// Bytes of each direction that were used up.
    read: u64,
    sent: u64,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, unread: Vec::new(), read: 0, sent: 0 })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads a head, and returns the offset of its first byte. `None` if the peer has closed the connection.
    pub(crate) fn head(&mut self) -> io::Result<Option<(u64, String)>> {
        loop {
            let end = self.unread.windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD);
            if let Some(end) = end {
                let first_byte = self.read;
                return Ok(Some((first_byte, self.take(end + END_OF_HEAD.len()))));
            }
            if self.unread.len() > MAX_HEAD_BYTES {
                return Err(wire_error("a head without an end"));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    pub(crate) fn body(&mut self, bytes: usize) -> io::Result<String> {
        while self.unread.len() < bytes {
            if !self.more()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.take(bytes))
    }

    /// Sends by one call, and returns the offset of the first byte.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<u64> {
        let first_byte = self.sent;
        self.socket.write_all(text.as_bytes())?;
        self.sent += text.len() as u64;
        Ok(first_byte)
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let read = self.socket.read(&mut bytes)?;
        self.unread.extend_from_slice(&bytes[..read]);
        Ok(read > 0)
    }

    fn take(&mut self, bytes: usize) -> String {
        let taken: Vec<u8> = self.unread.drain(..bytes).collect();
        self.read += taken.len() as u64;
        String::from_utf8_lossy(&taken).into_owned()
    }
}

/// Returns the error for an unexpected message of the peer.
pub(crate) fn wire_error(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// Returns the length of a good answer's body.
pub(crate) fn body_bytes(head: &str) -> Option<usize> {
    let mut lines = head.lines();
    if lines.next()?.split(' ').nth(1) != Some("200") {
        return None;
    }
    lines.find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_good_answers_have_a_length() {
        let head = |first: &str| format!("{first}\r\nServer: x\r\ncontent-length: 8\r\n\r\n");
        assert_eq!(body_bytes(&head("HTTP/1.1 200 OK")), Some(8));
        assert_eq!(body_bytes(&head("HTTP/1.1 500 Internal Server Error")), None);
        assert_eq!(body_bytes("HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(body_bytes(""), None);
    }

    #[test]
    fn heads_and_bodies_have_places() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let mut client =
            Connection::new(TcpStream::connect(address).expect("connected")).expect("a connection");
        let mut server =
            Connection::new(listener.accept().expect("accepted").0).expect("a connection");
        assert_eq!(client.send("A\r\n\r\nbodyB\r").expect("sent"), 0);
        assert_eq!(client.send("\n\r\nC").expect("sent"), 11);
        let head = |text: &str, place| Some((place, text.to_owned()));
        assert_eq!(server.head().expect("read"), head("A\r\n\r\n", 0));
        assert_eq!(server.body(4).expect("read"), "body");
        assert_eq!(server.head().expect("read"), head("B\r\n\r\n", 9));
        drop(client);
        assert_eq!(server.head().expect("read"), None);
        assert!(server.body(2).is_err());
    }
}
