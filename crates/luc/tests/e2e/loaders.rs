//! The preload library in programs of other C libraries, and beside other libraries that interpose: each runs as
//! without it and takes part. Needs root, FUSE and a loop device for the emulated disk, and says so if they are
//! missing.

use crate::common;

use std::path::Path;
use std::process::Command;

use crate::common::{EmulatedTestDisk, LUC, stderr};
use serde_json::Value;

const RECORDS: u64 = 40;

/// Compiles the writer by a C compiler.
fn writer(disk: &EmulatedTestDisk, compiler: &str, options: &[&str]) -> String {
    let program = disk.path(&format!("writer-{compiler}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/append_and_sync.c");
    let compiled = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-O1", "-o", &program])
        .args(options)
        .arg(source)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; run `make setup`"));
    assert!(compiled.success(), "{compiler}");
    program
}

/// Synchronizations that the gate has counted of a shell script below `luc run`.
fn counted(disk: &EmulatedTestDisk, script: &str) -> u64 {
    let json = disk.path("report.json");
    let output = disk
        .command(&["run", "--reach", "library", "--policy", "delay:2ms", "--json", &json, "--"])
        .args(["timeout", "60", "bash", "-euc", script])
        .current_dir(disk.mount())
        .output()
        .expect("luc starts");
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    assert!(!stderr(&output).contains("ld.so"), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
    let systems = report["file_systems"].as_array().cloned().unwrap_or_default();
    let calls = |system: &Value| system["fsyncs"].as_u64().unwrap_or_default();
    systems.iter().map(calls).sum()
}

#[test]
fn the_library_needs_no_library_and_no_symbol() {
    let library = Path::new(LUC).with_file_name("libluc_gate_preload.so");
    let ask = |program: &str, option: &str| {
        let output = Command::new(program).arg(option).arg(&library).output().expect("binutils");
        assert!(output.status.success(), "{program}: {}", stderr(&output));
        common::stdout(&output)
    };
    let dynamic = ask("readelf", "-dW");
    assert!(!dynamic.contains("(NEEDED)") && !dynamic.contains("VERNEED"), "{dynamic}");
    for symbol in ask("nm", "-D").lines() {
        let kind = symbol.split_whitespace().rev().nth(1);
        // Weak, a weak object, or a function of its own.
        assert!(matches!(kind, Some("w" | "v" | "T")), "{symbol}");
        assert!(!symbol.contains('@'), "{symbol}");
    }
}

#[test]
fn programs_of_other_c_libraries_and_beside_other_interposers_take_part() {
    let Some(disk) = EmulatedTestDisk::new("gate-loaders", "ext4", "") else {
        return;
    };
    let native = writer(&disk, "cc", &[]);
    let musl = writer(&disk, "musl-gcc", &[]);
    let writes = |program: &str| format!("{program} file {RECORDS}");
    for script in [
        writes(&native),
        writes(&musl),
        // Below programs of the other library, and with a clock, a user or a root of others.
        format!("exec {}", writes(&musl)),
        format!("faketime '2030-01-01' {}", writes(&native)),
        format!("fakeroot {}", writes(&native)),
        format!("bwrap --bind / / --dev-bind /dev /dev --proc /proc {}", writes(&native)),
        format!("setpriv --no-new-privs {}", writes(&native)),
    ] {
        assert_eq!(counted(&disk, &script), RECORDS, "{script}");
    }
    // Another interposer that makes the call nothing stays what the program asked for.
    assert_eq!(counted(&disk, &format!("eatmydata {}", writes(&native))), RECORDS);
}

#[test]
fn a_program_with_another_clock_holds_nobody() {
    let Some(disk) = EmulatedTestDisk::new("gate-clock", "ext4", "") else {
        return;
    };
    let native = writer(&disk, "cc", &[]);
    let script = format!(
        "unshare --time --monotonic 1000000 --fork {native} other {RECORDS} & {native} one {RECORDS} & {native} two {RECORDS}; wait"
    );
    assert_eq!(counted(&disk, &script), 2 * RECORDS);
}

/// Programs that become another user's before they synchronize, by themselves or below another program.
#[test]
fn descendants_of_other_users_take_part() {
    let Some(disk) = EmulatedTestDisk::new("gate-guests", "ext4", "") else {
        return;
    };
    let native = writer(&disk, "cc", &[]);
    let perl = "use IO::Handle; $< = $> = 65534; open(F, '>>', 'file') or die; \
        for (1 .. RECORDS) { print F 'x'; F->flush && F->sync or die }";
    let perl = perl.replace("RECORDS", &RECORDS.to_string());
    for becomes_other in [
        format!("setpriv --reuid 65534 --clear-groups {native} file {RECORDS}"),
        format!("runuser -u nobody -- {native} file {RECORDS}"),
        format!("exec perl -e \"{}\"", perl.replace('$', "\\$")),
    ] {
        let script = format!("chmod 777 .; rm -f file; {becomes_other}");
        assert_eq!(counted(&disk, &script), RECORDS, "{becomes_other}");
    }
}
