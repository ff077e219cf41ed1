//! `luc enable`, `disable` and `status` with systemd, on units as their distribution ships them. Needs root, systemd,
//! redis-server and etcd-server, and says so if they are missing.

use crate::common;
mod hostile_service;
pub(crate) mod systemd_machine;

use std::path::Path;

use crate::common::{refusal, stdout};
use serde_json::Value;
use systemd_machine::SystemdMachine;

/// Whether programs are installed; else says that a test is skipped.
fn are_installed(programs: &[&str]) -> bool {
    for program in programs {
        if !Path::new("/usr/bin").join(program).exists() {
            luc_testkit::skipped!("{program} is not installed: `make setup` does that");
            return false;
        }
    }
    true
}

/// A configuration of Redis that synchronizes after each write, and is reached by a socket.
const REDIS: &str = "port 0\nunixsocket /run/redis/redis.sock\ndir /var/lib/redis\nappendonly yes\nappendfsync always\nsave \"\"\n";

/// A machine with Redis, which runs.
fn with_redis(test: &str) -> Option<SystemdMachine> {
    if !are_installed(&["redis-server", "redis-benchmark"]) {
        return None;
    }
    let machine = SystemdMachine::boot(test, &["redis"])?;
    machine.write("/etc/redis/redis.conf", REDIS);
    machine.get("systemctl start redis-server");
    Some(machine)
}

/// All that may be left of an enabled service: units, shared files, whatever runs below.
const TRACES: &str = "ls -lA /etc/systemd/system /dev/shm /run/luc 2>&1; systemctl show redis-server -p ExecStart -p \
                      ExecStartPre -p Environment -p DropInPaths | sed 's/;.*//'; systemctl list-units --failed";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The status of a unit.
fn status(machine: &SystemdMachine, unit: &str) -> Value {
    let output = machine.run(&format!("luc status --json {unit}"));
    json(&stdout(&output))[0].clone()
}

/// Synchronizing calls of a unit, on all file systems.
fn calls(status: &Value) -> u64 {
    let file_systems = status["file_systems"].as_array().expect("a list");
    let of = |one: &Value, name: &str| one[name].as_u64().expect("a number");
    let calls = file_systems.iter().map(|one| of(one, "fsyncs") + of(one, "fdatasyncs"));
    calls.sum()
}

/// Way in which each process of a unit is reached, as `luc status` says.
fn reached(status: &Value) -> Vec<&str> {
    let processes = status["processes"].as_array().expect("a list");
    processes.iter().map(|one| one["reached"].as_str().expect("a word")).collect()
}

#[test]
fn a_sandboxed_service_gets_the_library_and_loses_it_again() {
    let Some(machine) = with_redis("service-library") else {
        return;
    };
    let before = machine.get(TRACES);
    machine.get("luc enable --dry-run redis-server && luc enable --dry-run --json redis-server");
    assert_eq!(machine.get(TRACES), before);

    let said = machine.get("luc enable redis-server");
    assert!(said.contains("a restart is due"), "{said}");
    assert_eq!(reached(&status(&machine, "redis-server")), ["nothing"]);
    assert_eq!(machine.run("luc status redis-server").status.code(), Some(1));
    machine.get("systemctl restart redis-server");
    machine.get("redis-benchmark -s /run/redis/redis.sock -t set -n 200 -c 4 -q");
    let now = status(&machine, "redis-server");
    assert_eq!(reached(&now), ["library"], "{now}");
    assert!(calls(&now) >= 50, "{now}");
    assert_eq!((&now["way"], &now["notes"]), (&"library".into(), &Value::Array(vec![])));
    let text = machine.get("luc status");
    assert!(text.contains("the library is in it") && text.contains("fdatasync"), "{text}");

    // An update of the package that takes away what the library needs.
    machine.write(
        "/etc/systemd/system/redis-server.service.d/update.conf",
        "[Service]\nSystemCallFilter=~statx\n",
    );
    machine.get("systemctl daemon-reload");
    let now = status(&machine, "redis-server");
    assert!(now["notes"][0].as_str().expect("a note").contains("has changed"), "{now}");
    machine.get("rm /etc/systemd/system/redis-server.service.d/update.conf");

    machine.get("luc disable redis-server --now");
    let now = status(&machine, "redis-server");
    assert_eq!((reached(&now), &now["way"]), (vec!["nothing"], &Value::Null));
    assert_eq!(machine.get(TRACES), before);
}

