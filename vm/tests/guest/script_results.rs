//! Scripts and their results.

use std::time::Duration;

use luc_vm::{Error, VirtualMachine};

use crate::guest_fixtures::{STABLE, kernel, succeed};

#[test]
fn a_script_runs_and_its_results_come_back() {
    let Some(kernel) = kernel(STABLE) else { return };
    let bytes: Vec<u8> =
        (0..300_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let outcome = VirtualMachine::new(&kernel)
        .content("/root/in", bytes.clone())
        .variable("GREETING", "it's $HOME")
        .script(
            "cp in $OUT/copy; mkdir -p $OUT/a/b; echo deep >$OUT/a/b/c; : >$OUT/empty\n\
             uname -r; echo \"$GREETING\"; echo error >&2; exit 7",
        )
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status, 7);
    assert_eq!(outcome.text(), format!("{}\nit's $HOME\nerror\n", kernel.release()));
    assert_eq!(outcome.files.keys().collect::<Vec<_>>(), ["a/b/c", "copy", "empty"]);
    assert!(outcome.files["copy"] == bytes, "300,000 bytes come back as they were");
    assert_eq!(outcome.file("a/b/c").as_deref(), Some("deep\n"));
    assert!(outcome.kernel_log.contains(&format!("Linux version {}", kernel.release())));
}

#[test]
fn a_disk_keeps_what_was_synced_before_the_plug_was_pulled() {
    let Some(kernel) = kernel(STABLE) else { return };
    let disk = tempfile::NamedTempFile::new().expect("a file for the disk");
    disk.as_file().set_len(64 << 20).expect("its size");
    let mut first = VirtualMachine::new(&kernel)
        .program("mke2fs")
        .disk(disk.path())
        .script(
            "mke2fs -q -t ext4 /dev/vda && mount -t ext4 /dev/vda /mnt && echo kept >/mnt/file &&
             sync && echo synced && sleep 1000",
        )
        .start()
        .unwrap_or_else(|error| panic!("{error}"));
    while !first.output().expect("its output").starts_with(b"synced") {
        assert!(
            first.is_running().unwrap_or_else(|error| panic!("{error}")),
            "the guest ended: {:?}",
            first.output()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    first.cut();
    let second = VirtualMachine::new(&kernel)
        .disk(disk.path())
        .script("mount -t ext4 /dev/vda /mnt && cat /mnt/file");
    assert_eq!(succeed(&second).text(), "kept\n");
}

#[test]
fn what_is_not_there_is_named() {
    let Some(kernel) = kernel(STABLE) else { return };
    let error =
        VirtualMachine::new(&kernel).program("no-such-program").run().expect_err("no program");
    assert!(matches!(error, Error::Program { .. }), "{error}");
    let error =
        VirtualMachine::new(&kernel).file("/root/x", "/no/such/file").run().expect_err("no file");
    assert!(matches!(error, Error::File { .. }), "{error}");
}
