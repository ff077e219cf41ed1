//! Both directions of a connection. Each message sent or received becomes a row of the truth.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddrV4, TcpStream};

use luc_twin_truth::{Direction, Message};

use crate::clock::now_ns;
use crate::error::TwinError;
use crate::log::{Log, Recorder};
use crate::socket::Ends;
use crate::wire::{Frame, LENGTH_BYTES, length};

const READ_BYTES: usize = 1 << 16;

pub(crate) fn connect(address: SocketAddrV4, log: &Log) -> Result<(Sender, Receiver), TwinError> {
    let stream = TcpStream::connect(address)
        .map_err(TwinError::system(format!("connecting to {address}")))?;
    split(stream, log)
}

/// Splits a connection into its two directions.
pub(crate) fn split(stream: TcpStream, log: &Log) -> Result<(Sender, Receiver), TwinError> {
    let failed = || TwinError::system("setting up a connection");
    // A message is one call: nothing is gained by waiting for more.
    stream.set_nodelay(true).map_err(failed())?;
    log.watch(&stream)?;
    let ends = Ends::of(&stream)?;
    let sender = Sender {
        stream: stream.try_clone().map_err(failed())?,
        ends,
        first_byte: 0,
        bytes: Vec::with_capacity(READ_BYTES),
    };
    let receiver = Receiver {
        stream,
        ends,
        first_byte: 0,
        bytes: vec![0; READ_BYTES],
        filled: 0,
        read_at_ns: 0,
    };
    Ok((sender, receiver))
}

#[derive(Debug)]
pub(crate) struct Sender {
    stream: TcpStream,
    ends: Ends,
    first_byte: u64,
    bytes: Vec<u8>,
}

impl Sender {
    pub(crate) fn send(&mut self, frame: &Frame, recorder: &Recorder) -> Result<(), TwinError> {
        frame.encode(&mut self.bytes);
        // Before the call: the last answer may end the run before this thread goes on.
        recorder.message(row(
            frame,
            Direction::Sent,
            self.ends,
            now_ns(),
            self.first_byte,
            self.bytes.len(),
            recorder,
        ));
        self.stream
            .write_all(&self.bytes)
            .map_err(TwinError::system(format!("sending to {}", self.ends.remote)))?;
        self.first_byte += self.bytes.len() as u64;
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Receiver {
    stream: TcpStream,
    ends: Ends,
    /// Offset in the stream of the buffer's first byte.
    first_byte: u64,
    bytes: Vec<u8>,
    filled: usize,
    read_at_ns: u64,
}

impl Receiver {
    /// Address of the other end.
    pub(crate) fn remote(&self) -> SocketAddrV4 {
        self.ends.remote
    }

    /// Returns the next message; `None` when the other end has closed the connection after a whole one.
    ///
    /// Messages that one call reads have the same time.
    pub(crate) fn receive(&mut self, recorder: &Recorder) -> Result<Option<Frame>, TwinError> {
        let wrong = |why| TwinError::Wire { from: self.ends.remote.to_string(), why };
        loop {
            let length = length(&self.bytes[..self.filled]).map_err(wrong)?;
            let total = length.map_or(LENGTH_BYTES, |length| LENGTH_BYTES + length);
            if length.is_some() && total <= self.filled {
                let frame = Frame::decode(&self.bytes[LENGTH_BYTES..total]).map_err(wrong)?;
                recorder.message(row(
                    &frame,
                    Direction::Received,
                    self.ends,
                    self.read_at_ns,
                    self.first_byte,
                    total,
                    recorder,
                ));
                self.bytes.copy_within(total..self.filled, 0);
                self.filled -= total;
                self.first_byte += total as u64;
                return Ok(Some(frame));
            }
            if total > self.bytes.len() {
                self.bytes.resize(total, 0);
            }
            let read = self
                .stream
                .read(&mut self.bytes[self.filled..])
                .map_err(TwinError::system(format!("receiving from {}", self.ends.remote)))?;
            self.read_at_ns = now_ns();
            if read == 0 {
                return if self.filled == 0 { Ok(None) } else { Err(wrong("it is cut off")) };
            }
            self.filled += read;
        }
    }
}

fn row(
    frame: &Frame,
    direction: Direction,
    ends: Ends,
    at_ns: u64,
    first_byte: u64,
    bytes: usize,
    recorder: &Recorder,
) -> Message {
    Message {
        at_ns,
        thread: recorder.thread(),
        request: frame.request,
        parent: frame.parent,
        kind: frame.body.kind(),
        direction,
        local: ends.local,
        remote: ends.remote,
        first_byte,
        bytes: bytes.try_into().unwrap_or(u32::MAX),
    }
}
