//! `luc kernel` as a program, on a directory tree that stands for a machine: needs no module and no privileges.

use crate::common;
use crate::common::fake_machine;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{stderr, stdout};
use fake_machine::{FakeMachine, luc, run, with_own_journal};
use serde_json::Value;

/// The one line of a refusal.
fn refusal(fake: &FakeMachine, words: &[&str]) -> String {
    common::refusal(&run(fake, words))
}

#[test]
fn each_obstacle_to_loading_is_one_line() {
    let fake = FakeMachine::without_module();
    let text = refusal(&fake, &["kernel", "load"]);
    assert!(text.contains("apt install linux-headers-6.1.0-18-amd64"), "{text}");
    fs::remove_dir(fake.path("/proc/fs/jbd2")).expect("removed");
    assert!(refusal(&fake, &["kernel", "load"]).contains("modprobe ext4"));
    fake.write("/proc/sys/kernel/ftrace_enabled", "0\n");
    assert!(refusal(&fake, &["kernel", "load"]).contains("sysctl kernel.ftrace_enabled=1"));
    fs::remove_file(fake.path("/proc/modules")).expect("removed");
    assert!(refusal(&fake, &["kernel", "load"]).contains("without loadable modules"));
    for words in [
        vec!["kernel", "load", "--policy", "fast"],
        vec!["kernel", "status"],
        vec!["kernel", "unload"],
        vec!["kernel", "set", "--all", "policy=auto"],
        vec!["kernel", "build", "--kernel", "9.9"],
        vec!["run", "--level", "kernel", "--", "true"],
        vec!["run", "--level", "both", "--", "true"],
        vec!["run", "--copy-out", "on", "--", "true"],
        vec!["run", "--copy-out", "yes", "--", "true"],
    ] {
        refusal(&fake, &words);
    }
}

/// Headers whose `make modules` compiles a module's description of itself and nothing else.
fn write_headers(fake: &FakeMachine) {
    fake.write(
        "/lib/modules/6.1.0-18-amd64/build/Makefile",
        concat!(
            "modules:\n\tprintf '%s' '__attribute__((section(\".modinfo\"),used)) static const char i[]=",
            "\"version=",
            env!("CARGO_PKG_VERSION"),
            "\\0vermagic=6.1.0-18-amd64 SMP\";' >$(M)/i.c\n\tcc -c -o $(M)/luc.ko $(M)/i.c\n",
        ),
    );
}

fn has_compiler() -> bool {
    let found = ["make", "cc"].iter().all(|tool| {
        let output = Command::new(tool).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    });
    if !found {
        luc_testkit::skipped!("no make or cc");
    }
    found
}

