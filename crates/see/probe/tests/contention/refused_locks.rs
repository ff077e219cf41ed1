//! File locks that are refused, and waits for them.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::Duration;

use luc_probe::disk_contention::RefusedLock;
use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use super::test_bed::ContentionBed;

const TRY: FlockOperation = FlockOperation::NonBlockingLockExclusive;

/// Returns the refused locks of this file.
fn refused(place: &ContentionBed, file: &File) -> Vec<RefusedLock> {
    let inode = file.metadata().expect("about it").ino();
    let mut locks = place.contention.refused_locks(0);
    locks.retain(|lock| lock.inode == inode && lock.process == std::process::id());
    locks
}

#[test]
fn who_is_refused_again_is_remembered_until_it_takes_the_lock() {
    let Some(place) = ContentionBed::new() else {
        return;
    };
    let Some(before) = place.contention.lock_news() else {
        panic!("waits for file locks are not seen here");
    };
    let file = NamedTempFile::new().expect("a file");
    let (holder, other) = (file.reopen().expect("open"), file.reopen().expect("open"));
    flock(&holder, TRY).expect("locked");
    flock(&other, TRY).expect_err("refused");
    assert_eq!(refused(&place, &other), []);
    flock(&other, TRY).expect_err("refused");
    let locks = refused(&place, &other);
    assert_eq!(locks.len(), 1);
    assert!(locks[0].is_flock && locks[0].last_ns > 0, "{locks:?}");
    assert_eq!((locks[0].refusals, locks[0].takings), (2, 0));
    let news = place.contention.lock_news().expect("as before");
    assert!(news.refusals > before.refusals);
    drop(holder);
    flock(&other, TRY).expect("free");
    assert_eq!(refused(&place, &other), []);
    let again = file.reopen().expect("open");
    flock(&again, TRY).expect_err("refused");
    flock(&again, TRY).expect_err("refused");
    assert_eq!(refused(&place, &again)[0].takings, 1);
}

#[test]
fn locks_of_fcntl_are_told_by_their_bytes() {
    let Some(place) = ContentionBed::new() else {
        return;
    };
    let file = NamedTempFile::new().expect("a file");
    let (holder, other) = (file.reopen().expect("open"), file.reopen().expect("open"));
    let try_range = |file: &File, kind: i32, first: i64| {
        // SAFETY: plain integers, and zero is a valid value.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = kind as i16;
        (range.l_start, range.l_len) = (first, 10);
        // SAFETY: the file is open, and the range lives as long as the call.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) == 0 }
    };
    assert!(try_range(&holder, libc::F_WRLCK, 100));
    assert!(!try_range(&other, libc::F_WRLCK, 105));
    assert!(!try_range(&other, libc::F_WRLCK, 105));
    // Neither other bytes nor giving up what it has is taking the lock.
    assert!(try_range(&other, libc::F_WRLCK, 200));
    assert!(try_range(&other, libc::F_UNLCK, 105));
    let locks = refused(&place, &other);
    assert_eq!(locks.len(), 1);
    assert!(!locks[0].is_flock);
    assert_eq!((locks[0].first_byte, locks[0].last_byte), (105, 114));
    assert_eq!((locks[0].refusals, locks[0].takings), (2, 0));
}

#[test]
fn a_wait_is_counted_and_told() {
    let Some(mut place) = ContentionBed::new() else {
        return;
    };
    let file = NamedTempFile::new().expect("a file");
    let (holder, other) = (file.reopen().expect("open"), file.reopen().expect("open"));
    flock(&holder, TRY).expect("locked");
    let before = place.contention.lock_news().expect("seen");
    place.contention.notify_lock();
    let waiter = thread::spawn(move || flock(&other, FlockOperation::LockExclusive));
    while place.contention.lock_news().expect("seen").waits == before.waits {
        thread::sleep(Duration::from_millis(1));
    }
    let fds = &mut [rustix::event::PollFd::from_borrowed_fd(
        place.contention.notifications(),
        rustix::event::PollFlags::IN,
    )];
    assert_eq!(rustix::event::poll(fds, None).expect("poll"), 1);
    // No watched task's.
    assert_eq!(place.contention.take_notifications(), []);
    drop(holder);
    waiter.join().expect("ends").expect("locked");
}
