//! `luc sweep` on a device of the user's, from end to end. A refused device is left unchanged, and a used one is
//! given back. A loop device stands for the real one; that needs root, and what lacks it says `skipped`.

use crate::common::loop_device;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use crate::common::{LUC, refusal, stderr, stdout, until};
use loop_device::{LoopDevice, run};
use serde_json::Value;

/// `$DEVICE` is the device; what is refused replaces a line.
const PLAN: &str = r#"
settle = "1ms"
[stop]
goal = 0.0001
min = 6
max = 6
[[workload]]
name = "touch"
command = ["sh", "-c", "echo x > f; sync f; sleep 0.02; echo 5"]
figure = { regex = "([0-9]+)", unit = "things" }
[[target]]
name = "disk"
fs = "ext4"
mkfs = "-J size=4"
device = "$DEVICE"
erase = "$DEVICE"
"#;

/// A device, and a folder for a sweep on it.
struct Device {
    device: Rc<LoopDevice>,
    /// Path that replaces `$DEVICE` in a plan: the device, or a partition of it.
    named: String,
    folder: PathBuf,
}

impl Device {
    fn new(size_mib: u64) -> Option<Self> {
        let device = LoopDevice::new(size_mib)?;
        Some(Self {
            named: device.name(),
            folder: device.folder.path().to_owned(),
            device: Rc::new(device),
        })
    }

    /// Another sweep on the same, or on a partition of it.
    fn another(&self, folder: &str, named: &str) -> Self {
        let folder = self.device.beside(folder);
        fs::create_dir(&folder).expect("made");
        Self { device: Rc::clone(&self.device), named: named.to_owned(), folder }
    }

    fn name(&self) -> String {
        self.named.clone()
    }

    fn plan(&self, plan: &str) {
        let text = plan.replace("$DEVICE", &self.name());
        fs::write(self.folder.join("plan.toml"), text).expect("written");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(LUC);
        command
            .args(["sweep", "plan.toml", "--out", "out", "--json"])
            .current_dir(&self.folder)
            .env("LUC_RUN_DIR", self.folder.join("run"))
            .stdin(Stdio::null());
        command
    }

    fn sweep(&self, plan: &str) -> Output {
        self.plan(plan);
        self.command().output().expect("luc runs")
    }

    fn signatures(&self) -> String {
        loop_device::signatures(&self.named)
    }

    fn scheduler(&self) -> PathBuf {
        let name = self.device.path.file_name().expect("a name");
        Path::new("/sys/block").join(name).join("queue/scheduler")
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        mounts.contains(&format!(" {} ", self.named))
    }

    /// Begins a sweep that does not end by itself, and waits until it is at it.
    fn begin(&self) -> Going {
        self.plan(&PLAN.replace("= 6", "= 10000"));
        let child =
            self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("luc starts");
        let mut going = Going(child);
        until("a mounted device", || {
            let ended = going.0.try_wait().expect("known");
            assert!(ended.is_none(), "it ended: {ended:?}");
            self.is_mounted()
        });
        going
    }

    /// Refused with one line that has these words; nothing is made, and what is on the device stays.
    fn refuses(&self, plan: &str, words: &[&str]) {
        let before = self.signatures();
        let message = refusal(&self.sweep(plan));
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!self.folder.join("out").exists(), "{message}");
        assert_eq!(self.signatures(), before);
    }

    /// Given back empty, with nothing left of the sweep but its results.
    fn assert_given_back(&self) {
        assert_eq!(self.signatures(), "");
        assert!(!self.is_mounted());
        for name in ["out/devices.json", "out/work"] {
            assert!(!self.folder.join(name).exists(), "{name}");
        }
    }
}

/// A sweep, killed at the latest when dropped; its cleanup process clears up.
struct Going(Child);

