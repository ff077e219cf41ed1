//! Which thread a signal comes to.

use std::mem::MaybeUninit;

/// Leaves all signals to the other threads. A thread beside one that waits for signals has to: a signal that only
/// the waiting one blocks is delivered to any other, and ends the process.
pub fn block_signals() {
    // SAFETY: the set is initialized by sigfillset before it is used; only this thread's mask changes.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}
