//! A loop device that stands for a device of the user's.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_testkit::Meanwhile;
use tempfile::TempDir;

use crate::common::is_root;

/// On a file in a folder of its own.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    _attached: Meanwhile,
    pub(crate) folder: TempDir,
}

/// Runs a program that has to succeed; returns what it prints.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("runs");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl LoopDevice {
    /// `None` where there is no root.
    pub(crate) fn new(size_mib: u64) -> Option<Self> {
        if !is_root() || !Path::new("/dev/loop-control").exists() {
            luc_testkit::skipped!("no root or no loop devices");
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let image = folder.path().join("image");
        let file = File::create(&image).expect("made");
        file.set_len(size_mib << 20).expect("sized");
        let attached = Meanwhile::loop_device(&image, "--partscan");
        Some(Self { path: PathBuf::from(&attached.message), _attached: attached, folder })
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Something beside its file.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Signatures that wipefs finds on it.
    pub(crate) fn signatures(&self) -> String {
        signatures(&self.name())
    }

    /// Mounts the device `name`, itself or a partition, on the folder that this says.
    pub(crate) fn mount(&self, name: &str) -> Meanwhile {
        let place = self.beside("a place");
        fs::create_dir(&place).expect("made");
        let place = place.display().to_string();
        let mounted =
            Meanwhile::new("mount \"$1\" \"$2\" && echo \"$2\"", "umount \"$2\"", &[name, &place]);
        assert_eq!(mounted.message, place);
        mounted
    }

    pub(crate) fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        mounts.contains(&format!(" {} ", self.name()))
    }

    /// Gives it partitions of `size_mib` each; returns their names. They have no table, so none of the kernel's code
    /// for tables is needed.
    pub(crate) fn add_partitions(&self, count: u64, size_mib: u64) -> Vec<String> {
        let add = |number: u64| {
            let sectors = size_mib << 11;
            let words = [number, 2048 + (number - 1) * sectors, sectors].map(|n| n.to_string());
            run("addpart", &[&self.name(), &words[0], &words[1], &words[2]]);
            format!("{}p{number}", self.name())
        };
        (1..=count).map(add).collect()
    }
}

/// Signatures that wipefs finds on a device.
pub(crate) fn signatures(device: &str) -> String {
    run("wipefs", &["--noheadings", "--output", "TYPE", device])
}
