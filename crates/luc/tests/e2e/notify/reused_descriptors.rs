//! Descriptors that another thread closes while their call is held: what was looked at is what is synchronized.

use std::process::Command;

use crate::common::stderr;
use crate::notify::many_callers::NotifyDisk;

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status();
    assert!(status.expect("it starts").success(), "{program} {words:?}");
}

/// Each time the power is cut at once: what the program was told to be durable is.
#[test]
fn what_fsync_said_to_be_durable_is_though_its_number_is_another_file() {
    let Some(place) = NotifyDisk::new("reused") else {
        return;
    };
    let program = place.compile("reused", "close_while_syncing.c", &["-O1"]);
    let other = place.disk.path("other");
    let mount = place.disk.mount();
    let mut durable = 0;
    for (round, how) in ["close", "reuse"].into_iter().cycle().take(10).enumerate() {
        let name = round.to_string();
        let words = [program.as_str(), &mount, &other, how, &name];
        let options = ["--quiet", "--policy", "delay:15ms", "--reach", "notify"];
        let output = place.run(&options, &words).output().expect("luc starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let device = place.disk.luc(&["disk", "list", "--json"]);
        let device: serde_json::Value = serde_json::from_slice(&device.stdout).expect("JSON");
        let device = device[0]["device"].as_str().expect("a device").to_owned();
        assert!(place.disk.luc(&["disk", "cut", "disk"]).status.success());
        run("umount", &[&mount]);
        assert!(place.disk.luc(&["disk", "restore", "disk"]).status.success());
        run("mount", &[&device, &mount]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said == "ok\n" {
            let left = std::fs::read(format!("{mount}/{name}")).unwrap_or_default();
            assert_eq!(left, b"important", "{how}");
            durable += 1;
            if durable == 3 {
                return;
            }
        } else {
            // Closed before a supervisor that had no processor could look.
            assert_eq!(said, "Bad file descriptor\n", "{how}");
        }
    }
    assert!(durable > 0, "no call was held before its file was closed");
}
