//! Kernels for the guests of tests.

use luc_vm::{Error, GuestKernel};

use crate::{skipped, unless_missing};

/// Finds the kernel of this version, and fetches it if the cache does not have it. Returns `None` after marking the
/// test as skipped where QEMU or the kernel is not available.
///
/// # Panics
/// Where a kernel is there but damaged, and as [`skipped!`].
pub fn kernel(version: &str) -> Option<GuestKernel> {
    unless_missing(GuestKernel::bootable(version), Error::is_unavailable)
}

/// As [`kernel`], for kernels that modules can be built for.
///
/// # Panics
/// As [`kernel`].
pub fn kernel_with_headers(version: &str) -> Option<GuestKernel> {
    let kernel = kernel(version)?;
    if kernel.headers().is_none() {
        skipped!("{}", Error::NoHeaders(kernel.release().to_owned()));
        return None;
    }
    Some(kernel)
}
