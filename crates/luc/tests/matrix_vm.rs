//! The guest's part of `luc-evaluate matrix`: the web server on two file systems for two seconds of virtual time.
//! Skipped, with the reason, where QEMU, the kernel or a mkfs is missing.

use std::path::Path;
use std::time::Duration;

use luc_vm::{Kernel, Mode, Vm};
use serde_json::Value;

const CELLS: &str = "
cell ext4 '' noatime /root/load.f
cell reiserfs '' notail /root/load.f
";
const HEAD: &str = "DISK_MIB=512 MEMORY_MIB=32 SECONDS_RUN=2 SEED=1 \
    SETTINGS='--set nfiles=200 --set nthreads=8 --set iosize=64k'\n";

/// What is read is on the disk and nowhere else.
const COLD: &str = "create files\nsystem \"sync; echo 3 >/proc/sys/vm/drop_caches\"\nrun ";

fn is_there(program: &str) -> bool {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    folders
        .iter()
        .any(|folder| Path::new(folder).join(program).is_file())
}

#[test]
fn a_server_runs_on_a_hard_disk_in_virtual_time() {
    if let Some(reason) = luc_vm::missing() {
        luc_testkit::skipped!("{reason}");
        return;
    }
    if let Some(program) = ["mke2fs", "mkreiserfs"].iter().find(|name| !is_there(name)) {
        luc_testkit::skipped!("no {program}: run scripts/setup.sh");
        return;
    }
    let kernel = match Kernel::find("6.1") {
        Ok(kernel) => kernel,
        Err(reason) => {
            luc_testkit::skipped!("{reason}");
            return;
        }
    };
    let script = [
        HEAD,
        include_str!("../../../prove/evaluate/src/matrix/cell.sh"),
        CELLS,
    ];
    let cold = include_str!("../../workload/personalities/slides-web.f").replacen("run ", COLD, 1);
    let outcome = Vm::new(&kernel)
        .mode(Mode::VirtualTime { shift: 0 })
        .memory_mib(512 + 32 + 300)
        .timeout(Duration::from_secs(1200))
        .kernel_argument("init_on_alloc=0")
        .module("fuse")
        .module("reiserfs")
        .program(env!("CARGO_BIN_EXE_luc"))
        .program("mke2fs")
        .program("mkreiserfs")
        .content("/root/load.f", cold)
        .script(script.concat())
        .run()
        .expect("the guest ends");
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    for (number, mount) in [(1, "ext4 rw,noatime"), (2, "reiserfs rw,relatime,notail")] {
        let file = |kind: &str| outcome.file(&format!("{number}.{kind}")).expect("left");
        let json =
            |kind: &str| -> Value { serde_json::from_str(&file(kind)).expect("JSON of luc's") };
        assert!(file("mount").contains(mount), "{}", file("mount"));
        let (report, disk) = (json("json"), json("disk"));
        assert!(report["flowops"].as_u64() > Some(100), "{report}");
        // The seconds are virtual, so this is exact on any machine: no time passes unseen.
        let seconds = report["measured_s"].as_f64().expect("seconds");
        assert!((1.9..2.5).contains(&seconds), "{report}");
        // A drive's time, not a RAM disk's: the set does not fit, and a flush waits for the platter. Reads are of whole
        // files, mostly from the drive's own read-ahead.
        let figure = |name: &str| disk[name].as_f64().expect(name);
        let flush_ms = figure("flush_ns") / figure("flushes") / 1e6;
        assert!(
            figure("reads") > 50.0 && (1.0..100.0).contains(&flush_ms),
            "{flush_ms} ms: {disk}"
        );
    }
}
