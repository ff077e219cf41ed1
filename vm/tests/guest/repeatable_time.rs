//! Virtual time: the same bytes each time.

use std::time::Duration;

use luc_vm::{Error, GuestTime, Qemu, VirtualMachine};

use crate::guest_fixtures::{STABLE, kernel_and_lagdisk, luc, succeed};

const SCRIPT: &str = "
set -e
echo processors: $(nproc)
id=11111111-1111-1111-1111-111111111111
insmod lagdisk.ko size_mib=256 write_ns=20000 flush_ns=2000000
mke2fs -q -t ext4 -U $id -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed=$id /dev/lagdisk0
mount -t ext4 /dev/lagdisk0 /mnt
luc bench metarates --dir /mnt --threads 4 --seconds $LENGTH --file-size 1k --json
grep . /sys/block/lagdisk0/lagdisk/{writes,flushes}
umount /mnt
cat /proc/interrupts /proc/uptime
sha256sum /dev/lagdisk0
";

/// Runs a guest twice, with this many processors and a benchmark of `length` seconds, and compares. `None` is the
/// system's QEMU.
fn repeats(qemu: Option<Qemu>, processors: u32, length: &str) {
    let (Some((kernel, lagdisk)), Some(luc)) = (kernel_and_lagdisk(STABLE), luc()) else {
        return;
    };
    let mut vm = VirtualMachine::new(&kernel)
        .mode(GuestTime::VirtualTime { shift: 0, processors })
        .program("mke2fs")
        .program(luc)
        .file("/root/lagdisk.ko", lagdisk)
        .variable("LENGTH", length)
        .timeout(Duration::from_secs(400))
        .script(SCRIPT);
    if let Some(qemu) = qemu {
        vm = vm.qemu(qemu);
    }
    let (first, second) = (succeed(&vm), succeed(&vm));
    let text = first.text();
    assert!(text.contains("fsync"), "{text}");
    let there = text.lines().find(|line| line.starts_with("processors: "));
    assert_eq!(there, Some(&*format!("processors: {processors}")));
    assert_eq!(text, second.text());
}

#[test]
fn virtual_time_repeats_to_the_byte() {
    repeats(None, 1, "1");
}

#[test]
fn several_processors_repeat_to_the_byte() {
    let found = Qemu::for_several();
    if let Some(qemu) = luc_testkit::unless_missing(found, Error::is_unavailable) {
        repeats(Some(qemu), 2, "0.1");
    }
}

#[test]
#[ignore = "takes two minutes: `make test-all`"]
fn processors_that_take_turns_repeat_to_the_byte() {
    // With processors in parallel the best is not one of these.
    let all = Qemu::all_for_several().expect("QEMUs that say their version");
    match all.into_iter().find(|qemu| !qemu.is_parallel()) {
        Some(qemu) => repeats(Some(qemu), 4, "0.1"),
        None => luc_testkit::skipped!("no unmodified QEMU of 8.1 or later: run `make setup-vm`"),
    }
}
