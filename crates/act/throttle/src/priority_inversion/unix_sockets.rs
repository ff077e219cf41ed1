//! Reads from the kernel which Unix sockets are connected, by netlink (`sock_diag(7)`).

use std::collections::BTreeMap;
use std::io;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

// Constants of <linux/sock_diag.h>, <linux/netlink.h> and <linux/unix_diag.h>. DUMP is NLM_F_REQUEST and NLM_F_DUMP.

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const DUMP: u16 = 0x301;
const AF_UNIX: u8 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_PEER: u16 = 2;
/// Size of a netlink header, and of the description of a socket before its attributes, bytes.
const HEADER_BYTES: usize = 16;
const SOCKET_BYTES: usize = 16;
const MAX_ANSWERS: usize = 4096;

/// Inodes of each connected socket and its peer. Empty if the kernel does not support this.
pub(super) fn read_peers() -> BTreeMap<u64, u64> {
    request_peers().unwrap_or_default()
}

fn request_peers() -> io::Result<BTreeMap<u64, u64>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::DGRAM;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG))?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut peers = BTreeMap::new();
    let mut answer = vec![0; 1 << 16];
    for _ in 0..MAX_ANSWERS {
        // The kernel has queued each answer before the previous call returned.
        let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
        if length == 0 || parse_answer(&answer[..length], &mut peers) {
            break;
        }
    }
    Ok(peers)
}

fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(40_u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([AF_UNIX, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(UDIAG_SHOW_PEER.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Reads the messages of an answer. Returns whether it was the last answer.
fn parse_answer(mut bytes: &[u8], peers: &mut BTreeMap<u64, u64>) -> bool {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        if kind == NLMSG_DONE {
            return true;
        }
        let Some(message) = bytes.get(HEADER_BYTES..length).filter(|_| kind == SOCK_DIAG_BY_FAMILY)
        else {
            // An error.
            return true;
        };
        if let Some((socket, peer)) = peer_of(message) {
            peers.insert(socket.into(), peer.into());
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

fn peer_of(message: &[u8]) -> Option<(u32, u32)> {
    let socket = u32_at(message, 4)?;
    let mut attributes = message.get(SOCKET_BYTES..)?;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        if u16_at(attributes, 2)? == UNIX_DIAG_PEER {
            return Some((socket, u32_at(attributes, 4)?));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_told() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let inode = |end: UnixStream| {
            let file = File::from(OwnedFd::from(end));
            let inode = file.metadata().expect("about it").ino();
            (file, inode)
        };
        let ((_one, a), (_other, b)) = (inode(one), inode(other));
        let peers = read_peers();
        if peers.is_empty() {
            luc_testkit::skipped!("this kernel does not tell the peers of sockets");
            return;
        }
        assert_eq!(peers.get(&a), Some(&b));
        assert_eq!(peers.get(&b), Some(&a));
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes: Vec<u8>, length: u8) {
            let mut peers = BTreeMap::new();
            parse_answer(&bytes, &mut peers);
            let mut message = u32::from(length).to_ne_bytes().to_vec();
            message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            message.extend(bytes);
            parse_answer(&message, &mut peers);
        }
    }
}