impl Drop for Going {
    fn drop(&mut self) {
        // One that has ended is as wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_device_is_formatted_and_given_back() {
    let Some(device) = Device::new(64) else {
        return;
    };
    let before = fs::read_to_string(device.scheduler()).expect("readable");
    assert!(before.contains("[none]"), "{before}");
    if !before.contains("mq-deadline") {
        luc_testkit::skipped!("this kernel has no mq-deadline");
        return;
    }
    let look = format!("grep -q '.none.' {} && echo 1 || echo 2", device.scheduler().display());
    let plan = PLAN.replace("sleep 0.02; echo 5", &look.replace(".none.", "[[]none"));
    let plan = format!("scheduler = [\"none\", \"mq-deadline\"]\n{plan}");
    let output = device.sweep(&plan);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let points = report["points"].as_array().expect("points");
    let medians: Vec<(&str, f64)> = points
        .iter()
        .map(|point| {
            let median = point["interval"]["median"].as_f64();
            (point["key"].as_str().expect("key"), median.expect("a median"))
        })
        .collect();
    assert_eq!(medians, [("touch,1,disk,off,none", 1.0), ("touch,1,disk,off,mq-deadline", 2.0)]);
    for repeat in report["repeats"].as_array().expect("repeats") {
        let mount = repeat["environment"]["mount"].as_str().expect("a mount");
        assert!(mount.contains(&device.name()), "{mount}");
        assert!(repeat["counters"]["disk.writes"].as_f64() > Some(0.0));
    }
    device.assert_given_back();
    assert_eq!(fs::read_to_string(device.scheduler()).expect("readable"), before);
}

#[test]
fn what_may_not_be_formatted_is_left_alone() {
    let Some(device) = Device::new(64) else {
        return;
    };
    let name = device.name();
    let without = |line: &str| PLAN.replace(line, "");
    device.refuses(&without("erase = \"$DEVICE\"\n"), &[&name, "erase = "]);
    device.refuses(
        &PLAN.replace("fs = \"ext4\"\nmkfs = \"-J size=4\"", "fs = \"xfs\""),
        &[&name, "300M", "64 MiB"],
    );
    device.refuses(&PLAN.replace("$DEVICE", "/dev/null"), &["/dev/null", "no block device"]);
    device.refuses(&PLAN.replace("$DEVICE", "/dev/no-such"), &["/dev/no-such", "no such device"]);
    device.refuses(&format!("scheduler = [\"noop\"]\n{PLAN}"), &["plan.toml:1:", "noop"]);
    run("blockdev", &["--setro", &name]);
    device.refuses(PLAN, &[&name, "read-only"]);
    run("blockdev", &["--setrw", &name]);
    // Content, as such and in use.
    run("mkfs.ext4", &["-q", "-F", &name]);
    device.refuses(PLAN, &[&name, "not empty (ext4)", "overwrite = true"]);
    let overwrite = format!("{PLAN}overwrite = true\n");
    let mounted = device.device.mount(&name);
    device.refuses(&overwrite, &[&name, "is mounted on"]);
    drop(mounted);
    // Not even then: a partition table.
    run("wipefs", &["--all", "--quiet", &name]);
    // The smallest one: its magic number at the end of the first sector, and one entry.
    let mut sector = [0_u8; 512];
    sector[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 2, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::write(device.folder.join("image-head"), sector).expect("written");
    run(
        "dd",
        &[
            &format!("if={}", device.folder.join("image-head").display()),
            &format!("of={name}"),
            "conv=fsync,notrunc",
            "status=none",
        ],
    );
    device.refuses(&overwrite, &[&name, "partition table"]);
}

#[test]
fn content_goes_where_the_plan_says_so_and_a_killed_sweep_gives_the_device_back() {
    let Some(device) = Device::new(64) else {
        return;
    };
    run("mkfs.ext4", &["-q", "-F", &device.name()]);
    device.plan(&format!("{PLAN}overwrite = true\n"));
    let mut child =
        device.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("luc starts");
    let results = device.folder.join("out/results.jsonl");
    until("a repeat", || {
        let text = fs::read_to_string(&results).unwrap_or_default();
        text.matches('\n').count() > 2 && device.is_mounted()
            || child.try_wait().is_ok_and(|ended| ended.is_some())
    });
    assert!(child.try_wait().expect("known").is_none(), "it ended before it was killed");
    child.kill().expect("killed");
    child.wait().expect("waited for");
    until("a device given back", || {
        !device.folder.join("out/devices.json").exists() && !device.is_mounted()
    });
    until("a clear house", || !device.folder.join("out/work").exists());
    device.assert_given_back();
    let output = device.command().output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["points"][0]["count"], 6);
    device.assert_given_back();
}

/// The child of a sweep that clears up after it.
fn cleanup_of(sweep: u32) -> Option<String> {
    let children = fs::read_to_string(format!("/proc/{sweep}/task/{sweep}/children")).ok()?;
    let mut children = children.split_whitespace();
    let found = children.find(|pid| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        words.is_ok_and(|words| words.contains("--clean-up"))
    });
    found.map(str::to_owned)
}

