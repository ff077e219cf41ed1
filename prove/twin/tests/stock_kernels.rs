//! Runs on distributions' kernels, where the cgroup v2 has the controller for processors: a quota and lost packets.
//! Skipped, with the reason, where QEMU or a kernel is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use luc_twin::truth::{Folder, Kind, Planted, Role, Row, streams, trees};
use luc_vm::VirtualMachine;

const PROGRAM: &str = env!("CARGO_BIN_EXE_luc-twin");

/// Runs each plant, kills one run, and checks that the cgroup is gone.
const SCRIPT: &str = r#"
for module in veth bridge sch_ingress cls_bpf; do modprobe $module || exit 1; done
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control || exit 1
base="--documents 500 --clients 3 --requests 240 --seed 5"
for plant in quota:4 loss:20; do
	luc-twin run "$OUT/${plant%:*}" $base --plant $plant || exit 1
done
ls -d /sys/fs/cgroup/luc-twin-* 2>/dev/null && exit 1
luc-twin run /run/killed --documents 500 --requests 100000 --plant quota &
while ! grep -qs . /sys/fs/cgroup/luc-twin-*/cgroup.procs; do usleep 100000; done
sleep 1
kill -KILL $!
for _ in $(seq 300); do
	ls -d /sys/fs/cgroup/luc-twin-* 2>/dev/null || exit 0
	usleep 100000
done
exit 1
"#;

/// Reads the truth of one of the script's runs.
fn folder(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Folder {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files {
        if let Some(file) = path.strip_prefix(&format!("{name}/")) {
            fs::write(folder.path().join(file), bytes).expect("written");
        }
    }
    Folder::read(folder.path()).expect("read")
}

/// Returns, for searches at the planted host, the longest duration during the trouble and the median of the others.
fn longest_and_median(folder: &Folder) -> (u64, u64) {
    let (process, planted) = folder.planted().next().expect("planted");
    let is_in =
        |planted: &Planted, from_ns, to_ns| from_ns <= planted.to_ns && planted.from_ns <= to_ns;
    let (mut met, mut others) = (Vec::new(), Vec::new());
    for search in trees(folder).expect("whole").iter().flat_map(|tree| &tree.searches) {
        if folder.processes[search.host].header.host != process.header.host {
            continue;
        }
        let took = search.gathered_ns - search.asked_ns;
        if is_in(planted, search.asked_ns, search.gathered_ns) {
            met.push(took);
        } else {
            others.push(took);
        }
    }
    others.sort_unstable();
    (met.into_iter().max().expect("some"), others[others.len() / 2])
}

fn check(version: &str) {
    let Some(kernel) = luc_testkit::vm::kernel(version) else {
        return;
    };
    let outcome = VirtualMachine::new(&kernel)
        .program(PROGRAM)
        .program("ip")
        .program("tc")
        .program("nsenter")
        .module("veth")
        .module("bridge")
        .module("sch_ingress")
        .module("cls_bpf")
        .timeout(Duration::from_secs(600))
        .script(SCRIPT)
        .run()
        .expect("a guest");
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    assert_eq!(outcome.complaints(), Vec::<&str>::new());
    for (name, kind) in [("quota", Kind::Quota), ("loss", Kind::Loss)] {
        let folder = folder(&outcome.files, name);
        let kinds: BTreeSet<Kind> = folder.planted().map(|(_, planted)| planted.kind).collect();
        assert_eq!(kinds, BTreeSet::from([kind]));
        streams(&folder).expect("whole streams");
        let (longest, median) = longest_and_median(&folder);
        assert!(longest > 3 * median, "{name}: {longest} ns and {median} ns");
    }
    let lossy = folder(&outcome.files, "loss");
    let front_end = lossy.of(Role::FrontEnd).next().expect("a front end");
    let again = front_end.rows.iter().map(|row| match row {
        Row::Connection(connection) => connection.retransmitted_bytes,
        _ => 0,
    });
    assert!(again.sum::<u64>() > 0);
}

#[test]
fn quota_and_loss_on_linux_6_1() {
    check("6.1");
}

#[test]
fn quota_and_loss_on_linux_6_12() {
    check("6.12");
}
