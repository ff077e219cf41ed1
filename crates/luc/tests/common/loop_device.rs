//! A loop device that stands for a device of the user's.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::common::is_root;
use tempfile::TempDir;

/// On a file in a folder of its own, both of which go with this process, however that ends.
pub(crate) struct LoopDevice {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
    /// The device is detached when the last one closes it.
    _open: File,
}

/// What a program prints, which has to succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
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
        let image = image.display().to_string();
        let arguments = ["--find", "--show", "--partscan", &image];
        let path = PathBuf::from(run("losetup", &arguments));
        let open = File::open(&path).expect("opened");
        // While it is open this only says that it goes with its last user.
        run("losetup", &["--detach", &path.display().to_string()]);
        Some(Self {
            folder,
            path,
            _open: open,
        })
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Something beside its file.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What wipefs finds on it.
    pub(crate) fn signatures(&self) -> String {
        signatures(&self.name())
    }

    /// Mounts the device `name`, itself or a partition, on the folder that this says.
    pub(crate) fn mount(&self, name: &str) -> Meanwhile {
        let place = self.beside("a place");
        fs::create_dir(&place).expect("made");
        let place = place.display().to_string();
        let mounted = Meanwhile::new(
            "mount \"$1\" \"$2\" && echo \"$2\"",
            "umount \"$2\"",
            &[name, &place],
        );
        assert_eq!(mounted.message, place);
        mounted
    }

    pub(crate) fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        mounts.contains(&format!(" {} ", self.name()))
    }

    /// Gives it partitions of `size_mib` each, without a table, which needs none of the kernel's code for tables; their
    /// names.
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

/// Something that is so until this is dropped, or this process ends, however it does.
pub(crate) struct Meanwhile {
    shell: Child,
    /// The line that it said.
    pub(crate) message: String,
}

impl Meanwhile {
    /// Runs the shell's words `begin`, which say one line; at last `end`. Both have `arguments` as `$1` and on.
    pub(crate) fn new(begin: &str, end: &str, arguments: &[&str]) -> Self {
        Self::under(&[], begin, end, arguments)
    }

    /// The same, where the program `wrapper` runs the shell.
    pub(crate) fn under(wrapper: &[&str], begin: &str, end: &str, arguments: &[&str]) -> Self {
        let script = format!("{begin} || exit 1; read -r _; {end}");
        let words = [wrapper, &["sh", "-c", &script, "sh"], arguments].concat();
        let mut shell = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a shell starts");
        let mut message = String::new();
        let pipe = shell.stdout.as_mut().expect("a pipe");
        BufReader::new(pipe).read_line(&mut message).expect("read");
        let message = message.trim_end().to_owned();
        Self { shell, message }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        // The end of its input is the shell's sign.
        drop(self.shell.stdin.take());
        let ended = self.shell.wait();
        let is_fine = ended.is_ok_and(|status| status.success());
        assert!(is_fine || self.message.is_empty() || std::thread::panicking());
    }
}

/// What wipefs finds on a device.
pub(crate) fn signatures(device: &str) -> String {
    run("wipefs", &["--noheadings", "--output", "TYPE", device])
}
