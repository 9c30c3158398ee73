//! The file behind the shared memory, and what else the kernel does for it.
#![allow(unsafe_code)] // System calls that the standard library does not have.

use core::mem::zeroed;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::layout::{GlobalHeader, AREA_NAME};

/// A memory file, readable by its owner only, that cannot become shorter under who maps it.
pub(crate) fn create() -> Option<RawFd> {
    // SAFETY: the name is a C string; the descriptor is ours.
    let file = unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let number = libc::memfd_create(AREA_NAME.as_ptr(), flags);
        (number >= 0).then(|| OwnedFd::from_raw_fd(number))?
    };
    let number = file.into_raw_fd();
    // SAFETY: both calls change the file that was just made.
    let restricted = unsafe {
        libc::fchmod(number, 0o600) == 0
            && libc::fcntl(number, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) == 0
    };
    if !restricted {
        close(number);
        return None;
    }
    Some(number)
}

/// Opens an existing file that may be written to; a regular one of this user or of root, never
/// through a link. With its length, which is a header's at least.
pub(crate) fn open(path: &OsStr) -> Option<(RawFd, u64)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK; // a named pipe must not stop us
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    let status = file.metadata().ok()?;
    // SAFETY: it has no condition.
    let own = status.uid() == unsafe { libc::geteuid() } || status.uid() == 0;
    let acceptable = status.is_file() && own && status.len() >= size_of::<GlobalHeader>() as u64;
    acceptable.then(|| (file.into_raw_fd(), status.len()))
}

pub(crate) fn close(number: RawFd) {
    if number >= 0 {
        // SAFETY: callers pass a descriptor that they own and use no more.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

pub(crate) fn grow(number: RawFd, bytes: u64) -> bool {
    // SAFETY: zeros are a value of the struct; getrlimit writes to it only.
    let (known, limit) = unsafe {
        let mut limit: libc::rlimit = zeroed();
        (
            libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0,
            limit.rlim_cur,
        )
    };
    // Past this limit ftruncate is not only refused: it raises SIGXFSZ.
    if known && limit != libc::RLIM_INFINITY && bytes > limit {
        return false;
    }
    // SAFETY: changes the length of a file of ours.
    unsafe { libc::ftruncate(number, bytes as libc::off_t) == 0 }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: it has no condition.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// False: membarrier is not to be had here.
pub(crate) fn register_for_barriers() -> bool {
    const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
    // SAFETY: it changes nothing in memory.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

pub(crate) fn watch_forks(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> bool {
    // SAFETY: the functions live as long as the program; those of a library that could be unloaded
    // are taken back by libc then.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 }
}
