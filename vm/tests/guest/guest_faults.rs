//! Guests that panic, hang or lose their caller.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use luc_vm::{Error, VirtualMachine};

use crate::guest_fixtures::{STABLE, kernel};

#[test]
fn a_panic_is_reported_with_the_log() {
    let Some(kernel) = kernel(STABLE) else { return };
    let started = Instant::now();
    let error = VirtualMachine::new(&kernel)
        .script("echo c >/proc/sysrq-trigger; sleep 1000")
        .run()
        .expect_err("a panic");
    let Error::Panic { reason, log } = &error else { panic!("{error}") };
    assert!(reason.contains("sysrq triggered crash"), "{error}");
    assert!(log.contains("Call Trace"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(100), "it is noticed before the time is up");
}

#[test]
fn a_guest_that_does_not_end_is_ended() {
    let Some(kernel) = kernel(STABLE) else { return };
    let limit = Duration::from_secs(2);
    let error =
        VirtualMachine::new(&kernel).script("sleep 1000").timeout(limit).run().expect_err("no end");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[test]
fn qemu_dies_with_its_caller() {
    if kernel(STABLE).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    fs::write(&script, "sleep 1000").expect("a script");
    let mut caller = Command::new(env!("CARGO_BIN_EXE_luc-vm"))
        .args(["run", "--kernel", STABLE, "--script"])
        .arg(&script)
        .env("TMPDIR", folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc-vm");
    let qemu = wait_for_child(&mut caller);
    caller.kill().expect("SIGKILL");
    caller.wait().expect("its end");
    let limit = Instant::now() + Duration::from_secs(20);
    while is_alive(&qemu) {
        assert!(Instant::now() < limit, "QEMU {qemu} outlives its caller");
        std::thread::sleep(Duration::from_millis(10));
    }
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert_eq!(left, [script]);
}

/// Returns the process of QEMU that `caller` starts.
fn wait_for_child(caller: &mut Child) -> String {
    let children = format!("/proc/{0}/task/{0}/children", caller.id());
    loop {
        let list = fs::read_to_string(&children).unwrap_or_default();
        for child in list.split_whitespace() {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if name.starts_with("qemu") {
                return child.to_owned();
            }
        }
        if caller.try_wait().expect("its state").is_some() {
            let message = caller.stderr.take().map(|errors| {
                BufReader::new(errors).lines().map_while(Result::ok).collect::<Vec<_>>()
            });
            panic!("luc-vm ended: {message:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs. A dead one that is not yet collected does not.
fn is_alive(process: &str) -> bool {
    let stat =
        fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
