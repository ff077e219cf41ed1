//! The BPF programs compile for every architecture that the recorder knows, on any machine.

use std::path::Path;
use std::process::Command;

/// Architectures by libbpf's names.
const ARCHITECTURES: [&str; 2] = ["x86", "arm64"];

#[test]
fn programs_compile_for_every_architecture() {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let folder = tempfile::tempdir().expect("a directory");
    for architecture in ARCHITECTURES {
        for name in ["probe", "contention"] {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("bpf/{name}.bpf.c"));
            let output = Command::new(&clang)
                .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-nostdinc"])
                .args(["-Wall", "-Werror"])
                .arg(format!("-D__TARGET_ARCH_{architecture}"))
                .args(["-isystem", env!("LIBBPF_INCLUDE")])
                .arg("-c")
                .arg(source)
                .arg("-o")
                .arg(folder.path().join(name))
                .output()
                .expect("clang runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} for {architecture}: {said}");
        }
    }
}