#[test]
fn what_is_refused_changes_nothing() {
    let Some(machine) = with_redis("service-refused") else {
        return;
    };
    machine.write(
        "/etc/systemd/system/handle.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n",
    );
    machine.write(
        "/etc/systemd/system/handle@.service",
        "[Unit]\nPartOf=handle.service\n[Service]\nExecStart=/bin/sleep infinity\n",
    );
    machine.get("systemctl daemon-reload && systemctl start handle@one");
    let before = machine.get(TRACES);
    for (words, expected) in [
        ("enable redis-server no-such-unit", "no-such-unit.service: there is no such unit"),
        ("enable redis-server handle", "starts nothing itself: enable handle@one.service"),
        ("enable redis-server dbus.socket", "only services start programs"),
        ("enable redis-server ../x", "is no name of a service"),
        ("disable no-such-unit", "no-such-unit.service: there is no such unit"),
        ("status no-such-unit", "there is no such unit"),
    ] {
        let output = machine.run(&format!("luc {words}"));
        let text = refusal(&output);
        assert!(text.contains(expected), "{text}");
        assert_eq!(machine.get(TRACES), before, "{words}");
    }
    let said = machine.get("luc disable redis-server && luc disable --all");
    assert_eq!(
        said,
        "redis-server.service: was not enabled; nothing to do\nno service is enabled; nothing to do"
    );
    assert_eq!(machine.get(TRACES), before);
    // A service that does not start with the library.
    machine.write(
        "/etc/systemd/system/picky.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'test -z \"$LD_PRELOAD\"'\n",
    );
    machine.get("systemctl daemon-reload && systemctl start picky");
    let picky = machine.get(TRACES);
    let text = refusal(&machine.run("luc enable redis-server picky --now >/dev/null"));
    assert!(text.contains("picky.service did not start with luc"), "{text}");
    assert_eq!(machine.get("systemctl is-active picky redis-server"), "active\nactive");
    assert_eq!(machine.get(TRACES), picky);
    // A second one that cannot be written takes the first one back.
    machine.get(
        "cd /etc/systemd/system && mkdir handle@one.service.d && mount -t tmpfs -o ro none handle@one.service.d",
    );
    let text = refusal(&machine.run("luc enable redis-server handle@one"));
    assert!(text.contains("50-luc.conf cannot be written"), "{text}");
    let after = machine.get("ls -A /etc/systemd/system");
    assert!(!after.contains("redis-server.service.d"), "{after}");
}

/// Eight threads that create and synchronize files without end, as a user.
fn crowd(machine: &SystemdMachine, user: &str) {
    let unit = format!(
        "[Service]\nUser={user}\nNoNewPrivileges=yes\nProtectSystem=strict\nReadWritePaths=/var/lib/{user}\n\
         ExecStart=/usr/bin/luc bench metarates --dir /var/lib/{user} --threads 8 --seconds 3600 --file-size 1k\n"
    );
    machine.write(&format!("/etc/systemd/system/crowd-{user}.service"), &unit);
}

/// Waits until units' calls are held together: for more of them than one unit has.
fn until_together(machine: &SystemdMachine, units: &[&str]) {
    common::until("a common round", || {
        units.iter().all(|unit| {
            let status = status(machine, unit);
            let gate = &status["file_systems"][0]["gate"];
            let (gated, set_point) = (&gate["gated"], &gate["decision"]["set_point"]);
            gated.as_u64() > Some(0) && set_point.as_u64() > Some(8)
        })
    });
}

/// Waits until units have made calls beyond those that they have made now.
fn until_going_on(machine: &SystemdMachine, units: &[&str]) {
    for unit in units {
        let before = calls(&status(machine, unit));
        common::until("further calls", || calls(&status(machine, unit)) > before);
    }
}

/// Kills `lucd`, and waits for the next one.
fn kill_lucd(machine: &SystemdMachine) {
    let main = "systemctl show -P MainPID lucd";
    let killed = machine.get(main);
    machine.get(&format!("kill -KILL {killed}"));
    common::until("another lucd", || !["0", &killed].contains(&machine.get(main).as_str()));
}

