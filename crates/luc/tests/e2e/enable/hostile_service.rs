//! A service that wants to harm `lucd`, and users who do, beside a service that only wants its disk.

use std::path::Path;
use std::process::Command;

use crate::common::until;
use crate::enable::systemd_machine::SystemdMachine;

/// Length of each measurement in seconds.
const MEASURED_S: u32 = 5;

/// Variable with the number of rounds, by default 1. Each round has all measurements; figures need several.
const ROUNDS: &str = "LUC_HOSTILE_ROUNDS";

/// A figure of `lucd`'s.
fn figure(machine: &SystemdMachine, words: &str) -> u64 {
    let lucd = machine.get("systemctl show -P MainPID lucd");
    let text = machine.get(&words.replace("LUCD", &lucd));
    text.parse().unwrap_or_else(|_| panic!("{words}: {text:?}"))
}

/// 99th percentile of the good service's calls, in microseconds.
fn p99_us(machine: &SystemdMachine) -> u64 {
    machine.get("rm -f /var/lib/redis/p99; systemctl start good");
    machine.until("test -s /var/lib/redis/p99");
    let text = machine.get("cut -d' ' -f1 /var/lib/redis/p99");
    text.parse().unwrap_or_else(|_| panic!("{text:?}"))
}

#[test]
fn a_hostile_service_takes_nothing_that_others_need() {
    if !crate::enable::are_installed(&["redis-server"]) {
        return;
    }
    let Some(machine) = SystemdMachine::boot("service-hostile", &["redis"]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("hostile");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hostile.c");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&program, &source]).status();
    assert!(compiled.expect("cc starts").success());
    machine.copy(&program, "/usr/bin/hostile");
    machine.get("chmod 755 /usr/bin/hostile");
    let good = format!(
        "[Service]\nUser=redis\nStandardOutput=file:/var/lib/redis/p99\n\
         ExecStart=/usr/bin/hostile measure /var/lib/redis {MEASURED_S}\n"
    );
    machine.write("/etc/systemd/system/good.service", &good);
    machine.write(
        "/etc/systemd/system/evil.service",
        "[Service]\nCPUWeight=1\nExecStart=/usr/bin/hostile numbers 1000000000\n",
    );
    // As many processes that want a processor as the two hostile ones, but without luc.
    machine.write(
        "/etc/systemd/system/hog@.service",
        "[Service]\nCPUWeight=1\nExecStart=/usr/bin/hostile numbers 1000000000\n",
    );
    machine.get("systemctl daemon-reload && luc enable good evil --reach notify");
    machine.get("systemctl start lucd");
    let files = || figure(&machine, "ls /proc/LUCD/fd | wc -l");
    let threads = || figure(&machine, "awk '/^Threads/{print $2}' /proc/LUCD/status");
    let resident_kib = || figure(&machine, "awk '/^VmRSS/{print $2}' /proc/LUCD/status");
    let before = (files(), threads(), resident_kib());

    // A process of an enabled service that hands nothing over.
    machine.write(
        "/etc/systemd/system/knock.service",
        "[Service]\nExecStart=/usr/bin/hostile connect /run/luc/lucd.sock 3\n",
    );
    machine.get("systemctl daemon-reload && luc enable knock --reach notify");
    // Without luc-exec, which would go on with luc.
    machine.get(
        "mkdir -p /run/systemd/system/knock.service.d && printf '[Service]\\nExecStart=\\n\
         ExecStart=/usr/bin/hostile connect /run/luc/lucd.sock 3\\n' \
         >/run/systemd/system/knock.service.d/zz.conf && systemctl daemon-reload",
    );
    machine.get("systemctl start --wait knock");
    let left = || figure(&machine, "ps --no-headers -o stat --ppid LUCD | grep -c Z || true");
    // The last ones may not be looked at before the next one comes.
    until("keepers that nobody waits for", || left() < 16);
    let said = machine.get("journalctl --no-pager -u lucd");
    let lines_before = said.lines().count();
    assert!(said.contains("knock.service: it runs without luc"), "{said}");
    assert!(said.contains("filters in a second"), "{said}");

    let rounds = std::env::var(ROUNDS).ok().and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
    let (mut alone_us, mut beside_us) = (Vec::new(), Vec::new());
    let mut beside_hogs_us = Vec::new();
    let mut meanwhile = before;
    for _ in 0..rounds {
        alone_us.push(p99_us(&machine));
        machine.get("systemctl start hog@1 hog@2");
        beside_hogs_us.push(p99_us(&machine));
        machine.get("systemctl stop hog@1 hog@2");
        machine.get("systemctl start evil");
        machine.get(
            "systemd-run --quiet --collect --unit=flood -p User=nobody -p CPUWeight=1 \
             /usr/bin/hostile connect /run/luc/lucd.sock 600",
        );
        until("connections that are refused", || {
            let said = machine.get("journalctl --no-pager -u lucd");
            said.contains("times more: flood.service is not enabled")
        });
        beside_us.push(p99_us(&machine));
        meanwhile = (files(), threads(), resident_kib());
        println!(
            "p99 alone {alone_us:?} us, beside hogs {beside_hogs_us:?} us, beside hostile ones {beside_us:?} us; \
             lucd {before:?}, {meanwhile:?}"
        );
        machine.get("systemctl stop evil flood");
    }
    alone_us.sort_unstable();
    beside_us.sort_unstable();
    let middle = beside_us.len() / 2;
    let (alone_us, beside_us) = (alone_us[middle], beside_us[middle]);
    // Files, threads and memory of one more listener, and of a thread that serves it.
    assert!(meanwhile.0 < before.0 + 64, "{before:?} {meanwhile:?}");
    assert!(meanwhile.1 < before.1 + 40, "{before:?} {meanwhile:?}");
    assert!(meanwhile.2 < before.2 + 16 * 1024, "{before:?} {meanwhile:?}");
    // A machine with other work scatters by more than what is lost.
    assert!(beside_us < 2 * alone_us, "{alone_us} us alone, {beside_us} us beside hostile ones");
    let lines = machine.get("journalctl --no-pager -u lucd | wc -l");
    assert!(
        lines
            .parse::<usize>()
            .is_ok_and(|lines| lines < lines_before + 100 + 100 * rounds as usize),
        "{lines} lines"
    );
    machine
        .get("systemctl stop evil flood; luc disable --all --now; systemctl stop lucd.socket lucd");
    machine.until("! pgrep luc-keeper");
}
