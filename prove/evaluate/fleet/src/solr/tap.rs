//! The tap: sees each packet of a network, and notes the places of names in the bytes of its connections.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::harness::missing;
use luc_host::interrupt_flag;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketType, eth, recv, socket};
use serde::{Deserialize, Serialize};

use super::streams::Streams;
use crate::named::Named;

/// Maximum size of a packet, bytes. Links of one machine do not cut packets.
const MAX_PACKET_BYTES: usize = 1 << 16;
/// Size of the receive buffer, bytes.
const BUFFER_BYTES: usize = 64 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tapped {
    pub(super) named: Vec<Named>,
    /// Number of directions of connections of which packets were missed.
    gaps: usize,
}

/// Taps the network namespace of this process until it is interrupted, then writes the names.
///
/// # Errors
/// A socket or a file that it cannot have.
pub fn run(to: &Path) -> Result<(), EvaluateError> {
    let failed =
        |what| move |errno: Errno| EvaluateError::file(what, "a packet socket")(errno.into());
    let socket =
        socket(AddressFamily::PACKET, SocketType::DGRAM, Some(eth::ALL)).map_err(failed("make"))?;
    set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).map_err(failed("set up"))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(POLL_INTERVAL)).map_err(failed("set up"))?;
    let mut streams = Streams::default();
    let mut packet = vec![0; MAX_PACKET_BYTES];
    // Whoever waits for it looks for this file.
    write(to, &streams)?;
    while !interrupt_flag::interrupted() {
        match recv(&socket, &mut packet, RecvFlags::empty()) {
            Ok((bytes, _)) => streams.packet(&packet[..bytes]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(failed("read")(errno)),
        }
    }
    write(to, &streams)
}

fn write(to: &Path, streams: &Streams) -> Result<(), EvaluateError> {
    let tapped = serde_json::json!({ "named": streams.named, "gaps": streams.gaps() });
    fs::write(to, tapped.to_string()).map_err(EvaluateError::file("write", to))
}

impl Tapped {
    pub(super) fn has_begun(from: &Path) -> Result<bool, EvaluateError> {
        match fs::metadata(from) {
            Ok(about) => Ok(about.len() > 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(EvaluateError::file("look at", from)(error)),
        }
    }

    /// Reads the names, which must be complete, and removes the file.
    pub(super) fn take(from: &PathBuf) -> Result<Vec<Named>, EvaluateError> {
        let text = fs::read_to_string(from).map_err(EvaluateError::file("read", from))?;
        fs::remove_file(from).map_err(EvaluateError::file("remove", from))?;
        let tapped: Self = serde_json::from_str(&text)
            .map_err(|error| missing(&format!("what the tap has seen ({error})")))?;
        if tapped.gaps > 0 {
            let what = format!("{} connections' packets, of the tap", tapped.gaps);
            return Err(missing(&what));
        }
        Ok(tapped.named)
    }
}
