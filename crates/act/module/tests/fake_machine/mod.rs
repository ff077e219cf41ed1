//! A directory tree that stands for a machine with luc.ko loaded.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Settings of a journal after it was mounted.
const SETTINGS: [(&str, &str); 13] = [
    ("policy", "off"),
    ("copy_out", "off"),
    ("delay_us", "1000"),
    ("max_restarts", "64"),
    ("timeout_us", "1000"),
    ("max_hold_us", "20000"),
    ("set_point", "0"),
    ("kp_milli", "800"),
    ("ki_milli", "250"),
    ("kd_milli", "250"),
    ("copy_out_threshold_permille", "50"),
    ("copy_out_clean_runs", "4"),
    ("copy_out_limit_kib", "16384"),
];
const STATS: [(&str, &str); 19] = [
    ("commits", "120"),
    ("commits_by_fsync", "100"),
    ("fsyncs", "1550"),
    ("fsyncs_last_commit", "16"),
    ("fsyncs_waited_two", "31"),
    ("holds", "90"),
    ("hold_ns", "33480000"),
    ("holds_awaited", "2"),
    ("set_point", "16"),
    ("error_milli", "-500"),
    ("output_us", "372"),
    ("state", "engaged"),
    ("writes", "2000"),
    ("writes_delayed", "30"),
    ("write_delay_ns", "96000000"),
    ("copies", "55"),
    ("copy_bytes", "225280"),
    ("copies_failed", "0"),
    ("copy_bytes_in_use", "0"),
];

/// The tree; gone when dropped.
#[derive(Debug)]
pub(crate) struct FakeMachine {
    tree: TempDir,
}

impl FakeMachine {
    /// A machine that could load the module and has not.
    pub(crate) fn without_module() -> Self {
        let fake = Self { tree: TempDir::new().expect("directory") };
        fake.write("/proc/modules", "jbd2 1 1 ext4, Live 0x0\n");
        fake.write("/proc/sys/kernel/modules_disabled", "0\n");
        fake.write("/proc/sys/kernel/ftrace_enabled", "1\n");
        fake.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        fake.write("/etc/os-release", "ID=debian\n");
        fs::create_dir_all(fake.path("/proc/fs/jbd2")).expect("directory");
        fs::create_dir_all(fake.path("/lib/modules/6.1.0-18-amd64")).expect("directory");
        fake
    }

    /// A machine with the module and no journal.
    pub(crate) fn new() -> Self {
        let fake = Self::without_module();
        fake.write("/sys/kernel/luc/version", concat!(env!("CARGO_PKG_VERSION"), "\n"));
        fake.write("/sys/kernel/luc/interface", "1\n");
        fake.write("/sys/kernel/luc/layout", "checked\n");
        fake.write("/sys/kernel/luc/kernel", "tested\n");
        fake
    }

    /// Mounts a file system: a journal of this name on device `major:minor`.
    pub(crate) fn mount(&self, journal: &str, device: &str) {
        let dir = format!("/sys/kernel/luc/{journal}");
        self.write(&format!("{dir}/device"), &format!("{device}\n"));
        for (name, value) in SETTINGS {
            self.write(&format!("{dir}/{name}"), &format!("{value}\n"));
        }
        for (name, value) in STATS {
            self.write(&format!("{dir}/stats/{name}"), &format!("{value}\n"));
        }
    }

    /// The device of the file system that the tree itself is on, for which programs can be run.
    pub(crate) fn own_device(&self) -> String {
        let device = fs::metadata(self.root()).expect("metadata").dev();
        format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
    }

    pub(crate) fn root(&self) -> &Path {
        self.tree.path()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        fs::write(path, content).expect("written");
    }

    /// A setting or a figure of a journal now.
    pub(crate) fn read(&self, journal: &str, name: &str) -> String {
        let path = self.path(&format!("/sys/kernel/luc/{journal}/{name}"));
        let text = fs::read_to_string(path).expect("read");
        text.trim().to_owned()
    }

    /// Makes a setting one that can be read, and that refuses every write.
    pub(crate) fn refuse(&self, journal: &str, name: &str) {
        let path = self.path(&format!("/sys/kernel/luc/{journal}/{name}"));
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/proc/version", path).expect("link");
    }
}
