//! The filter of system calls: chooses the notified ones, for every architecture that the kernel runs programs of.
//!
//! `msync` is not among them: its file has no descriptor, so its data cannot be written early. A call that is held
//! without an early write does harm. The filter looks at numbers only, never at arguments. So the kernel remembers the
//! numbers that always pass (its cache of actions, Linux 5.11).

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use luc_gate::figures::GatedCallKind;

/// Numbers of the notified calls on one architecture.
struct Numbers {
    architecture: u32,
    fsync: u32,
    fdatasync: u32,
}

/// Names of the notified calls, as libseccomp and profiles of containers write them.
pub const NAMES: [&str; 2] = ["fsync", "fdatasync"];

/// The bit of x32's numbers, which share an architecture with x86-64's.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const NUMBERS: &[Numbers] = &[
    numbers(0xc000_003e, 74, 75),
    numbers(0xc000_003e, X32 | 74, X32 | 75),
    // i386
    numbers(0x4000_0003, 118, 148),
];

#[cfg(target_arch = "aarch64")]
const NUMBERS: &[Numbers] = &[
    numbers(0xc000_00b7, 82, 83),
    // 32-bit ARM
    numbers(0x4000_0028, 118, 148),
];

#[cfg(target_arch = "riscv64")]
const NUMBERS: &[Numbers] = &[numbers(0xc000_00f3, 82, 83)];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const NUMBERS: &[Numbers] = &[];

const fn numbers(architecture: u32, fsync: u32, fdatasync: u32) -> Numbers {
    Numbers { architecture, fsync, fdatasync }
}

/// Offsets of `nr` and `arch` in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// The call of this number and architecture; `None` if the filter does not notify of it.
#[must_use]
pub fn kind_of(architecture: u32, number: u32) -> Option<GatedCallKind> {
    NUMBERS.iter().filter(|known| known.architecture == architecture).find_map(|known| match number
    {
        _ if number == known.fsync => Some(GatedCallKind::Fsync),
        _ if number == known.fdatasync => Some(GatedCallKind::Fdatasync),
        _ => None,
    })
}

/// Whether luc knows the numbers of this architecture.
#[must_use]
pub fn is_known() -> bool {
    !NUMBERS.is_empty()
}

/// The filter as a program for the kernel.
#[must_use]
pub fn program() -> Vec<libc::sock_filter> {
    // Per entry: load the architecture, go on if it is this one, load the number, notify of either.
    let mut program = Vec::new();
    for known in NUMBERS {
        program.extend([
            statement(BPF_LD | BPF_W | BPF_ABS, ARCHITECTURE_AT),
            jump(known.architecture, 0, 4),
            statement(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT),
            jump(known.fsync, 1, 0),
            jump(known.fdatasync, 0, 1),
            statement(BPF_RET | BPF_K, libc::SECCOMP_RET_USER_NOTIF),
        ]);
    }
    program.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW));
    program
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips `equal` instructions if the number loaded last is `k`, else `other`.
fn jump(k: u32, equal: u8, other: u8) -> libc::sock_filter {
    libc::sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: equal, jf: other, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's decision on a call, by a machine of the four instructions that it is made of.
    fn run(architecture: u32, number: u32) -> u32 {
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let instruction = program[at];
            at += 1;
            match u32::from(instruction.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    loaded = [number, architecture][instruction.k as usize / 4];
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    let skipped =
                        if loaded == instruction.k { instruction.jt } else { instruction.jf };
                    at += usize::from(skipped);
                }
                _ => return instruction.k,
            }
        }
    }

    #[test]
    fn exactly_the_known_calls_are_notified() {
        for known in NUMBERS {
            for number in 0..500 {
                for number in [number, 0x4000_0000 | number] {
                    let notified = run(known.architecture, number) == libc::SECCOMP_RET_USER_NOTIF;
                    let kind = kind_of(known.architecture, number);
                    assert_eq!(notified, kind.is_some(), "{number:#x}");
                }
            }
            assert_eq!(kind_of(known.architecture, known.fsync), Some(GatedCallKind::Fsync));
        }
        assert_eq!(run(0x1234, 74), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
    fn this_architecture_s_own_numbers_are_the_library_s() {
        let own = &NUMBERS[0];
        assert_eq!(
            (i64::from(own.fsync), i64::from(own.fdatasync)),
            (libc::SYS_fsync, libc::SYS_fdatasync)
        );
    }
}
