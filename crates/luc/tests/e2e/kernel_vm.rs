//! `luc kernel` and `luc run --level kernel` with the real module, in a virtual machine with the
//! distribution's kernel. Skipped, with the reason, where QEMU, the kernel or its headers are missing.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use luc_vm::{GuestKernel, VirtualMachine};
use serde_json::Value;

const LUC: &str = env!("CARGO_BIN_EXE_luc");

/// Each line of the output is `NAME: VALUE`. A setting is read where the user would look for it.
const SCRIPT: &str = r#"
set -u
sys=/sys/kernel/luc
say() { echo "$1: $2"; }
# The status of a command that is to fail, and what it says.
refused() { local name=$1 said; shift; said=$("$@" 2>&1); say "$name" "$? $said"; }
# Waits until a file has this content.
until_is() { for _ in $(seq 400); do [ "$(cat "$1")" = "$2" ] && return; usleep 20000; done; say timeout "$1 is no $2"; exit 1; }

refused unloaded luc kernel status
insmod lagdisk.ko disks=2 size_mib=256 flush_ns=3000000 write_ns=20000 read_ns=20000 || exit 1
mkdir -p /a /b
for disk in 0:a 1:b; do
	mke2fs -q -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/lagdisk${disk%:*} || exit 1
	mount -t ext4 /dev/lagdisk${disk%:*} /${disk#*:} || exit 1
done
a=$sys/lagdisk0-8 b=$sys/lagdisk1-8

refused other-kernel luc kernel build --kernel 9.9
luc kernel load || exit 1
luc kernel load --policy off | tail -n 1
luc kernel status --json >$OUT/status.json
luc kernel status >$OUT/status.txt

luc kernel set /a policy=delay delay_us=700
say set "$(cat $a/policy) $(cat $a/delay_us) $(cat $b/policy)"
refused bad luc kernel set --all policy=auto max_hold_us=60000
say still "$(cat $a/policy) $(cat $b/policy)"
luc kernel set --all policy=off

luc run --level kernel --policy delay:1ms --json $OUT/run.json -- \
	luc bench metarates --dir /a --threads 4 --seconds 3 --file-size 1k >/dev/null 2>$OUT/run.txt
say run $?
say after "$(cat $a/policy) $(cat $a/copy_out)"

# A run that syncs a file on /a and goes on.
hold() { luc run --quiet "$@" -- bash -c 'dd if=/dev/zero of=/a/held bs=1k count=1 conv=fsync 2>/dev/null; exec sleep 60' & }
hold --level both
until_is $a/policy auto
say lent "$(cat $a/copy_out) $(cat $b/policy)"
kill -9 $!
until_is $a/policy off
say killed "$(cat $a/copy_out)"

hold --level kernel --policy delay:1ms; first=$!
until_is $a/policy delay
hold --level kernel --policy pid:4; second=$!
until_is $a/policy pid
kill $first; wait $first
say second "$(cat $a/policy) $(cat $a/set_point)"
refused busy luc kernel unload --timeout 0s
kill $second; wait $second
say none "$(cat $a/policy) $(cat $a/set_point)"

luc kernel unload
[ -e $sys ] && say left "$(ls $sys)"
umount /a /b
for disk in 0 1; do e2fsck -fn /dev/lagdisk$disk >/dev/null 2>&1; say fsck $?; done
"#;

/// A kernel, luc.ko and lagdisk.ko for it, or `None` after saying why there are none. Made once for all tests.
fn prepare() -> Option<&'static (GuestKernel, PathBuf, PathBuf)> {
    static PREPARED: OnceLock<Option<(GuestKernel, PathBuf, PathBuf)>> = OnceLock::new();
    PREPARED.get_or_init(make).as_ref()
}

fn make() -> Option<(GuestKernel, PathBuf, PathBuf)> {
    let kernel = luc_testkit::vm::kernel_with_headers("6.1")?;
    let installed = Path::new("/lib/modules").join(kernel.release());
    if !installed.join("build").exists() {
        luc_testkit::skipped!("headers of {} are not installed", kernel.release());
        return None;
    }
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lagdisk = kernel.build_module(&root.join("kernel/lagdisk"), work).expect("lagdisk.ko");
    let module = build(&kernel, &work.join("machine"));
    Some((kernel, module, lagdisk))
}

/// Builds luc.ko by `luc kernel build`, on a tree that has this machine's kernels and a cache of its own.
fn build(kernel: &GuestKernel, tree: &Path) -> PathBuf {
    std::fs::create_dir_all(tree.join("lib")).expect("directory");
    // Left by an earlier test, it is the same.
    let _ = symlink("/lib/modules", tree.join("lib/modules"));
    let output = Command::new(LUC)
        .args(["kernel", "build", "--kernel", kernel.release()])
        .env("LUC_KERNEL_TEST_ROOT", tree)
        .env("XDG_CACHE_HOME", tree.join("cache"))
        .output()
        .expect("luc starts");
    let message = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stderr));
    message.split(' ').nth(1).expect("built PATH").into()
}

