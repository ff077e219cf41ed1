//! Passes a number and a descriptor over a socket. Nothing here allocates, so a forked child may use it.

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use luc_gate::writeback_errors;
use rustix::io::Errno;

/// Room for one descriptor in a control message.
// SAFETY: arithmetic on a constant.
const CONTROL_BYTES: usize = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as usize;

/// A control message's room, aligned as its header.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    bytes: [u8; CONTROL_BYTES],
}

/// Sends `number`, and `fd` if there is one.
///
/// # Errors
/// Those of `sendmsg(2)`.
pub(crate) fn send(socket: RawFd, number: i32, fd: Option<RawFd>) -> Result<(), Errno> {
    let mut bytes = number.to_ne_bytes();
    let mut control = Control { bytes: [0; CONTROL_BYTES] };
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part, &mut control);
    match fd {
        None => message.msg_controllen = 0,
        // SAFETY: `control` has room for a header and one descriptor behind it.
        Some(fd) => unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        },
    }
    // SAFETY: `message` and what it points to are valid for reads.
    let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
    if sent == bytes.len() as isize {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(writeback_errors::errno()))
    }
}

/// Receives a number, and a descriptor if one came with it; sleeps until it comes.
///
/// # Errors
/// Those of `recvmsg(2)`; `EPIPE` if the other end is closed.
pub(crate) fn receive(socket: RawFd) -> Result<(i32, Option<OwnedFd>), Errno> {
    let mut bytes = [0; size_of::<i32>()];
    let mut control = Control { bytes: [0; CONTROL_BYTES] };
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part, &mut control);
    let received = loop {
        // SAFETY: `message` and what it points to are valid for writes.
        let received = unsafe { libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        if received >= 0 || writeback_errors::errno() != libc::EINTR {
            break received;
        }
    };
    if received < 0 {
        return Err(match Errno::from_raw_os_error(writeback_errors::errno()) {
            // Closed by somebody who had not read all.
            Errno::CONNRESET => Errno::PIPE,
            errno => errno,
        });
    }
    // SAFETY: the kernel has filled `control` as `msg_controllen` says.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let fd = header
        .filter(|header| header.cmsg_level == libc::SOL_SOCKET)
        .filter(|header| header.cmsg_type == libc::SCM_RIGHTS)
        // SAFETY: such a message holds a descriptor, which is now this process' own.
        .map(|header| unsafe {
            OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned())
        });
    if received == bytes.len() as isize {
        Ok((i32::from_ne_bytes(bytes), fd))
    } else {
        Err(Errno::PIPE)
    }
}

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(control).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_number_and_a_descriptor_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        send(here.as_raw_fd(), 7, None).unwrap();
        let (number, fd) = receive(there.as_raw_fd()).unwrap();
        assert_eq!((number, fd.is_none()), (7, true));
        let (reader, mut writer) = std::io::pipe().unwrap();
        send(here.as_raw_fd(), -3, Some(reader.as_raw_fd())).unwrap();
        drop(reader);
        let (number, fd) = receive(there.as_raw_fd()).unwrap();
        assert_eq!(number, -3);
        writer.write_all(b"x").unwrap();
        let mut byte = [0];
        rustix::io::read(fd.unwrap(), &mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_closed_end_is_told() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(here);
        assert_eq!(receive(there.as_raw_fd()).unwrap_err(), Errno::PIPE);
        assert!(send(there.as_raw_fd(), 1, None).is_err());
        let (here, there) = UnixStream::pair().unwrap();
        send(there.as_raw_fd(), 1, None).unwrap();
        drop(here);
        assert_eq!(receive(there.as_raw_fd()).unwrap_err(), Errno::PIPE);
    }
}