#[test]
fn services_of_two_users_meet_and_survive_lucd() {
    const CROWDS: [&str; 2] = ["crowd-redis", "crowd-etcd"];
    if !are_installed(&["redis-server", "etcd"]) {
        return;
    }
    let Some(machine) = SystemdMachine::boot("service-notify", &["redis", "etcd"]) else {
        return;
    };
    for user in ["redis", "etcd"] {
        crowd(&machine, user);
    }
    machine.get("systemctl daemon-reload && systemctl start etcd");
    let before = machine.get(TRACES);
    // Of a Go program nothing else can be told of.
    let said =
        machine.get("luc enable etcd --now && luc enable --reach notify crowd-redis crowd-etcd");
    assert!(said.contains("etcd.service: by notifications"), "{said}");
    machine.get("systemctl start crowd-redis crowd-etcd");
    until_together(&machine, &CROWDS);
    let etcd = status(&machine, "etcd");
    assert_eq!((reached(&etcd), &etcd["notes"]), (vec!["notifier"], &Value::Array(vec![])));
    assert!(calls(&etcd) > 0, "{etcd}");
    // The threads that let callers go have the real-time priority that its unit permits.
    let classes =
        "ps -L -o comm=,cls= -p $(pgrep -x lucd) | awk '$1 == \"releases\" { print $2 }' | sort -u";
    assert_eq!(machine.get(classes), "FF");

    // Nobody notices that lucd is killed, and the next one takes the services back. A failed call would end a crowd.
    for _ in 0..5 {
        kill_lucd(&machine);
        common::until("its services", || {
            let all = ["etcd", CROWDS[0], CROWDS[1]];
            all.iter().all(|unit| reached(&status(&machine, unit)).first() == Some(&"notifier"))
        });
    }
    let active = "systemctl is-active etcd crowd-redis crowd-etcd";
    machine.get(active);
    until_going_on(&machine, &CROWDS);
    until_together(&machine, &CROWDS);
    // One keeper for each, and one that awaits containers, but not those of the first one as well.
    assert_eq!(machine.get("pgrep -c luc-keeper"), "4");

    // Without lucd they go on, and it is said that nothing reaches them.
    machine.get("systemctl stop lucd && touch /tmp/stopped");
    machine.until("find /var/lib/redis -newer /tmp/stopped | grep -q .");
    assert_eq!(reached(&status(&machine, "crowd-redis")), ["nothing"]);
    machine.get(active);
    // A service that starts without it runs without luc, and says so.
    machine.get("systemctl mask --runtime lucd && systemctl restart crowd-etcd");
    let said = "runs without luc: the notifier cannot reach lucd";
    // systemd does not wait until the program runs.
    machine.until(&format!("journalctl --no-pager -u crowd-etcd | grep -q '{said}'"));
    machine.get("systemctl is-active crowd-etcd && systemctl unmask --runtime lucd");

    machine.get("luc disable --all --now && systemctl stop crowd-redis crowd-etcd lucd.socket lucd; systemctl reset-failed");
    machine.until("! pgrep luc-keeper");
    machine.get("rmdir /run/luc");
    assert_eq!(machine.get(TRACES), before);
}

/// Its keeper waits for the first call then, and two that did could each receive one.
#[test]
fn a_service_that_has_made_no_call_yet_survives_lucd() {
    if !are_installed(&["redis-server"]) {
        return;
    }
    let Some(machine) = SystemdMachine::boot("service-first-call", &["redis"]) else {
        return;
    };
    machine.write(
        "/etc/systemd/system/late.service",
        "[Service]\nExecStart=/bin/sh -c 'until [ -e /tmp/go ]; do sleep 0.05; done; \
         dd if=/dev/zero of=/var/lib/redis/written count=1 conv=fsync && touch /tmp/done; sleep 3600'\n",
    );
    machine.get("systemctl daemon-reload && luc enable --reach notify late");
    machine.get("systemctl start late");
    machine.until("pgrep sleep");
    for _ in 0..5 {
        kill_lucd(&machine);
        // The service's, and one that awaits containers.
        machine.until("[ $(pgrep -c luc-keeper) = 2 ]");
        common::until("the service is served again", || {
            reached(&status(&machine, "late"))[0] == "notifier"
        });
    }
    machine.get("touch /tmp/go");
    machine.until("[ -e /tmp/done ]");
    assert_eq!(calls(&status(&machine, "late")), 1);
    machine.get("luc disable --all --now && systemctl stop late lucd.socket lucd");
    machine.until("! pgrep luc-keeper");
}

#[test]
fn only_enabled_services_are_served() {
    if !are_installed(&["redis-server"]) {
        return;
    }
    let Some(machine) = SystemdMachine::boot("service-admission", &["redis"]) else {
        return;
    };
    machine.get("systemctl start lucd");
    // Of a shell, of no service.
    let output = machine.run(
        "/usr/lib/luc/luc-exec notify x @ /bin/sh my-name -c 'echo $0; grep -c ^SigIgn:.*1000$ /proc/$$/status'",
    );
    // Of the lower signals SIGPIPE alone is ignored.
    assert_eq!(stdout(&output), "my-name\n1\n");
    assert!(common::stderr(&output).contains("runs without luc"), "{output:?}");
    // Of a service that is not enabled, as another user.
    machine.write(
        "/etc/systemd/system/guest.service",
        "[Service]\nUser=redis\nType=oneshot\nExecStart=/usr/lib/luc/luc-exec notify %n s-- /bin/sh -c 'grep -q ^SigIgn:.*0000$$ /proc/$$$$/status && exit 3'\n",
    );
    machine.get("systemctl daemon-reload");
    let output = machine.run("systemctl start guest");
    assert!(!output.status.success());
    let said = machine.get("journalctl --no-pager -u guest -u lucd");
    assert!(said.contains("guest.service is not enabled"), "{said}");
    assert!(said.contains("/bin/sh runs without luc") && said.contains("status=3"), "{said}");
    // A program that is not there.
    let output = machine.run("/usr/lib/luc/luc-exec notify x -- /no/such/program");
    assert_eq!(output.status.code(), Some(203));
}