fn json(text: Option<String>) -> Value {
    serde_json::from_str(&text.expect("the file")).expect("JSON")
}

#[test]
fn the_module_from_load_to_unload() {
    let Some((kernel, module, lagdisk)) = prepare() else {
        return;
    };
    let gate = Path::new(LUC).with_file_name("libluc_gate_preload.so");
    if !gate.exists() {
        luc_testkit::skipped!("{} is not built: run `make build`", gate.display());
        return;
    }
    let cached = format!("/var/cache/luc/kernel/{}/luc.ko", kernel.release());
    let outcome = VirtualMachine::new(kernel)
        .program(LUC)
        .program("mke2fs")
        .program("e2fsck")
        .program("dd")
        .program("sleep")
        .file("/luc/bin/libluc_gate_preload.so", gate)
        .file(cached, module)
        .file("/root/lagdisk.ko", lagdisk)
        .timeout(Duration::from_secs(300))
        .script(SCRIPT)
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    let text = outcome.text();
    assert_eq!(outcome.status, 0, "{text}");
    assert_eq!(outcome.complaints(), Vec::<&str>::new());
    for expected in [
        "unloaded: 2 luc: luc.ko is not loaded",
        "other-kernel: 2 luc: kernel 9.9 is not in /lib/modules",
        "set: delay 700 off",
        "bad: 2 luc: max_hold_us=60000",
        "still: delay off",
        "run: 0",
        "after: off off",
        "lent: auto off",
        "killed: off",
        "second: pid 4",
        "busy: 2 luc: luc.ko is still in use after 0 s: luc run (process ",
        "none: off 0",
        "luc.ko is unloaded",
    ] {
        assert!(text.lines().any(|line| line.starts_with(expected)), "{expected}:\n{text}");
    }
    assert!(!text.contains("left: "), "{text}");
    assert_eq!(text.matches("fsck: 0\n").count(), 2, "{text}");

    let status = json(outcome.file("status.json"));
    let journals = status["journals"].as_array().expect("journals");
    let places: Vec<_> = journals.iter().map(|j| j["mount_point"].as_str()).collect();
    assert_eq!(places, [Some("/a"), Some("/b")]);
    assert_eq!(journals[0]["settings"]["max_hold_us"], 20_000);

    let run = json(outcome.file("run.json"));
    let used = &run["kernel"][0];
    assert_eq!((&run["level"], &used["mount_point"]), (&"kernel".into(), &"/a".into()));
    assert_eq!((&used["policy"], &used["copy_out"]), (&"delay".into(), &"auto".into()));
    // Four clients held for a millisecond share commits; alone they come to two.
    let held = used["stats"]["holds"].as_u64().expect("a number");
    assert!(held > 10, "{used}");
    let seen = run["file_systems"][0]["fsyncs"].as_u64().expect("a number");
    let counted = used["stats"]["fsyncs"].as_u64().expect("a number");
    // Calls of the three other clients may pass uncounted while the first one's joins the gate.
    assert!(counted > seen / 2 && counted <= seen + 3, "{counted} of {seen}");
    let report = outcome.file("run.txt").expect("the report");
    assert!(report.contains("kernel module, policy delay"), "{report}");
}

/// Without a module, by each call that copies matter to, and by a program of the distribution's.
const FAULTS: &str = r#"
set -u
modprobe -a ext4 loop fuse
refused() { local said; said=$("$@" 2>&1); echo "refused: $? $said"; }
refused luc faults --level kernel
luc kernel load || exit 1
refused luc faults --level kernel --mkfs-options "-O ^has_journal"
luc faults --level kernel --json --flush 1ms --errno EIO --errno ENODATA --call fsync --call o_sync --policy off \
	--policy delay:1ms --mount-options errors=remount-ro >$OUT/faults.json || exit 1
luc faults --level kernel --json --errno ENODATA --policy delay:1ms -- \
	dd if=/dev/zero of=file bs=64k count=4 conv=fsync >$OUT/command.json || exit 1
luc disk list
luc kernel unload
"#;