#[test]
fn a_file_system_of_the_user_s_own_stays_after_a_sweep_was_killed() {
    let Some(device) = Device::new(64) else {
        return;
    };
    let name = device.name();
    let mut going = device.begin();
    let Some(cleanup) = cleanup_of(going.0.id()) else {
        luc_testkit::skipped!("this kernel has no /proc/PID/task/TID/children");
        return;
    };
    run("kill", &["-KILL", &cleanup, &going.0.id().to_string()]);
    going.0.wait().expect("waited for");
    let devices = device.folder.join("out/devices.json");
    let left = fs::read_to_string(&devices).expect("left");
    let entries: Value = serde_json::from_str(&left).expect("JSON");
    let own = entries[0]["uuid"].as_str().expect("a UUID");
    assert!(run("wipefs", &["--noheadings", "--output", "UUID", &name]).contains(own));
    // What the sweep was doing ends; the user does not know of any of this and takes the device for something else.
    run("pkill", &["-KILL", "-g", &cleanup]);
    until("a free device", || {
        let _ = Command::new("umount").arg(&name).stderr(Stdio::null()).status();
        !device.is_mounted()
    });
    run("mkfs.ext4", &["-q", "-F", "-L", "PRECIOUS", &name]);
    let mounted = device.device.mount(&name);
    fs::write(Path::new(&mounted.message).join("data"), "precious").expect("written");
    drop(mounted);
    fs::remove_dir(device.folder.join("a place")).expect("removed");
    // Whatever comes first: the same command without any note of the first, another command, the same again.
    let without_note = |device: &Device| {
        let mut command = device.command();
        command.env("LUC_RUN_DIR", device.folder.join("other run"));
        command.output().expect("luc runs")
    };
    for look in 0..3 {
        let message = match look {
            0 => refusal(&without_note(&device)),
            1 => {
                fs::write(&devices, &left).expect("written");
                let mut restore = Command::new(LUC);
                restore.args(["sweep", "restore"]);
                restore.env("LUC_RUN_DIR", device.folder.join("run"));
                let output = restore.output().expect("luc runs");
                assert!(output.status.success(), "{}", stderr(&output));
                refusal(&device.command().output().expect("luc runs"))
            }
            _ => {
                fs::write(&devices, &left).expect("written");
                refusal(&device.command().output().expect("luc runs"))
            }
        };
        assert!(message.contains(&name) && message.contains("not empty (ext4)"), "{message}");
        let label = run("wipefs", &["--noheadings", "--output", "LABEL", &name]);
        assert_eq!(label, "PRECIOUS");
    }
    let mounted = device.device.mount(&name);
    let data = fs::read_to_string(Path::new(&mounted.message).join("data"));
    assert_eq!(data.expect("read"), "precious");
    drop(mounted);
    fs::remove_dir(device.folder.join("a place")).expect("removed");
    // A device that no plan names stays, whatever the file says.
    let other = LoopDevice::new(64).expect("as before");
    run("mkfs.ext4", &["-q", "-F", "-U", own, &other.name()]);
    let about = fs::metadata(&other.path).expect("there");
    let number = std::os::unix::fs::MetadataExt::rdev(&about);
    let block = other.path.file_name().expect("a name").to_string_lossy().into_owned();
    let sequence = fs::read_to_string(format!("/sys/block/{block}/diskseq"));
    let forged = serde_json::json!([{
        "path": other.name(), "number": [rustix::fs::major(number), rustix::fs::minor(number)],
        "sequence": sequence.ok().and_then(|text| text.trim().parse::<u64>().ok()),
        "boot": entries[0]["boot"], "scheduler": null, "uuid": own,
    }]);
    fs::write(&devices, forged.to_string()).expect("written");
    run("wipefs", &["--all", "--quiet", &name]);
    let going = device.begin();
    assert_eq!(other.signatures(), "ext4");
    drop(going);
    until("a device given back", || !device.folder.join("out/work").exists());
    device.assert_given_back();
    assert_eq!(other.signatures(), "ext4");
}

