//! Kernels for the guests of tests.

use luc_vm::{Error, Kernel};

use crate::{skipped, unless_missing};

/// The kernel of this version, fetched if the cache does not have it; `None` after saying why a test is skipped, where
/// QEMU or the kernel cannot be had.
///
/// # Panics
/// Where a kernel is there but damaged, and as [`skipped!`].
pub fn kernel(version: &str) -> Option<Kernel> {
    unless_missing(Kernel::bootable(version), Error::is_unavailable)
}

/// The same, where modules for it can be built.
///
/// # Panics
/// As [`kernel`].
pub fn kernel_with_headers(version: &str) -> Option<Kernel> {
    let kernel = kernel(version)?;
    if kernel.headers().is_none() {
        skipped!("{}", Error::NoHeaders(kernel.release().to_owned()));
        return None;
    }
    Some(kernel)
}
