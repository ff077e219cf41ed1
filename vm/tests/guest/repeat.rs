//! Virtual time: the same bytes each time.

use luc_vm::{Mode, Vm};

use crate::common::{STABLE, kernel_and_lagdisk, luc, succeed};

const SCRIPT: &str = "
set -e
id=11111111-1111-1111-1111-111111111111
insmod lagdisk.ko size_mib=256 write_ns=20000 flush_ns=2000000
mke2fs -q -t ext4 -U $id -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed=$id /dev/lagdisk0
mount -t ext4 /dev/lagdisk0 /mnt
luc bench metarates --dir /mnt --threads 4 --seconds 1 --file-size 1k --json
grep . /sys/block/lagdisk0/lagdisk/{writes,flushes}
umount /mnt
cat /proc/interrupts /proc/uptime
sha256sum /dev/lagdisk0
";

#[test]
fn virtual_time_repeats_to_the_byte() {
    let (Some((kernel, lagdisk)), Some(luc)) = (kernel_and_lagdisk(STABLE), luc()) else {
        return;
    };
    let vm = Vm::new(&kernel)
        .mode(Mode::VirtualTime { shift: 0 })
        .program("mke2fs")
        .program(luc)
        .file("/root/lagdisk.ko", lagdisk)
        .script(SCRIPT);
    let (first, second) = (succeed(&vm), succeed(&vm));
    assert!(first.text().contains("fsync"), "{}", first.text());
    assert_eq!(first.text(), second.text());
}
