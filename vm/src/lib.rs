//! Virtual machines for `luc.ko` and for experiments in virtual time.
//!
//! A [`Vm`] boots the distribution's own kernel ([`Kernel`]) in QEMU, without KVM and without a disk:
//! an initramfs holds busybox, kernel modules, the programs asked for with their libraries, and the
//! script to run. A guest of 64-bit Arm has libraries of Debian's packages ([`Kernel::arm64`]). What the script prints, the files that it leaves in `$OUT`, its exit status and the
//! kernel's log come back as an [`Outcome`].
//!
//! Nothing is left behind: what a run needs is in memory files, and QEMU dies with its caller.
mod architecture;
mod cable;
mod cache;
mod cpio;
mod error;
mod guest;
mod initramfs;
mod kernel;
mod machine;
mod mode;
mod monitor;
mod outcome;
mod programs;
mod qemu;
mod shared;
mod tools;
mod vm;

pub use cable::{CableEnd, cable};
pub use error::Error;
pub use guest::Guest;
pub use kernel::Kernel;
pub use mode::Mode;
pub use outcome::Outcome;
pub use qemu::Qemu;
pub use shared::SharedMemory;
pub use tools::missing;
pub use vm::Vm;
