//! Several guests: a cable between them, memory that they share, and a guest that is paused.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use luc_vm::{GuestKernel, GuestOutcome, RunningGuest, SharedMemory, VirtualMachine, cable};

use crate::guest_fixtures::{STABLE, kernel};

const GUEST_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn guest<'k>(kernel: &'k GuestKernel, script: &str) -> VirtualMachine<'k> {
    VirtualMachine::new(kernel).timeout(GUEST_TIMEOUT).script(script)
}

fn ended(guest: RunningGuest) -> GuestOutcome {
    let outcome = guest.wait().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    outcome
}

#[test]
fn guests_talk_over_a_cable_and_read_one_memory() {
    let Some(kernel) = kernel(STABLE) else { return };
    let [one, other] = cable().expect("a cable");
    let memory = SharedMemory::new(1 << 20).expect("memory");
    let mut file = memory.file();
    file.seek(SeekFrom::Start(64)).expect("a place");
    file.write_all(&0x1234_5678_u32.to_le_bytes()).expect("written");
    // The first line of a device's file `resource` is its first region; the third one is that of the memory.
    let script = |own: u8, rest: &str| {
        format!(
            "modprobe virtio_net\nip addr add 10.0.0.{own}/24 dev eth0 && ip link set eth0 up || exit 1\n\
             for device in /sys/bus/pci/devices/*; do\n\
             grep -q 0x1110 $device/device && set -- $(sed -n 3p $device/resource)\ndone\n\
             devmem $(($1 + 64)) 32 || exit 2\n{rest}"
        )
    };
    let listen = guest(&kernel, &script(1, "nc -l -p 99 >$OUT/heard"));
    let listen = listen.cable(one).shared_memory(memory.clone()).start();
    let ask = script(
        2,
        "for i in $(seq 100); do echo hello | nc 10.0.0.1 99 && exit 0; usleep 100000; done; exit 3",
    );
    let ask = guest(&kernel, &ask).cable(other).shared_memory(memory);
    let ask = ended(ask.start().unwrap_or_else(|error| panic!("{error}")));
    let heard = ended(listen.unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(heard.file("heard").as_deref(), Some("hello\n"));
    for outcome in [ask, heard] {
        assert!(outcome.text().contains("0x12345678"), "{}", outcome.text());
    }
}

#[test]
fn a_guest_stands_still_while_it_is_stopped() {
    const PAUSE: Duration = Duration::from_secs(3);
    let Some(kernel) = kernel(STABLE) else { return };
    let script = "cat /proc/uptime; sleep 1; cat /proc/uptime";
    let mut paused =
        guest(&kernel, script).pausable().start().unwrap_or_else(|error| panic!("{error}"));
    while paused.output().expect("its output").is_empty() {
        assert!(paused.is_running().expect("a guest"), "it ended too early");
        thread::sleep(POLL_INTERVAL);
    }
    paused.pause().unwrap_or_else(|error| panic!("{error}"));
    let stopped = Instant::now();
    let said = paused.output().expect("its output");
    while stopped.elapsed() < PAUSE {
        assert!(paused.is_running().expect("a guest"), "it ended");
        thread::sleep(POLL_INTERVAL);
    }
    assert_eq!(paused.output().expect("its output"), said);
    paused.resume().unwrap_or_else(|error| panic!("{error}"));
    ended(paused);
}

#[test]
fn a_guest_without_a_monitor_says_so() {
    let Some(kernel) = kernel(STABLE) else { return };
    let mut guest = guest(&kernel, "sleep 60").start().unwrap_or_else(|error| panic!("{error}"));
    let error = guest.pause().expect_err("no monitor");
    assert!(error.to_string().contains("Vm::pausable"), "{error}");
}
