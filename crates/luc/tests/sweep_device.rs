//! `luc sweep` on a device of the user's, from end to end: what is refused and left as it is, and how a device is given
//! back. A loop device stands for the real one; that needs root, and what lacks it says `skipped`.

mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{LUC, is_root, refusal, stderr, stdout, until};
use serde_json::Value;
use tempfile::TempDir;

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

/// A loop device on a file in a folder of its own, which goes with this process, however that ends.
struct Device {
    folder: TempDir,
    path: PathBuf,
    /// The device is detached when the last one closes it.
    _open: File,
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect("runs");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Device {
    /// `None` where there is no root.
    fn new(size_mib: u64) -> Option<Self> {
        if !is_root() || !Path::new("/dev/loop-control").exists() {
            println!("skipped: no root or no loop devices");
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let image = folder.path().join("image");
        let file = File::create(&image).expect("made");
        file.set_len(size_mib << 20).expect("sized");
        let image = image.display().to_string();
        let path = PathBuf::from(run("losetup", &["--find", "--show", &image]));
        let open = File::open(&path).expect("opened");
        // While it is open this only says that it goes with its last user.
        run("losetup", &["--detach", &path.display().to_string()]);
        Some(Self {
            folder,
            path,
            _open: open,
        })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn plan(&self, plan: &str) {
        let text = plan.replace("$DEVICE", &self.name());
        fs::write(self.folder.path().join("plan.toml"), text).expect("written");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(LUC);
        command
            .args(["sweep", "plan.toml", "--out", "out", "--json"])
            .current_dir(self.folder.path())
            .env("LUC_RUN_DIR", self.folder.path().join("run"))
            .stdin(Stdio::null());
        command
    }

    fn sweep(&self, plan: &str) -> Output {
        self.plan(plan);
        self.command().output().expect("luc runs")
    }

    fn signatures(&self) -> String {
        run(
            "wipefs",
            &["--noheadings", "--output", "TYPE", &self.name()],
        )
    }

    fn scheduler(&self) -> PathBuf {
        let name = self.path.file_name().expect("a name");
        Path::new("/sys/block").join(name).join("queue/scheduler")
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        mounts.contains(&format!(" {} ", self.name()))
    }

    /// Refused with one line that has these words; nothing is made, and what is on the device stays.
    fn refuses(&self, plan: &str, words: &[&str]) {
        let before = self.signatures();
        let said = refusal(&self.sweep(plan));
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!self.folder.path().join("out").exists(), "{said}");
        assert_eq!(self.signatures(), before);
    }

    /// Given back empty, with nothing left of the sweep but its results.
    fn assert_given_back(&self) {
        assert_eq!(self.signatures(), "");
        assert!(!self.is_mounted());
        for name in ["out/devices.json", "out/work"] {
            assert!(!self.folder.path().join(name).exists(), "{name}");
        }
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
        println!("skipped: this kernel has no mq-deadline");
        return;
    }
    let look = format!(
        "grep -q '.none.' {} && echo 1 || echo 2",
        device.scheduler().display()
    );
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
            (
                point["key"].as_str().expect("key"),
                median.expect("a median"),
            )
        })
        .collect();
    assert_eq!(
        medians,
        [
            ("touch,1,disk,off,none", 1.0),
            ("touch,1,disk,off,mq-deadline", 2.0)
        ]
    );
    for repeat in report["repeats"].as_array().expect("repeats") {
        let mount = repeat["environment"]["mount"].as_str().expect("a mount");
        assert!(mount.contains(&device.name()), "{mount}");
        assert!(repeat["counters"]["disk.writes"].as_f64() > Some(0.0));
    }
    device.assert_given_back();
    assert_eq!(
        fs::read_to_string(device.scheduler()).expect("readable"),
        before
    );
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
        &[&name, "300M", "64M"],
    );
    device.refuses(
        &PLAN.replace("$DEVICE", "/dev/null"),
        &["/dev/null", "no block device"],
    );
    device.refuses(
        &PLAN.replace("$DEVICE", "/dev/no-such"),
        &["/dev/no-such", "no such device"],
    );
    device.refuses(
        &format!("scheduler = [\"noop\"]\n{PLAN}"),
        &["plan.toml:1:", "noop"],
    );
    run("blockdev", &["--setro", &name]);
    device.refuses(PLAN, &[&name, "read-only"]);
    run("blockdev", &["--setrw", &name]);
    // Content, as such and in use.
    run("mkfs.ext4", &["-q", "-F", &name]);
    device.refuses(PLAN, &[&name, "not empty (ext4)", "overwrite = true"]);
    let overwrite = format!("{PLAN}overwrite = true\n");
    let mount = device.folder.path().join("mounted");
    fs::create_dir(&mount).expect("made");
    run("mount", &[&name, &mount.display().to_string()]);
    device.refuses(&overwrite, &[&name, "is mounted on"]);
    run("umount", &[&mount.display().to_string()]);
    // Not even then: a partition table.
    run("wipefs", &["--all", "--quiet", &name]);
    // The smallest one: its magic number at the end of the first sector, and one entry.
    let mut sector = [0_u8; 512];
    sector[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 2, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::write(device.folder.path().join("image-head"), sector).expect("written");
    run(
        "dd",
        &[
            &format!("if={}", device.folder.path().join("image-head").display()),
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
    let mut child = device
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("luc starts");
    let results = device.folder.path().join("out/results.jsonl");
    until("a repeat", || {
        let text = fs::read_to_string(&results).unwrap_or_default();
        text.matches('\n').count() > 2 && device.is_mounted()
            || child.try_wait().is_ok_and(|ended| ended.is_some())
    });
    assert!(
        child.try_wait().expect("known").is_none(),
        "it ended before it was killed"
    );
    child.kill().expect("killed");
    child.wait().expect("waited for");
    until("a device given back", || {
        !device.folder.path().join("out/devices.json").exists() && !device.is_mounted()
    });
    until("a clear house", || {
        !device.folder.path().join("out/work").exists()
    });
    device.assert_given_back();
    let output = device.command().output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["points"][0]["count"], 6);
    device.assert_given_back();
}
