//! `luc` on a directory tree that stands for a machine: needs no module and no privileges.

#![allow(dead_code, reason = "each test program uses a part of it")]

#[path = "../../../../act/module/tests/fake_machine/mod.rs"]
mod fake;

use std::process::{Child, Command, Output};

use crate::common;
pub(crate) use fake::FakeMachine;

pub(crate) fn luc(fake: &FakeMachine, words: &[&str]) -> Command {
    let mut command = Command::new(common::LUC);
    command
        .args(words)
        .env("LUC_KERNEL_TEST_ROOT", fake.root())
        .env("XDG_CACHE_HOME", fake.path("/cache"));
    command
}

pub(crate) fn run(fake: &FakeMachine, words: &[&str]) -> Output {
    luc(fake, words).output().expect("luc starts")
}

/// A journal for the file system that the tree is on, so that programs here use it, and another one.
pub(crate) fn with_own_journal() -> FakeMachine {
    let fake = FakeMachine::new();
    fake.mount("own-8", &fake.own_device());
    fake.mount("other-8", "7:99");
    fake
}

pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("killed");
    child.wait().expect("waited for");
}