#[test]
fn a_build_takes_luc_s_own_sources_and_no_others() {
    if !has_compiler() {
        return;
    }
    let fake = FakeMachine::without_module();
    // Below a folder that everybody can write, with something there that looks like luc's own build tree.
    let shared = fake.path("/shared");
    let program = shared.join("luc-0.1/bin/luc");
    fake.write("/shared/Cargo.toml", "");
    let planted = "$(shell touch $(src)/../planted)\nobj-m := luc.o\n";
    for place in ["/shared/kernel/luc", "/shared/luc-0.1/share/luc/kernel"] {
        fake.write(&format!("{place}/Kbuild"), planted);
    }
    fs::create_dir_all(program.parent().expect("parent")).expect("directory");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("opened");
    common::copy_luc(&program);
    let luc = |words: &[&str]| {
        Command::new(&program)
            .args(words)
            .env("LUC_KERNEL_TEST_ROOT", fake.root())
            .env("XDG_CACHE_HOME", fake.path("/cache"))
            .output()
            .expect("luc starts")
    };
    let output = luc(&["kernel", "build"]);
    let text = stderr(&output);
    assert!(text.contains("apt install linux-headers-6.1.0-18-amd64"), "{text}");
    write_headers(&fake);
    let output = luc(&["kernel", "build"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let message = stdout(&output);
    let module = message.split(' ').nth(1).expect("a path");
    assert!(Path::new(module).exists(), "{message}");
    // What was compiled is what luc has brought along, in a folder that is nobody else's.
    let folder = Path::new(module).parent().expect("parent");
    let kbuild = fs::read_to_string(folder.join("build/Kbuild")).expect("read");
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/luc/Kbuild");
    assert_eq!(kbuild, fs::read_to_string(ours).expect("read"));
    let own = fs::metadata(folder.parent().expect("parent")).expect("metadata");
    assert_eq!(own.permissions().mode() & 0o777, 0o700);
    // Everything is there now, but nothing is loaded for a tree.
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(text.contains("only root can load luc.ko"), "{text}");
    fake.write("/sys/module/module/parameters/sig_enforce", "Y\n");
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(text.contains("not signed") && text.contains("mokutil"), "{text}");
    // Another kernel was booted, and its headers are not there.
    fs::rename(fake.path("/lib/modules/6.1.0-18-amd64"), fake.path("/lib/modules/6.1.0-21-amd64"))
        .expect("renamed");
    let dkms = "/lib/modules/6.1.0-21-amd64/updates/dkms";
    fs::create_dir_all(fake.path(dkms)).expect("directory");
    fs::copy(module, fake.path(&format!("{dkms}/luc.ko"))).expect("copied");
    fake.write("/proc/sys/kernel/osrelease", "6.1.0-21-amd64\n");
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(text.contains("was built for kernel 6.1.0-18-amd64"), "{text}");
    // A build that fails says why, and where all of it is.
    fake.write(
        "/lib/modules/6.1.0-21-amd64/build/Makefile",
        "modules:\n\techo 'main.c:3:1: error: no member named j_x'; false\n",
    );
    let output = luc(&["kernel", "build"]);
    let text = stderr(&output);
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("no member named j_x") && text.contains("build.log"), "{text}");
}

#[test]
fn nothing_is_built_where_somebody_else_could_change_it() {
    if !has_compiler() {
        return;
    }
    let fake = FakeMachine::without_module();
    write_headers(&fake);
    // Root's place is below the tree's /var/cache, an ordinary user's below /cache.
    for open in ["/var/cache", "/cache"] {
        fs::create_dir_all(fake.path(open)).expect("directory");
        fs::set_permissions(fake.path(open), fs::Permissions::from_mode(0o777)).expect("opened");
    }
    let text = refusal(&fake, &["kernel", "build"]);
    assert!(
        text.contains("can be written by others (mode 0777)") && text.contains("chmod go-w"),
        "{text}"
    );
    for open in ["/var/cache", "/cache"] {
        assert!(!fake.path(open).join("luc").exists());
    }
}

#[test]
fn a_user_without_a_home_builds_nothing() {
    if !rustix::process::geteuid().is_root() {
        luc_testkit::skipped!("only root can try as another user");
        return;
    }
    let fake = FakeMachine::without_module();
    write_headers(&fake);
    // What a build in /tmp would find, made by somebody else.
    let output = common::as_nobody(fake.root())
        .args(["kernel", "build"])
        .env("LUC_KERNEL_TEST_ROOT", fake.root())
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .output()
        .expect("luc starts");
    let text = common::refusal(&output);
    assert!(text.contains("set HOME or XDG_CACHE_HOME"), "{text}");
}

#[test]
fn settings_are_all_or_none() {
    let fake = with_own_journal();
    let output = run(&fake, &["kernel", "set", "--all", "policy=delay", "delay_us=500"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fake.read("other-8", "delay_us"), "500");
    fake.refuse("other-8", "kp_milli");
    let text =
        refusal(&fake, &["kernel", "set", "--all", "policy=pid", "delay_us=7", "kp_milli=9"]);
    assert!(text.contains("kp_milli=9") && text.contains("nothing was changed"), "{text}");
    assert_eq!(fake.read("own-8", "delay_us"), "500");
    let place = fake.root().to_str().expect("plain");
    let output = run(&fake, &["kernel", "set", place, "policy=auto"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        (fake.read("own-8", "policy"), fake.read("other-8", "policy")),
        ("auto".into(), "delay".into())
    );
    for (words, reason) in [
        (vec!["--all", "polcy=auto"], "did you mean 'policy'?"),
        (vec!["--all", "max_hold_us=50001"], "50000"),
        (vec!["--all", "policy=off", "copy_out=yes"], "heuristic"),
        (vec!["policy=off"], "--all"),
        (vec!["--all", "own-8", "policy=off"], "--all"),
        (vec!["own-8"], "no setting"),
        (vec!["/no/such/place", "policy=off"], "/no/such/place"),
        (vec!["own-8", "7:98", "policy=off"], "7:98"),
        (vec!["--all"], "missing <MOUNTPOINT"),
    ] {
        let text = refusal(&fake, &[&["kernel", "set"], &words[..]].concat());
        assert!(text.contains(reason), "{words:?}: {text}");
        assert_eq!(fake.read("own-8", "policy"), "auto", "{words:?}");
    }
}

#[test]
fn status_is_a_table_and_json() {
    let fake = with_own_journal();
    let output = run(&fake, &["kernel", "status"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("PER COMMIT") && text.contains("90 x 372 us"), "{text}");
    let output = run(&fake, &["kernel", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(status["interface"], 1);
    assert_eq!(status["is_layout_checked"], true);
    assert_eq!(status["is_kernel_tested"], true);
    let journals = status["journals"].as_array().expect("journals");
    let own = journals.iter().find(|j| j["journal"] == "own-8").expect("own");
    assert_eq!(own["settings"]["policy"], "off");
    assert_eq!(own["settings"]["max_hold_us"], 20_000);
    assert_eq!(own["stats"]["error_milli"], -500);
    assert_eq!(own["fsyncs_per_commit"], 15.5);
    assert_eq!(own["device"], fake.own_device());
    // A kernel that could not be asked for its types, and that nobody has tried.
    fake.write("/sys/kernel/luc/layout", "unchecked\n");
    fake.write("/sys/kernel/luc/kernel", "untested\n");
    let text = stdout(&run(&fake, &["kernel", "status"]));
    assert!(text.contains("WARNING: this kernel has no type information"), "{text}");
    assert!(text.contains("has not been tested on this kernel"), "{text}");
    for wrong in ["--watch=1ms", "--watch=soon"] {
        refusal(&fake, &["kernel", "status", wrong]);
    }
}

#[test]
fn a_watch_shows_what_is_new_until_it_is_interrupted() {
    let fake = with_own_journal();
    let mut child = luc(&fake, &["kernel", "status", "--watch=100ms", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("luc starts");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let mut fsyncs = || {
        let line = lines.next().expect("a line").expect("read");
        let status: Value = serde_json::from_str(&line).expect("JSON");
        status["journals"][1]["stats"]["fsyncs"].as_u64().expect("a number")
    };
    assert_eq!(fsyncs(), 1550);
    assert_eq!(fsyncs(), 0);
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert_eq!(child.wait().expect("waited for").code(), Some(0));
}
