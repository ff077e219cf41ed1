//! Virtual machines for `luc.ko` and for experiments in virtual time.
//!
//! A [`VirtualMachine`] boots the distribution's own kernel ([`GuestKernel`]) in QEMU, without KVM and without a disk:
//! an initramfs holds busybox, kernel modules, the programs asked for with their libraries, and the script to run. A
//! guest of 64-bit Arm has libraries of Debian's packages ([`GuestKernel::arm64`]). An [`GuestOutcome`] has the
//! script's output and exit status, the files that it leaves in `$OUT`, and the kernel's log.
//!
//! Nothing is left behind: what a run needs is in memory files, and QEMU dies with its caller.
//!
//! # Several processors in virtual time
//!
//! `qemu` finds the best of three QEMUs. The first is built with parallel processors (`make qemu`). The second is newer
//! than the system's and unpacked beside it (`make setup-vm`). The third is the system's, if it is 8.1 or later.
//! `qemu_command_line` is its command line. An unmodified QEMU lets processors take turns. It is exact only where its
//! main thread stays out while processors execute; `build.rs` compiles `qemu_turns.c`, which is preloaded for that.
//! `tests/guest/repeatable_time.rs` boots two guests each way and compares bytes.
//!
//! # Guests of 64-bit Arm
//!
//! `scripts/build-arm64.sh` builds `luc` for the other architecture. `architecture` has what differs between machines,
//! [`GuestKernel::arm64`] the kernels that `scripts/setup-arm64.sh` fetches. `guest_programs::ProgramRoot` says where a
//! guest's programs come from: this machine, or a folder of the other architecture's packages.

mod architecture;
mod cache_folder;
mod cpio;
mod error;
mod guest_kernel;
mod guest_network;
mod guest_outcome;
mod guest_programs;
mod guest_time;
mod host_tools;
mod initramfs;
mod qemu;
mod qemu_command_line;
mod qemu_monitor;
mod running_guest;
mod shared_memory;
mod virtual_machine;

pub use error::Error;
pub use guest_kernel::GuestKernel;
pub use guest_network::{CableEnd, cable};
pub use guest_outcome::GuestOutcome;
pub use guest_time::GuestTime;
pub use host_tools::missing;
pub use qemu::Qemu;
pub use running_guest::RunningGuest;
pub use shared_memory::SharedMemory;
pub use virtual_machine::VirtualMachine;