#[test]
fn failed_writes_are_told_of_as_without_the_module() {
    let Some((kernel, module, _)) = prepare() else {
        return;
    };
    let outcome = VirtualMachine::new(kernel)
        .program(LUC)
        .program("mkfs.ext4")
        .program("dd")
        .file(format!("/var/cache/luc/kernel/{}/luc.ko", kernel.release()), module)
        .module("loop")
        .module("fuse")
        .memory_mib(1024)
        .timeout(Duration::from_secs(600))
        .script(FAULTS)
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    let text = outcome.text();
    assert_eq!(outcome.status, 0, "{text}");
    for expected in [
        "refused: 2 luc: luc.ko is not loaded",
        "has no ext4 journal that luc.ko knows",
        "luc.ko is unloaded",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    let report = json(outcome.file("faults.json"));
    assert_eq!(report["differences"], serde_json::json!([]), "{report:#}");
    // Without luc, off, delay.
    let policies = report["policies"].as_array().expect("policies");
    let held: Vec<Option<u64>> = policies.iter().map(|row| row["held_calls"].as_u64()).collect();
    assert_eq!(held[..2], [None, Some(0)], "{report:#}");
    assert!(held[2] > Some(0), "{report:#}");
    let failed = |row: &Value| row["failed_requests"].as_u64() > Some(0);
    assert!(policies.iter().all(failed), "{report:#}");

    let command = json(outcome.file("command.json"));
    let statuses: Vec<_> =
        command["runs"].as_array().expect("runs").iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, [1, 1], "{command:#}");
}

/// In turn: signed by DKMS on an open kernel; the same on a locked one, which does not know the key; unsigned.
const SIGNED: &str = r#"
set -u
refused() { local name=$1 said; shift; said=$("$@" 2>&1); echo "$name: $? $said"; }
modprobe ext4
luc kernel load || exit 1
luc kernel unload
mount -t securityfs securityfs /sys/kernel/security
echo integrity >/sys/kernel/security/lockdown || exit 1
refused unknown luc kernel load
rm -r /lib/modules/$(uname -r)/updates
refused unsigned luc kernel load
[ -e /sys/kernel/luc ] && echo "left: $(ls /sys/kernel/luc)"
exit 0
"#;

/// luc.ko as DKMS builds and signs it, in trees of its own; `None` after saying why there is none.
fn build_by_dkms(kernel: &GuestKernel) -> Option<PathBuf> {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dkms");
    // Left by an earlier test that was killed.
    let _ = std::fs::remove_dir_all(&work);
    let (tree, sources) = (work.join("tree"), work.join("src"));
    let copy = sources.join(concat!("luc-", env!("CARGO_PKG_VERSION")));
    for directory in [&tree, &copy] {
        std::fs::create_dir_all(directory).expect("directory");
    }
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/luc");
    for entry in std::fs::read_dir(original).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, copy.join(name)).expect("copy");
        }
    }
    if Command::new("dkms").arg("status").output().is_err() {
        luc_testkit::skipped!("dkms is not installed");
        return None;
    }
    let option = |name: &str, path: &Path| [name.to_owned(), path.display().to_string()];
    // The key that it makes at its first build goes with the namespace.
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c"])
        .arg("mount -t tmpfs tmpfs /var/lib/dkms && exec dkms \"$@\"")
        .args(["dkms", "build"])
        .arg(concat!("luc/", env!("CARGO_PKG_VERSION")))
        .args(["-k", kernel.release()])
        .args(option("--dkmstree", &tree))
        .args(option("--sourcetree", &sources))
        .output()
        .expect("unshare starts");
    let message = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stderr));
    let built = tree
        .join(concat!("luc/", env!("CARGO_PKG_VERSION")))
        .join(kernel.release())
        .join("x86_64/module/luc.ko");
    assert!(built.exists(), "{} is not there: {message}", built.display());
    Some(built)
}

#[test]
fn a_locked_kernel_refuses_what_it_cannot_trust() {
    let Some((kernel, unsigned, _)) = prepare() else {
        return;
    };
    let Some(signed) = build_by_dkms(kernel) else {
        return;
    };
    let release = kernel.release().to_owned();
    let outcome = VirtualMachine::new(kernel)
        .program(LUC)
        .file(format!("/lib/modules/{release}/updates/dkms/luc.ko"), &signed)
        .file(format!("/var/cache/luc/kernel/{release}/luc.ko"), unsigned)
        .timeout(Duration::from_secs(300))
        .script(SIGNED)
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    let text = outcome.text();
    assert_eq!(outcome.status, 0, "{text}");
    for expected in [
        "luc.ko is unloaded",
        "unknown: 2 luc: /lib/modules/",
        "unsigned: 2 luc: /var/cache/luc/kernel/",
    ] {
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}:\n{text}");
    }
    assert!(text.contains("does not trust: enrol it by"), "{text}");
    assert!(text.contains("is not signed, and the kernel is locked down (integrity)"), "{text}");
    assert!(!text.contains("left: "), "{text}");
    std::fs::remove_dir_all(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dkms")).expect("remove");
}
