//! Latencies of `lagdisk.ko`, and its contents after a power cut.

use std::collections::BTreeMap;

use luc_vm::{GuestTime, VirtualMachine};

use crate::guest_fixtures::{BACKPORT, STABLE, kernel_and_lagdisk, succeed};

/// Prints `name value` for the reads, writes and flushes of `/sys/block/lagdisk0/stat`: their number, and their sum in
/// milliseconds as measured by the block layer.
const LATENCIES: &str = "
set -e
insmod lagdisk.ko size_mib=64 read_ns=250000 write_ns=100000 write_ns_per_kib=25000 flush_ns=6000000
dd if=/dev/lagdisk0 of=/dev/null bs=4k count=1000 iflag=direct 2>/dev/null
dd if=/dev/zero of=/dev/lagdisk0 bs=4k count=1000 oflag=direct 2>/dev/null
for _ in $(seq 20); do dd if=/dev/zero of=/dev/lagdisk0 bs=4k count=1 oflag=direct conv=fsync 2>/dev/null; done
set -- $(cat /sys/block/lagdisk0/stat)
echo reads $1 read_ms $4 writes $5 write_ms $8 flushes ${16} flush_ms ${17}
";

#[test]
fn latencies_are_exact_in_virtual_time() {
    let Some((kernel, lagdisk)) = kernel_and_lagdisk(STABLE) else {
        return;
    };
    let vm = VirtualMachine::new(&kernel)
        .mode(GuestTime::VirtualTime { shift: 0, processors: 1 })
        .program("dd")
        .file("/root/lagdisk.ko", lagdisk)
        .script(LATENCIES);
    let text = succeed(&vm).text();
    let words: Vec<&str> = text.split_whitespace().collect();
    let values: BTreeMap<&str, u64> =
        words.chunks_exact(2).map(|pair| (pair[0], pair[1].parse().expect("a number"))).collect();
    // Adding a disk reads its first blocks.
    assert!((1000..1020).contains(&values["reads"]), "{text}");
    // A flush comes as an empty write, which the block layer counts as well.
    assert_eq!((values["writes"], values["flushes"]), (1040, 20), "{text}");
    let expected_us = [
        ("reads", "read_ms", values["reads"] * 250),
        ("writes", "write_ms", 1020 * 200 + 20 * 6000),
        ("flushes", "flush_ms", 20 * 6000),
    ];
    for (count, sum_ms, expected_us) in expected_us {
        let measured_us = values[sum_ms] * 1000;
        // The block layer's own instructions come on top, and it rounds down to milliseconds.
        let exact = expected_us.saturating_sub(1000)..=expected_us + 10 * values[count] + 1000;
        assert!(
            exact.contains(&measured_us),
            "{count}: {measured_us} us for {expected_us} us: {text}"
        );
    }
}

/// Block N of 4 KiB in `new` holds N + 1 in every byte, in `other` 200. Blocks 0 to 15 are flushed, and 16 to 31 are
/// not. Blocks 8 to 11 are then written again as `other` and not flushed.
const CUT: &str = "
set -e
put() { dd if=$1 of=/dev/lagdisk0 bs=4k skip=$2 seek=$2 count=$3 oflag=direct conv=notrunc$4 2>/dev/null; }
get() { dd if=/dev/lagdisk0 of=$OUT/$1 bs=4k count=32 iflag=direct 2>/dev/null; }
disk=/sys/block/lagdisk0/lagdisk
fill() {
	echo 1 >$disk/wipe
	put new 0 16 ,fsync
	put new 16 16
	put other 8 4
}
insmod lagdisk.ko size_mib=64
fill
cat $disk/dirty_bytes
get before
echo 1 >$disk/power_cut
if get nothing; then echo read; fi
if put new 0 1; then echo written; fi
[ $(cat $disk/failed) -ge 2 ] && echo failed
echo 1 >$disk/restore
cat $disk/dirty_bytes
get after
for name in kept again; do
	fill
	echo keep 50 7 >$disk/power_cut
	echo 1 >$disk/restore
	get $name
	cat $disk/kept_sectors $disk/lost_sectors >$OUT/counts
done
if echo keep 101 7 >$disk/power_cut; then echo taken; fi 2>/dev/null
if echo nonsense >$disk/power_cut; then echo taken; fi 2>/dev/null
rmmod lagdisk
";

#[test]
fn a_power_cut_loses_what_was_not_flushed_and_nothing_else() {
    for version in [STABLE, BACKPORT] {
        let Some((kernel, lagdisk)) = kernel_and_lagdisk(version) else {
            continue;
        };
        let new: Vec<u8> = (1..=32_u8).flat_map(|value| [value; 4096]).collect();
        let vm = VirtualMachine::new(&kernel)
            .program("dd")
            .file("/root/lagdisk.ko", lagdisk)
            .content("/root/new", new)
            .content("/root/other", [200; 32 * 4096])
            .script(CUT);
        let outcome = succeed(&vm);
        assert_eq!(
            outcome.text(),
            format!("{}\nfailed\n0\n", 20 * 4096),
            "the read and the write fail"
        );
        // A block's sectors, each by the one value that fills it.
        let sectors = |name: &str| -> Vec<Vec<u8>> {
            let value = |sector: &[u8]| {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is torn");
                sector[0]
            };
            outcome.files[name]
                .chunks(4096)
                .map(|block| block.chunks(512).map(value).collect())
                .collect()
        };
        let (before, after, kept) = (sectors("before"), sectors("after"), sectors("kept"));
        let mut new_sectors = 0;
        for block in 0..32_u8 {
            let (flushed, newest) = match block {
                8..=11 => (block + 1, 200),
                0..=15 => (block + 1, block + 1),
                _ => (0, block + 1),
            };
            let index = usize::from(block);
            assert_eq!(before[index], [newest; 8], "block {block} before the cut");
            assert_eq!(after[index], [flushed; 8], "block {block} after it");
            assert!(
                kept[index].iter().all(|sector| [flushed, newest].contains(sector)),
                "block {block}: {:?}",
                kept[index]
            );
            if newest != flushed {
                new_sectors += kept[index].iter().filter(|sector| **sector == newest).count();
            }
        }
        assert!((40..120).contains(&new_sectors), "half of 160 dirty sectors: {new_sectors}");
        assert_eq!(kept, sectors("again"), "the seed decides");
        let counts = format!("{new_sectors}\n{}\n", 160 - new_sectors);
        assert_eq!(outcome.file("counts"), Some(counts), "kept and lost");
    }
}
