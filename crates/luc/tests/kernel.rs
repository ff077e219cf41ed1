//! `luc kernel` and `luc run --level` as programs, on a directory tree that stands for a machine: needs no
//! module and no privileges.

#[path = "../../kernel/tests/fake/mod.rs"]
mod fake;

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fake::Fake;
use serde_json::Value;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn luc(fake: &Fake, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
    command
        .args(words)
        .env("LUC_KERNEL_TEST_ROOT", fake.root())
        .env("XDG_CACHE_HOME", fake.path("/cache"));
    command
}

fn run(fake: &Fake, words: &[&str]) -> Output {
    luc(fake, words).output().expect("luc starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one line of a refusal.
fn refusal(fake: &Fake, words: &[&str]) -> String {
    let output = run(fake, words);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{words:?}: {text}");
    text
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        sleep(Duration::from_millis(5));
    }
}

/// A journal for the file system that the tree is on, so that programs here use it.
fn with_own_journal() -> Fake {
    let fake = Fake::new();
    fake.mount("own-8", &fake.own_device());
    fake.mount("other-8", "7:99");
    fake
}

/// A run of a command that syncs a file, then goes on until its standard input ends.
fn start(fake: &Fake, words: &[&str]) -> Child {
    let mut command = luc(fake, &["run"]);
    command.args(words).args(["--", "sh", "-c"]);
    let script = "dd if=/dev/zero of=\"$0\" bs=1k count=1 conv=fsync status=none; echo; read line";
    command
        .arg(script)
        .arg(fake.path("/synced"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("luc starts");
    child
        .stdout
        .as_mut()
        .expect("piped")
        .read_exact(&mut [0])
        .expect("synced");
    child
}

/// Ends a run, and gives what it printed.
fn finish(mut child: Child) -> String {
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("waited for");
    assert_eq!(
        output.status.code(),
        Some(1),
        "read at the end of its input"
    );
    stderr(&output)
}

fn kill(child: &mut Child) {
    child.kill().expect("killed");
    child.wait().expect("waited for");
}

#[test]
fn each_obstacle_to_loading_is_one_line() {
    let fake = Fake::without_module();
    let text = refusal(&fake, &["kernel", "load"]);
    assert!(
        text.contains("sources") || text.contains("apt install linux-headers-6.1.0-18-amd64"),
        "{text}"
    );
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
fn write_headers(fake: &Fake) {
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
        println!("skipped: no make or cc");
    }
    found
}

#[test]
fn a_build_leaves_the_sources_as_they_are() {
    if !has_compiler() {
        return;
    }
    let fake = Fake::without_module();
    // An installed luc: its sources are in its prefix.
    let program = fake.path("/usr/local/bin/luc");
    fake.write("/usr/local/share/luc/kernel/Kbuild", "obj-m := luc.o\n");
    fs::create_dir_all(program.parent().expect("parent")).expect("directory");
    fs::copy(env!("CARGO_BIN_EXE_luc"), &program).expect("copied");
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
    assert!(
        text.contains("apt install linux-headers-6.1.0-18-amd64"),
        "{text}"
    );
    write_headers(&fake);
    let output = luc(&["kernel", "build"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    let module = said.split(' ').nth(1).expect("a path");
    assert!(Path::new(module).exists(), "{said}");
    let sources = fs::read_dir(fake.path("/usr/local/share/luc/kernel")).expect("list");
    assert_eq!(sources.count(), 1);
    // Everything is there now, but nothing is loaded for a tree.
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(text.contains("only root can load luc.ko"), "{text}");
    fake.write("/sys/module/module/parameters/sig_enforce", "Y\n");
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(
        text.contains("not signed") && text.contains("mokutil"),
        "{text}"
    );
    // Another kernel was booted, and its headers are not there.
    fs::rename(
        fake.path("/lib/modules/6.1.0-18-amd64"),
        fake.path("/lib/modules/6.1.0-21-amd64"),
    )
    .expect("renamed");
    let dkms = "/lib/modules/6.1.0-21-amd64/updates/dkms";
    fs::create_dir_all(fake.path(dkms)).expect("directory");
    fs::copy(module, fake.path(&format!("{dkms}/luc.ko"))).expect("copied");
    fake.write("/proc/sys/kernel/osrelease", "6.1.0-21-amd64\n");
    let text = stderr(&luc(&["kernel", "load"]));
    assert!(
        text.contains("was built for kernel 6.1.0-18-amd64"),
        "{text}"
    );
    // A build that fails says why, and where all of it is.
    fake.write(
        "/lib/modules/6.1.0-21-amd64/build/Makefile",
        "modules:\n\techo 'main.c:3:1: error: no member named j_x'; false\n",
    );
    let output = luc(&["kernel", "build"]);
    let text = stderr(&output);
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(2), 1),
        "{text}"
    );
    assert!(
        text.contains("no member named j_x") && text.contains("build.log"),
        "{text}"
    );
}

#[test]
fn settings_are_all_or_none() {
    let fake = with_own_journal();
    let output = run(
        &fake,
        &["kernel", "set", "--all", "policy=delay", "delay_us=500"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fake.read("other-8", "delay_us"), "500");
    fake.refuse("other-8", "kp_milli");
    let text = refusal(
        &fake,
        &[
            "kernel",
            "set",
            "--all",
            "policy=pid",
            "delay_us=7",
            "kp_milli=9",
        ],
    );
    assert!(
        text.contains("kp_milli=9") && text.contains("nothing was changed"),
        "{text}"
    );
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
        (vec!["--all"], "required"),
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
    assert!(
        text.contains("PER COMMIT") && text.contains("90 x 372 us"),
        "{text}"
    );
    let output = run(&fake, &["kernel", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(status["interface"], 1);
    let journals = status["journals"].as_array().expect("journals");
    let own = journals
        .iter()
        .find(|j| j["journal"] == "own-8")
        .expect("own");
    assert_eq!(own["settings"]["policy"], "off");
    assert_eq!(own["settings"]["max_hold_us"], 20_000);
    assert_eq!(own["stats"]["error_milli"], -500);
    assert_eq!(own["fsyncs_per_commit"], 15.5);
    assert_eq!(own["device"], fake.own_device());
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
        status["journals"][1]["stats"]["fsyncs"]
            .as_u64()
            .expect("a number")
    };
    assert_eq!(fsyncs(), 1550);
    assert_eq!(fsyncs(), 0);
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill");
    assert_eq!(child.wait().expect("waited for").code(), Some(0));
}

#[test]
fn a_run_lends_settings_where_it_goes_and_nowhere_else() {
    let fake = with_own_journal();
    let json = fake.path("/report.json");
    let child = start(
        &fake,
        &["--level", "kernel", "--json", json.to_str().expect("plain")],
    );
    until("the loan", || fake.read("own-8", "policy") == "auto");
    assert_eq!(fake.read("own-8", "copy_out"), "auto");
    assert_eq!(fake.read("other-8", "policy"), "off");
    let status = stdout(&run(&fake, &["kernel", "status"]));
    assert!(status.contains("auto*"), "{status}");
    fake.write("/sys/kernel/luc/own-8/stats/fsyncs", "1710\n");
    fake.write("/sys/kernel/luc/own-8/stats/commits_by_fsync", "110\n");
    let text = finish(child);
    assert!(
        text.contains("kernel module, policy auto, copy-out auto: 160 fsyncs"),
        "{text}"
    );
    assert!(text.contains("16.0 for each"), "{text}");
    assert_eq!(fake.read("own-8", "policy"), "off");
    assert_eq!(fake.read("own-8", "copy_out"), "off");
    let report: Value = serde_json::from_slice(&fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["level"], "kernel");
    assert_eq!(report["policy"], "off");
    assert_eq!(report["kernel"][0]["stats"]["fsyncs"], 160);
    assert_eq!(report["kernel"][0]["is_lent"], true);
    assert_eq!(report["kernel"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_static_program_s_file_system_is_found_too() {
    let fake = with_own_journal();
    let source = fake.path("/waiter.c");
    let program = fake.path("/waiter");
    fake.write(
        "/waiter.c",
        "#include <fcntl.h>\n#include <unistd.h>\n\
         int main(int n, char **a) { char c; return open(a[1], O_CREAT | O_WRONLY, 0600) < 0 || \
         read(0, &c, 1) < 0; }\n",
    );
    let compiled = Command::new("cc")
        .arg("-static")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: cc cannot link statically here");
        return;
    }
    let mut child = luc(&fake, &["run", "--level", "kernel", "--quiet", "--"])
        .arg(&program)
        .arg(fake.path("/written"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc starts");
    until("the loan", || fake.read("own-8", "policy") == "auto");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("waited for");
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
    assert_eq!(fake.read("own-8", "policy"), "off");
}

#[test]
fn a_killed_run_is_cleaned_up_by_its_watcher() {
    let fake = with_own_journal();
    let mut child = start(&fake, &["--level", "both"]);
    until("the loan", || fake.read("own-8", "policy") == "auto");
    kill(&mut child);
    until("the restoration", || fake.read("own-8", "policy") == "off");
    until("the end of the record", || {
        !fake.path("/run/luc/kernel/record.json").exists()
    });
}

/// The watcher that a run has started.
fn watcher_of(run: &Child) -> Option<u32> {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let children = fs::read_to_string(children).ok()?;
    children.split_whitespace().find_map(|child| {
        let words = fs::read(format!("/proc/{child}/cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains("kernel watch").then(|| child.parse().ok())?
    })
}

#[test]
fn a_run_killed_with_its_watcher_is_cleaned_up_by_the_next_luc() {
    let fake = with_own_journal();
    let mut child = start(&fake, &["--level", "kernel"]);
    until("the loan", || fake.read("own-8", "policy") == "auto");
    let Some(watcher) = watcher_of(&child) else {
        kill(&mut child);
        println!("skipped: this kernel has no /proc/PID/task/TID/children");
        return;
    };
    Command::new("kill")
        .args(["-KILL", &watcher.to_string()])
        .status()
        .expect("kill");
    kill(&mut child);
    assert_eq!(fake.read("own-8", "policy"), "auto");
    let output = run(&fake, &["run", "--quiet", "--", "true"]);
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
    assert_eq!(fake.read("own-8", "policy"), "off");
}

#[test]
fn two_runs_do_not_restore_each_other_s_settings_away() {
    let fake = with_own_journal();
    let mut first = start(&fake, &["--level", "kernel"]);
    until("the first loan", || fake.read("own-8", "policy") == "auto");
    let second = start(&fake, &["--level", "kernel", "--policy", "pid:8"]);
    until("the second loan", || fake.read("own-8", "policy") == "pid");
    kill(&mut first);
    until("the first holder's end", || {
        let record = fs::read_to_string(fake.path("/run/luc/kernel/record.json"));
        record.is_ok_and(|text| text.matches("\"holder\"").count() == 1)
    });
    assert_eq!(fake.read("own-8", "policy"), "pid");
    assert_eq!(fake.read("own-8", "copy_out"), "auto");
    // The module stays as long as somebody lends its settings.
    let text = stderr(&run(&fake, &["kernel", "unload", "--timeout", "0s"]));
    assert!(
        text.contains(&format!("luc run (process {}) on own-8", second.id())),
        "{text}"
    );
    finish(second);
    assert_eq!(fake.read("own-8", "policy"), "off");
    assert_eq!(fake.read("own-8", "set_point"), "0");
}

#[test]
fn the_gate_stands_aside_where_the_module_batches() {
    let fake = with_own_journal();
    let script = "echo \"$LUC_GATE_COUNT_ONLY $LUC_GATE_POLICY\"";
    let words = ["run", "--quiet", "--", "sh", "-c", script];
    let own = fake.own_device();
    let said = stdout(&run(&fake, &words));
    let (devices, policy) = said.trim().split_once(' ').expect("two words");
    let mut devices: Vec<_> = devices.split(',').collect();
    devices.sort_unstable();
    let mut expected = vec![own.as_str(), "7:99"];
    expected.sort_unstable();
    assert_eq!((devices, policy), (expected, "auto"));
    let said = stdout(&run(
        &fake,
        &[&["run", "--level", "gate"], &words[1..]].concat(),
    ));
    assert_eq!(said.trim(), "auto");
}

#[test]
fn a_comparison_switches_the_module_off_for_the_other_side() {
    let fake = with_own_journal();
    let log = fake.path("/log");
    let policy = fake.path("/sys/kernel/luc/own-8/policy");
    let script = format!(
        "dd if=/dev/zero of=\"$0\" bs=1k count=1 conv=fsync status=none; \
         sleep 0.2; cat '{}' >>'{}'",
        policy.display(),
        log.display()
    );
    fake.write("/sys/kernel/luc/own-8/policy", "delay\n");
    let synced = fake.path("/synced");
    let output = run(
        &fake,
        &[
            "run",
            "--level",
            "kernel",
            "--no-why",
            "--compare",
            "2",
            "--",
            "sh",
            "-c",
            &script,
            synced.to_str().expect("plain"),
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = fs::read_to_string(log).expect("log");
    let mut policies: Vec<_> = log.lines().collect();
    policies.sort_unstable();
    assert_eq!(policies, ["auto", "auto", "off", "off"]);
    assert_eq!(fake.read("own-8", "policy"), "delay");
    assert!(
        stderr(&output).contains("without the kernel module"),
        "{}",
        stderr(&output)
    );
}
