//! The keeper's end of a container runtime's hand-over (OCI runtime specification, "The Container Process State"). The
//! runtime connects, sends the container's state as JSON with the filter's listener, and waits for no answer.
//!
//! So the keeper itself takes the connection: as soon as it leaves the socket's queue, the listener has a holder that
//! outlives the supervisor. Nothing here allocates.

use std::os::fd::RawFd;

use crate::pass_descriptor;
use crate::seccomp_unotify::{self, polled};

/// Time that a connected runtime may take to send its listener.
const LISTENER_TIMEOUT_MS: i32 = 5000;

/// Maximum number of descriptors taken from a message.
const MAX_DESCRIPTORS: usize = 8;

/// Room for that many in a control message.
// SAFETY: arithmetic on a constant.
const CONTROL_BYTES: usize =
    unsafe { libc::CMSG_SPACE((MAX_DESCRIPTORS * size_of::<RawFd>()) as u32) } as usize;

/// A control message's room, aligned as its header.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    bytes: [u8; CONTROL_BYTES],
}

/// Waits at a listening socket until root's container runtime hands a listener over. Then passes the listener on to
/// the supervisor.
///
/// The listener goes with the first byte of the state; then the connection goes, from which the rest is read. `control`
/// leads to the supervisor, and `supervisor` is its pidfd. `None` if the supervisor has ended before.
pub(super) fn adopt(socket: RawFd, control: RawFd, supervisor: RawFd) -> Option<RawFd> {
    loop {
        let connection = accept(socket, control, supervisor)?;
        if let Some((byte, listener)) = receive(connection) {
            // Should the supervisor be gone, this keeper serves alone.
            let _ = pass_descriptor::send(control, i32::from(byte), Some(listener));
            let _ = pass_descriptor::send(control, 0, Some(connection));
            close(connection);
            // Its next keeper waits there.
            close(socket);
            return Some(listener);
        }
        close(connection);
    }
}

/// Accepts the next connection of a process of root's. `None` if the supervisor has ended.
fn accept(socket: RawFd, control: RawFd, supervisor: RawFd) -> Option<RawFd> {
    loop {
        let mut all =
            [polled(socket, libc::POLLIN), polled(control, 0), polled(supervisor, libc::POLLIN)];
        // SAFETY: three `pollfd`s, valid for writes.
        unsafe { libc::poll(all.as_mut_ptr(), 3, -1) };
        let [of_socket, of_control, of_supervisor] = all;
        if of_control.revents != 0 || of_supervisor.revents != 0 {
            return None;
        }
        if of_socket.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            return None;
        }
        if of_socket.revents == 0 {
            continue;
        }
        // SAFETY: no address is asked for. The socket does not block.
        let connection = unsafe {
            libc::accept4(socket, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC)
        };
        if connection < 0 {
            continue;
        }
        if is_root(connection) {
            return Some(connection);
        }
        close(connection);
    }
}

/// Whether the process at the other end was root's when it connected.
fn is_root(connection: RawFd) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes as much as `length` says at most.
    let result = unsafe {
        libc::getsockopt(
            connection,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    result == 0 && peer.uid == 0
}

/// Receives the first byte of a message and the listener that came with it. Closes all else that came with it.
fn receive(connection: RawFd) -> Option<(u8, RawFd)> {
    let mut ready = polled(connection, libc::POLLIN);
    // SAFETY: one `pollfd`, valid for writes.
    unsafe { libc::poll(&raw mut ready, 1, LISTENER_TIMEOUT_MS) };
    let mut byte = 0_u8;
    let mut control = Control { bytes: [0; CONTROL_BYTES] };
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: `message` and what it points to are valid for writes.
    let received = unsafe { libc::recvmsg(connection, &raw mut message, flags) };
    if received < 1 {
        return None;
    }
    // SAFETY: the kernel has filled `control` as `msg_controllen` says.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() }
        .filter(|header| header.cmsg_level == libc::SOL_SOCKET)
        .filter(|header| header.cmsg_type == libc::SCM_RIGHTS)?;
    // SAFETY: arithmetic on a constant.
    let head = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = (header.cmsg_len as usize).saturating_sub(head) / size_of::<RawFd>();
    // SAFETY: the message's data begins there.
    let first = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
    let mut listener = None;
    for index in 0..count.min(MAX_DESCRIPTORS) {
        // SAFETY: `count` descriptors are there, each now this process' own.
        let fd = unsafe { first.add(index).read_unaligned() };
        if listener.is_none() && seccomp_unotify::is_listener(fd) {
            listener = Some(fd);
        } else {
            close(fd);
        }
    }
    Some((byte, listener?))
}

fn close(fd: RawFd) {
    // SAFETY: this process' own descriptor, not used again.
    unsafe { libc::close(fd) };
}
