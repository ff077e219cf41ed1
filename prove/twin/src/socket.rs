//! The kernel's counters of a TCP socket.

use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd as _;

use luc_twin_truth::Connection;

use crate::error::TwinError;

/// Offsets of fields in `struct tcp_info` of linux/tcp.h, which only grows at its end.
const STATE: usize = 0;
const BYTES_RECEIVED: usize = 128;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;
const INFO_BYTES: usize = BYTES_RETRANS + 8;
/// States of `enum tcp_state` in which the other end has sent its FIN.
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddrV4,
    pub(crate) remote: SocketAddrV4,
}

impl Ends {
    pub(crate) fn of(stream: &TcpStream) -> Result<Self, TwinError> {
        let failed = || TwinError::system("the addresses of a socket");
        Ok(Self {
            local: v4(stream.local_addr().map_err(failed())?)?,
            remote: v4(stream.peer_addr().map_err(failed())?)?,
        })
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4, TwinError> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => {
            Err(TwinError::Option { what: address.to_string(), why: "the twin speaks IPv4".into() })
        }
    }
}

/// Returns the bytes that have gone over a connection, as the kernel counts them (Linux 4.19 and later).
pub(crate) fn counters(stream: &TcpStream) -> Result<Connection, TwinError> {
    let ends = Ends::of(stream)?;
    let mut info = [0_u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: the buffer has `length` bytes, and both pointers are to live locals.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(TwinError::system("TCP_INFO")(std::io::Error::last_os_error()));
    }
    if (length as usize) < INFO_BYTES {
        return Err(TwinError::Unable {
            what: "counting a connection's bytes".into(),
            why: "this kernel's TCP_INFO has no tcpi_bytes_sent: Linux 4.19 has".into(),
        });
    }
    let fin = u64::from([CLOSE_WAIT, LAST_ACK].contains(&info[STATE]));
    let retransmitted_bytes = number(&info, BYTES_RETRANS);
    Ok(Connection {
        local: ends.local,
        remote: ends.remote,
        sent_bytes: number(&info, BYTES_SENT).saturating_sub(retransmitted_bytes),
        received_bytes: number(&info, BYTES_RECEIVED).saturating_sub(fin),
        retransmitted_bytes,
    })
}

fn number(info: &[u8; INFO_BYTES], at: usize) -> u64 {
    let bytes = info[at..].first_chunk().copied().unwrap_or_default();
    u64::from_ne_bytes(bytes)
}
