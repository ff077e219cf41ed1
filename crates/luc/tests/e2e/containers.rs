//! `luc oci-profile`, containers that crun hands over to `lucd`, and `luc attach`. Needs root, systemd, crun and a
//! static busybox, and says so if they are missing.

mod attach;
mod bundle;
use crate::enable::systemd_machine;
mod profile;

use crate::common::{stderr, stdout, until};
use serde_json::Value;
use systemd_machine::SystemdMachine;

use bundle::{CRUN, PLACE, bundle, start};

/// Eight processes that synchronize a file each, until there is a file `over` in the folder.
fn crowd(folder: &str) -> String {
    format!("cd {folder} && for i in 1 2 3 4 5 6 7 8; do notified crowd 1 600000 1000 & done; wait")
}

/// The status of a container; `None` while `lucd` does not serve it.
fn status(machine: &SystemdMachine, name: &str) -> Option<Value> {
    let output = machine.run(&format!("luc status --json {name}"));
    let all: Value = serde_json::from_str(&stdout(&output)).ok()?;
    all.get(0).filter(|one| one["container"]["id"] == name).cloned()
}

/// Whether all processes of a container are reached, and there are as many of them.
fn are_reached(machine: &SystemdMachine, name: &str, count: usize) -> bool {
    let status = status(machine, name).unwrap_or_default();
    let processes = status["processes"].as_array().cloned().unwrap_or_default();
    processes.len() == count && processes.iter().all(|one| one["reached"] == "notifier")
}

/// Waits until containers' calls are held together: for more of them than one container has.
fn until_together(machine: &SystemdMachine, names: &[&str]) {
    until("a common round", || {
        names.iter().all(|name| {
            let status = status(machine, name).unwrap_or_default();
            let gate = &status["file_systems"][0]["gate"];
            let (gated, set_point) = (&gate["gated"], &gate["decision"]["set_point"]);
            gated.as_u64() > Some(0) && set_point.as_u64() > Some(8)
        })
    });
}

/// Kills `lucd`, and waits for the next one.
fn kill_lucd(machine: &SystemdMachine) {
    let main = "systemctl show -P MainPID lucd";
    let killed = machine.get(main);
    machine.get(&format!("kill -KILL {killed}"));
    until("another lucd", || !["0", &killed].contains(&machine.get(main).as_str()));
}

/// All that may be left.
fn assert_nothing_is_left(machine: &SystemdMachine) {
    // One keeper awaits the next container.
    machine.until("[ $(pgrep -c luc-keeper) = 1 ]");
    assert!(machine.get("luc status").contains("no container is served"));
    machine.get("systemctl stop lucd.socket lucd && rmdir /run/luc");
    machine.until("! pgrep luc-keeper");
    assert_eq!(machine.get("ls -A /dev/shm /run/crun"), "/dev/shm:\n\n/run/crun:");
}

#[test]
fn a_volume_and_an_overlay_meet_and_survive_lucd() {
    let Some(machine) = bundle::machine("containers-meet") else {
        return;
    };
    machine.get(&format!(
        "cd {PLACE} && mkdir upper work merged && mount -t overlay overlay -o lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work merged"
    ));
    bundle(&machine, "volume", "lower", &crowd("/data"));
    bundle(&machine, "overlay", "merged", &crowd("/tmp"));
    start(&machine, "volume");
    start(&machine, "overlay");
    until_together(&machine, &["volume", "overlay"]);
    until("all of their processes", || {
        ["volume", "overlay"].iter().all(|name| are_reached(&machine, name, 9))
    });
    let text = machine.get("luc status");
    assert!(
        text.contains("container overlay: by notifications; process ")
            && text.contains("metadata luc"),
        "{text}"
    );
    assert!(machine.run("luc status volume").status.success());

    // A process that is started in a container later brings a listener of its own.
    let once = machine.get(&format!("{CRUN} exec volume /bin/notified once /data/once"));
    assert_eq!(once, "fsync 0 fdatasync 0");
    // The profile's other rules are the runtime's.
    let refused = machine.run(&format!("{CRUN} exec volume /bin/busybox chroot / true"));
    assert!(stderr(&refused).contains("not supported"), "{refused:?}");

    for _ in 0..5 {
        kill_lucd(&machine);
        until("its containers", || {
            ["volume", "overlay"].iter().all(|name| are_reached(&machine, name, 9))
        });
    }
    until_together(&machine, &["volume", "overlay"]);
    machine.get(&format!("touch {PLACE}/data/over {PLACE}/merged/tmp/over"));
    for name in ["volume", "overlay"] {
        machine.until(&format!("! systemctl is-active {name}"));
        let said = machine.get(&format!("cat {PLACE}/{name}.log"));
        assert_eq!(said.matches("slow 0 failed 0").count(), 8, "{said}");
        machine.get(&format!("{CRUN} delete {name}"));
    }
    assert_nothing_is_left(&machine);
}

#[test]
fn no_call_fails_however_lucd_is_killed_while_containers_start() {
    let Some(machine) = bundle::machine("containers-kills") else {
        return;
    };
    bundle(&machine, "once", "lower", "exec notified once /data/once");
    // The first one starts lucd.
    let said = machine.get(&format!(
        "cd {PLACE}/once && {CRUN} run once-0 && systemctl show -P ActiveState lucd"
    ));
    assert_eq!(said, "fsync 0 fdatasync 0\nactive");
    machine.write(
        &format!("{PLACE}/killer"),
        "while [ ! -e /tmp/over ]; do p=$(systemctl show -P MainPID lucd); [ $p = 0 ] || { kill -KILL $p && echo $p; }; \
         sleep $(shuf -n 1 -e 0.05 0.1 0.15 0.2 0.3 0.4); done",
    );
    machine.get(&format!(
        "systemd-run --quiet --collect --unit=killer -p StandardOutput=append:/tmp/killed sh {PLACE}/killer"
    ));
    let said = machine.get(&format!(
        "cd {PLACE}/once && for i in $(seq 150); do timeout -s KILL 20 {CRUN} run once-$i || exit 1; done"
    ));
    machine.get("touch /tmp/over");
    machine.until("! systemctl is-active killer");
    assert_eq!(said.lines().count(), 150, "{said}");
    assert!(said.lines().all(|line| line == "fsync 0 fdatasync 0"), "{said}");
    let killed: u32 = machine.get("sort -u /tmp/killed | wc -l").parse().expect("a number");
    assert!(killed > 10, "{killed}");
    machine.get("systemctl reset-failed; systemctl start lucd");
    assert_nothing_is_left(&machine);
}
