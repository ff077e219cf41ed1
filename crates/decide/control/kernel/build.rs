//! Compiles the control law of `luc.ko` from the kernel's sources, unchanged.

const LAW: &str = "../../../../kernel/luc";

fn main() {
    let mut build = cc::Build::new();
    build.include(LAW).warnings(true).extra_warnings(true).warnings_into_errors(true);
    for part in ["control", "control_returns", "control_trial", "control_auto"] {
        build.file(format!("{LAW}/{part}.c"));
    }
    build.file("src/shim.c");
    build.compile("luc_control_law");
    println!("cargo::rerun-if-changed={LAW}");
    println!("cargo::rerun-if-changed=src/shim.c");
}
