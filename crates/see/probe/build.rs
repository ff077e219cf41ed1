//! Compiles the BPF programs with clang into two objects, which the library carries in itself: the recorder's, and
//! that which adds up disks' use.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let include = PathBuf::from(variable("DEP_BPF_INCLUDE"));
    // For the test that compiles them for other architectures.
    println!("cargo:rustc-env=LIBBPF_INCLUDE={}", include.display());
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let architecture = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => fail(&format!("the recorder knows x86_64 and aarch64 only, not {other}")),
    };
    for name in ["probe", "contention"] {
        compile(name, &clang, architecture, &include);
    }
}

fn compile(name: &str, clang: &str, architecture: &str, include: &Path) {
    let source = format!("bpf/{name}.bpf.c");
    let object = PathBuf::from(variable("OUT_DIR")).join(format!("{name}.bpf.o"));
    let status = Command::new(clang)
        // v3: atomics and 32-bit jumps, Linux 5.12; -g: type information, by which accesses are relocated.
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-nostdinc"])
        .args(["-Wall", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        // The same object wherever the sources and libbpf's headers are.
        .arg("-fdebug-compilation-dir=.")
        .arg(format!("-ffile-prefix-map={}=libbpf", include.display()))
        .arg("-isystem")
        .arg(include)
        .args(["-c", &source, "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "{clang} could not compile {source} ({status}); clang 14 or later is needed"
        )),
        Err(error) => fail(&format!(
            "{clang} cannot be run ({error}); it compiles the BPF programs: run `make setup`, \
             or install clang, or set CLANG to its path"
        )),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(reason: &str) -> ! {
    println!("cargo:warning=luc-probe: {reason}");
    eprintln!("luc-probe: {reason}");
    exit(1)
}
