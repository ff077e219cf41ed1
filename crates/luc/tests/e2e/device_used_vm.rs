//! A device that is part of a RAID or below a device-mapper device: `luc sweep` refuses it. In a guest, whose kernel
//! has both as modules. Skipped, with the reason, where QEMU, a kernel or dmsetup is missing.

use std::path::Path;
use std::time::Duration;

use luc_vm::VirtualMachine;

const LUC: &str = env!("CARGO_BIN_EXE_luc");

/// States of an array that runs (the kernel's `md.rst`): "write-pending" while it notes that it will be written.
const RUNS: [&str; 4] = ["active", "active-idle", "clean", "write-pending"];

/// An array is made by sysfs alone (Documentation/admin-guide/md.rst), which needs no mdadm.
const SCRIPT: &str = r#"
set -e
modprobe loop
modprobe md-mod
modprobe raid1
modprobe dm-mod
for i in 0 1 2; do
	dd if=/dev/zero of=/run/image$i bs=1M count=64 2>/dev/null
	losetup /dev/loop$i /run/image$i
done
echo md_test >/sys/module/md_mod/parameters/new_array
md=/sys/block/md_test/md
echo none >$md/metadata_version
echo 2 >$md/raid_disks
echo raid1 >$md/level
for i in 0 1; do
	echo 7:$i >$md/new_dev
	echo $i >$md/dev-loop$i/slot
done
echo active >$md/array_state
# By one read: the state may change before another, which would go on in the new word.
dd if=$md/array_state of=$OUT/array bs=64 count=1 2>/dev/null
dmsetup --noudevsync --noudevrules create lower --table "0 131072 linear /dev/loop2 0"
set +e
for i in 0 1 2; do
	printf '%s\n' '[[workload]]' 'name = "w"' 'command = ["true"]' '[[target]]' 'name = "t"' 'fs = "ext4"' \
		"device = \"/dev/loop$i\"" "erase = \"/dev/loop$i\"" 'overwrite = true' >plan.toml
	luc sweep plan.toml --out out$i 2>$OUT/loop$i
	echo $? >>$OUT/loop$i
	test ! -e out$i || exit 1
done
"#;

#[test]
fn parts_of_other_devices_are_left_alone() {
    if !["/usr/sbin/dmsetup", "/sbin/dmsetup"].iter().any(|program| Path::new(program).exists()) {
        luc_testkit::skipped!("dmsetup is not installed");
        return;
    }
    let Some(kernel) = luc_testkit::vm::kernel("6.12") else {
        return;
    };
    let mut vm = VirtualMachine::new(&kernel);
    for program in [LUC, "mkfs.ext4", "wipefs", "losetup", "dmsetup"] {
        vm = vm.program(program);
    }
    for module in ["loop", "md-mod", "raid1", "dm-mod"] {
        vm = vm.module(module);
    }
    let outcome = vm.timeout(Duration::from_secs(300)).script(SCRIPT).run().expect("a guest");
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    let state = outcome.file("array").expect("written");
    assert!(RUNS.contains(&state.trim()), "{state}{}", outcome.text());
    for (device, part) in [
        ("loop0", "is part of md_test (a RAID)"),
        ("loop1", "is part of md_test (a RAID)"),
        ("loop2", "is part of dm-0 ('lower': LVM, encryption or multipath)"),
    ] {
        let message = outcome.file(device).expect("a refusal");
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!((lines.len(), lines.last()), (2, Some(&"2")), "{message}");
        assert!(lines[0].contains(device) && lines[0].contains(part), "{message}");
    }
}
