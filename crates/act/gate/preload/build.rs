//! Links the unwinder into the library, so that a program loads the C library alone with it.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Found before libgcc_s, which the standard library asks for and which is not needed then. zig's linker knows its own
    // unwinder by this name.
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
