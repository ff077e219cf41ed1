//! Virtual machines for `luc.ko` and for experiments in virtual time.
//!
//! A [`Vm`] boots the distribution's own kernel ([`Kernel`]) in QEMU, without KVM and without a disk: an initramfs
//! holds busybox, kernel modules, the programs asked for with their libraries, and the script to run. A guest of
//! 64-bit Arm has libraries of Debian's packages ([`Kernel::arm64`]). An [`Outcome`] has the script's output and exit
//! status, the files that it leaves in `$OUT`, and the kernel's log.
//!
//! Nothing is left behind: what a run needs is in memory files, and QEMU dies with its caller.
//!
//! # Several processors in virtual time
//!
//! `qemu` finds the best of three QEMUs. The first is built with parallel processors (`make qemu`). The second is
//! newer than the system's and unpacked beside it (`make setup-vm`). The third is the system's, if it is 8.1 or
//! later. `machine` is its command line. An unmodified QEMU lets processors take turns. It is exact only where its
//! main thread stays out while processors execute; `build.rs` compiles `turns.c`, which is preloaded for that.
//! `tests/guest/repeat.rs` boots two guests each way and compares bytes.
//!
//! # Guests of 64-bit Arm
//!
//! `scripts/build-arm64.sh` builds `luc` for the other architecture. `architecture` has what differs between
//! machines, [`Kernel::arm64`] the kernels that `scripts/setup-arm64.sh` fetches. `programs::Root` says where a
//! guest's programs come from: this machine, or a folder of the other architecture's packages.

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
