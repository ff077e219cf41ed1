//! A device that is really in use: `luc sweep` refuses it and does not change it. What this kernel lacks (RAID,
//! device-mapper) is in `device_used_vm`. Needs root and loop devices; what lacks them says `skipped`.

use crate::common::loop_device;

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{LUC, refusal};
use loop_device::{LoopDevice, run};
use luc_testkit::Meanwhile;

/// Checks that `luc sweep` on `device` says one line with these words, and leaves no results. The plan has
/// `overwrite`, so that nothing but its use protects the device.
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
    let message = refusal(&output);
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(message.contains(device), "{message}");
    assert!(!beside.beside("out").exists(), "{message}");
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
    let swap = Meanwhile::new("swapon \"$1\" && echo on", "swapoff \"$1\"", &[&name]);
    if swap.message != "on" {
        luc_testkit::skipped!("swapon does not work here");
        return;
    }
    refuses(&device, &name, &["is used as swap"]);
    let swaps = fs::read_to_string("/proc/swaps").expect("readable");
    assert!(swaps.contains(&name), "{swaps}");
}

#[test]
fn mounted() {
    let Some(device) = formatted() else {
        return;
    };
    let _mounted = device.mount(&device.name());
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
    // It goes with the last process that sees it.
    let mounted = Meanwhile::under(
        &["unshare", "--mount", "--propagation", "private"],
        "mount \"$1\" \"$2\" && echo mounted",
        "true",
        &[&device.name(), &place],
    );
    assert_eq!(mounted.message, "mounted");
    assert!(!device.is_mounted());
    let words = format!("is mounted on {place} in the mount namespace of process ");
    refuses(&device, &device.name(), &[&words]);
}

#[test]
fn a_disk_and_its_partitions() {
    let Some(device) = LoopDevice::new(160) else {
        return;
    };
    let names = device.add_partitions(2, 64);
    run("mkfs.ext4", &["-q", "-F", &names[1]]);
    let mounted = device.mount(&names[1]);
    let short = |name: &String| name.trim_start_matches("/dev/").to_owned();
    let both = format!("{}, {}", short(&names[0]), short(&names[1]));
    refuses(&device, &device.name(), &["partition table", &both]);
    refuses(&device, &names[1], &["is mounted on"]);
    drop(mounted);
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
    let loop_on = |device: &str| {
        let begin = "up=$(losetup --find --show \"$1\") && echo \"$up\"";
        let upper = Meanwhile::new(begin, "losetup --detach \"$up\"", &[device]);
        assert!(upper.message.starts_with("/dev/loop"), "{}", upper.message);
        upper
    };
    let upper = loop_on(&alias);
    let behind = format!("is behind {} with its whole disk", upper.message);
    refuses(&device, &names[0], &[&behind]);
    drop(upper);
    let upper = loop_on(&names[0]);
    refuses(&device, &names[0], &[&format!("is behind {}:", upper.message)]);
}