#[test]
fn a_device_is_of_one_sweep_until_its_cleanup_is_through() {
    let Some(device) = Device::new(64) else {
        return;
    };
    let second = device.another("second", &device.name());
    second.plan(PLAN);
    let first = device.begin();
    let message = refusal(&second.command().output().expect("luc runs"));
    let words = [device.name(), format!("another luc (pid {})", first.0.id())];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(!second.folder.join("out").exists());
    assert!(device.is_mounted() || device.folder.join("out/work").exists());
    // Killed: the next has it as soon as it is given back.
    drop(first);
    let output = second.command().output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["points"][0]["count"], 6);
    device.assert_given_back();
    second.assert_given_back();
}

#[test]
fn nobody_gets_a_device_between_its_repeats() {
    let Some(device) = Device::new(64) else {
        return;
    };
    for folder in ["directory", "mounted"] {
        fs::create_dir(device.folder.join(folder)).expect("made");
    }
    // It tries to take the device, also while the sweep has another target and nothing is mounted. What is mounted can
    // be mounted again.
    let take = format!(
        "flock --nonblock $DEVICE true && echo 2 || {{ mkfs.ext4 -q -F $DEVICE && echo 3; }} || \
         {{ ! grep -q $DEVICE /proc/mounts && mount $DEVICE {} && echo 4; }} || echo 5",
        device.folder.join("mounted").display()
    );
    let plan = format!(
        "{PLAN}[[target]]\nname = \"directory\"\ndirectory = \"{}\"\n",
        device.folder.join("directory").display()
    );
    device.plan(&plan.replace("echo 5", &take));
    // With this util-linux's tools wait for the lock, which the sweep has itself.
    let output = device.command().env("LOCK_BLOCK_DEVICE", "yes").output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let repeats = report["repeats"].as_array().expect("repeats");
    assert_eq!(repeats.len(), 12);
    for repeat in repeats {
        assert_eq!(repeat["value"], 5.0, "{repeat}");
    }
    device.assert_given_back();
}

#[test]
fn partitions_of_a_disk_have_a_sweep_each_but_one_scheduler() {
    let Some(device) = Device::new(160) else {
        return;
    };
    let names = device.device.add_partitions(2, 64);
    let first = device.another("first", &names[0]);
    let second = device.another("second", &names[1]);
    let whole = device.another("whole", &device.name());
    let going = first.begin();
    let output = second.sweep(PLAN);
    assert!(output.status.success(), "{}", stderr(&output));
    second.assert_given_back();
    fs::remove_dir_all(second.folder.join("out")).expect("removed");
    let with_scheduler = format!("scheduler = [\"none\"]\n{PLAN}");
    let its_disk = format!("has its disk {}", device.name());
    second.refuses(&with_scheduler, &[&names[1], "another luc", &its_disk]);
    whole.plan(PLAN);
    let message = refusal(&whole.command().output().expect("luc runs"));
    assert!(message.contains("another luc"), "{message}");
    drop(going);
    let output = second.sweep(&with_scheduler);
    assert!(output.status.success(), "{}", stderr(&output));
    let of_partitions = format!("{}p1", device.device.path.file_name().expect("a name").display());
    whole.refuses(PLAN, &["partition table", &of_partitions]);
    for one in [&first, &second] {
        one.assert_given_back();
    }
}
