//! The probe's end of the harvester's Unix socket: one byte wakes it. Nothing here blocks or raises
//! SIGPIPE; what fails is ignored, because the harvester also wakes by itself.
//!
//! The descriptor keeps its number for the life of the process, and before a byte is sent it is
//! checked to be still the socket it was: a program that closes descriptors it does not know may
//! have got the number back for a file of its own.
#![allow(unsafe_code)] // System calls that the standard library does not have, or not stably.

use core::mem::{size_of, zeroed};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

pub(crate) struct WakeSocket {
    number: AtomicI32,
    inode: AtomicU64,
}

impl WakeSocket {
    pub(crate) const fn new() -> Self {
        Self {
            number: AtomicI32::new(-1),
            inode: AtomicU64::new(0),
        }
    }

    /// Connects, in place of the connection before. With `hand_over` the first byte carries that
    /// descriptor. Calls of this are not to overlap. False: it did not work.
    pub(crate) fn connect(&self, path: &[u8], hand_over: Option<RawFd>) -> bool {
        let Some(fresh) = connected(path) else {
            return false;
        };
        if hand_over.is_some_and(|descriptor| !send_descriptor(fresh.as_raw_fd(), descriptor)) {
            return false;
        }
        let number = self.number.load(Ordering::Relaxed);
        let number = if number >= 0 && self.is_ours(number) {
            // SAFETY: the number is a socket of ours, just checked; the new one takes its place.
            if unsafe { libc::dup3(fresh.as_raw_fd(), number, libc::O_CLOEXEC) } < 0 {
                return false;
            }
            number
        } else {
            fresh.into_raw_fd()
        };
        let Some(inode) = socket_inode(number) else {
            return false;
        };
        self.inode.store(inode, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
        true
    }

    /// False: there is no connection.
    pub(crate) fn send_byte(&self) -> bool {
        let number = self.number.load(Ordering::Acquire);
        if number < 0 || !self.is_ours(number) {
            return false;
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: reads one byte of a constant.
        let sent = unsafe { libc::send(number, b"1".as_ptr().cast(), 1, flags) };
        // EAGAIN: it has bytes enough to wake by.
        sent == 1 || matches!(last_error(), libc::EAGAIN | libc::EINTR)
    }

    pub(crate) fn close_in_child(&self) {
        let number = self.number.swap(-1, Ordering::Relaxed);
        if number >= 0 && self.is_ours(number) {
            // SAFETY: a descriptor of ours, just checked.
            unsafe { libc::close(number) };
        }
    }

    fn is_ours(&self, number: RawFd) -> bool {
        socket_inode(number) == Some(self.inode.load(Ordering::Relaxed))
    }
}

fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// None: not a socket.
fn socket_inode(number: RawFd) -> Option<u64> {
    // SAFETY: zeros are a value of the struct; fstat writes to it only.
    let (result, status) = unsafe {
        let mut status: libc::stat = zeroed();
        (libc::fstat(number, &mut status), status)
    };
    (result == 0 && status.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(status.st_ino)
}

fn connected(path: &[u8]) -> Option<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: makes a descriptor, which is ours then.
    let socket = unsafe {
        let number = libc::socket(libc::AF_UNIX, kind, 0);
        (number >= 0).then(|| OwnedFd::from_raw_fd(number))?
    };
    // SAFETY: zeros are a value of the struct.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return None;
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address is a whole one with its length.
    let result = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            core::ptr::from_ref(&address).cast(),
            length,
        )
    };
    (result == 0 && peer_is_trusted(socket.as_raw_fd())).then_some(socket)
}

fn peer_is_trusted(socket: RawFd) -> bool {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: writes at most `length` bytes to `peer`.
    let result = unsafe {
        let peer = core::ptr::from_mut(&mut peer).cast();
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer,
            &mut length,
        )
    };
    // SAFETY: it has no condition.
    result == 0 && (peer.uid == unsafe { libc::geteuid() } || peer.uid == 0)
}

/// A control message with one descriptor, aligned as the kernel wants it.
#[repr(C)]
struct DescriptorMessage {
    header: libc::cmsghdr,
    descriptor: RawFd,
}

fn send_descriptor(socket: RawFd, descriptor: RawFd) -> bool {
    let mut byte = *b"1";
    let mut data = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: zeros are values of both structs; musl has padding fields that have no names here.
    let (mut control, mut message): (DescriptorMessage, libc::msghdr) = unsafe { zeroed() };
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: arithmetic only.
    control.header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<RawFd>() as u32) } as _;
    control.descriptor = descriptor;
    message.msg_iov = &mut data;
    message.msg_iovlen = 1;
    message.msg_control = core::ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<DescriptorMessage>() as _;
    // SAFETY: everything that the message points to lives until the call returns.
    unsafe { libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) == 1 }
}
