//! A device that is in use, really: `luc sweep` refuses it and leaves it as it is. What this kernel lacks (RAID,
//! device-mapper) is in `device_used_vm`. Needs root and loop devices; what lacks them says `skipped`.

mod common;
#[path = "common/loop_device.rs"]
mod loop_device;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use common::{LUC, refusal};
use loop_device::{LoopDevice, run};

/// A command that undoes something, whatever ends the test.
struct Undo(&'static str, Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let undone = Command::new(self.0).args(&self.1).status();
        let is_fine = undone.is_ok_and(|status| status.success()) || std::thread::panicking();
        assert!(is_fine, "{} {:?}", self.0, self.1);
    }
}

fn undo(program: &'static str, argument: &str) -> Undo {
    Undo(program, vec![argument.to_owned()])
}

/// `luc sweep` on `device` says one line with these words, and leaves no results; `overwrite` is given, so that nothing
/// but its use protects it.
fn refuses(beside: &LoopDevice, device: &str, words: &[&str]) {
    let plan = format!(
        "[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
         [[target]]\nname = \"t\"\nfs = \"ext4\"\ndevice = \"{device}\"\nerase = \"{device}\"\noverwrite = true\n"
    );
    fs::write(beside.beside("plan.toml"), plan).expect("written");
    let output = Command::new(LUC)
        .args(["sweep", "plan.toml", "--out", "out"])
        .current_dir(beside.folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("luc runs");
    let said = refusal(&output);
    let is_said = |word: &&str| said.contains(*word);
    assert!(words.iter().all(|word| is_said(&word)), "{said}");
    assert!(said.contains(device), "{said}");
    assert!(!beside.beside("out").exists(), "{said}");
}

/// A loop device with a file system on it.
fn formatted() -> Option<LoopDevice> {
    let device = LoopDevice::new(64)?;
    run("mkfs.ext4", &["-q", "-F", &device.name()]);
    Some(device)
}

#[test]
fn swap() {
    let Some(device) = LoopDevice::new(64) else {
        return;
    };
    let name = device.name();
    run("mkswap", &[&name]);
    let swap = Command::new("swapon").arg(&name).output().expect("runs");
    if !swap.status.success() {
        println!("skipped: swapon: {}", common::stderr(&swap));
        return;
    }
    let _off = undo("swapoff", &name);
    refuses(&device, &name, &["is used as swap"]);
    let swaps = fs::read_to_string("/proc/swaps").expect("readable");
    assert!(swaps.contains(&name), "{swaps}");
}

#[test]
fn mounted() {
    let Some(device) = formatted() else {
        return;
    };
    let place = device.beside("a place");
    fs::create_dir(&place).expect("made");
    let place = place.display().to_string();
    run("mount", &[&device.name(), &place]);
    let _off = undo("umount", &place);
    refuses(&device, &device.name(), &["is mounted on"]);
    assert!(device.is_mounted());
}

#[test]
fn mounted_for_others_only() {
    let Some(device) = formatted() else {
        return;
    };
    let place = device.beside("mounted");
    fs::create_dir(&place).expect("made");
    let place = place.display().to_string();
    // It goes with its last process, and that when nothing more comes from here.
    let mut child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg("mount \"$0\" \"$1\" && echo ready && read -r _")
        .args([&device.name(), &place])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let mut line = String::new();
    let said = child.stdout.as_mut().expect("a pipe");
    BufReader::new(said).read_line(&mut line).expect("read");
    let is_mounted = line == "ready\n";
    let checked = std::panic::catch_unwind(|| {
        assert!(is_mounted, "not mounted");
        assert!(!device.is_mounted());
        let words = [&format!("is mounted on {place} in the mount namespace")[..]];
        refuses(&device, &device.name(), &words);
    });
    drop(child.stdin.take());
    child.wait().expect("waited for");
    checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn a_disk_and_its_partitions() {
    let Some(device) = LoopDevice::new(160) else {
        return;
    };
    let names = device.add_partitions(2, 64);
    run("mkfs.ext4", &["-q", "-F", &names[1]]);
    let place = device.beside("mounted");
    fs::create_dir(&place).expect("made");
    let place = place.display().to_string();
    run("mount", &[&names[1], &place]);
    let _off = undo("umount", &place);
    let short = |name: &String| name.trim_start_matches("/dev/").to_owned();
    let both = format!("{}, {}", short(&names[0]), short(&names[1]));
    refuses(&device, &device.name(), &["partition table", &both]);
    refuses(&device, &names[1], &["is mounted on", &place]);
}

#[test]
fn behind_a_loop_device() {
    let Some(device) = LoopDevice::new(160) else {
        return;
    };
    let names = device.add_partitions(1, 64);
    // By another name of the same device.
    let alias = device.beside("alias").display().to_string();
    let number = run("stat", &["--format", "%Hr %Lr", &device.name()]);
    let (major, minor) = number.split_once(' ').expect("two numbers");
    run("mknod", &[&alias, "b", major, minor]);
    let upper = run("losetup", &["--find", "--show", &alias]);
    let off = Undo("losetup", vec!["--detach".to_owned(), upper.clone()]);
    let behind = format!("is behind {upper}");
    refuses(&device, &names[0], &[&behind, "with its whole disk"]);
    drop(off);
    let upper = run("losetup", &["--find", "--show", &names[0]]);
    let _off = Undo("losetup", vec!["--detach".to_owned(), upper.clone()]);
    refuses(&device, &names[0], &[&format!("is behind {upper}")]);
}
