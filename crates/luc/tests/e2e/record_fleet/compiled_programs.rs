//! Programs that the tests compile: clients in C, and what networks do to packets.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::two_hosts::NamespaceHost;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The path of a program of this name, compiled into `folder`.
pub(crate) fn compiled(name: &str, folder: &Path) -> String {
    let program = folder.join(name);
    let status = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(source(&format!("{name}.c")))
        .status();
    assert!(status.expect("cc runs").success());
    program.to_str().expect("plain").to_owned()
}

/// Programs for packets, which `tc` puts at devices.
pub(crate) struct PacketPrograms {
    folder: TempDir,
}

impl PacketPrograms {
    /// `None`, and a line that says why, without `tc`.
    pub(crate) fn new() -> Option<Self> {
        if Command::new("tc").arg("-V").output().is_err() {
            luc_testkit::skipped!("tc (iproute2) is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("a directory");
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let status = Command::new(clang)
            .args(["-O2", "-target", "bpf", "-Wall", "-Werror", "-c"])
            .arg(source("network.bpf.c"))
            .arg("-o")
            .arg(folder.path().join("network.o"))
            .status();
        assert!(status.expect("clang, which building needs anyway").success());
        Some(Self { folder })
    }

    /// Has `program` look at all packets that go into or out of a device of `host`.
    pub(crate) fn put(&self, host: &NamespaceHost, device: &str, direction: &str, program: &str) {
        let words = ["tc", "qdisc", "add", "dev", device, "clsact"];
        // It is there if another program is.
        let _ = host.command(&words).output();
        let object = self.folder.path().join("network.o");
        host.run(&format!(
            "tc filter add dev {device} {direction} bpf direct-action obj {} sec tc_{program}",
            object.display()
        ));
    }
}
