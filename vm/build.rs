//! Compiles the library that is preloaded into an unmodified QEMU. `running_guest.rs` includes it as bytes.

use std::env;
use std::path::PathBuf;

const SOURCE: &str = "src/qemu_turns.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("turns.so");
    let mut compiler =
        cc::Build::new().pic(true).opt_level(2).debug(false).get_compiler().to_command();
    compiler
        // A compiler may be one that adds debug information by itself.
        .args(["-g0", "-Wall", "-Wextra", "-Werror", "-shared", "-o"])
        .arg(&out)
        .arg(SOURCE);
    match compiler.status() {
        Ok(status) if status.success() => {}
        other => panic!("{compiler:?}: {other:?}"),
    }
}
