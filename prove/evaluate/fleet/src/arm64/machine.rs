//! Emulated machines of 64-bit Arm, and the programs in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, parse};
use luc_vm::{GuestKernel, GuestOutcome, VirtualMachine};
use serde_json::Value;

use crate::known::names::SOURCE as KNOWN;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Folder of the output of `scripts/build-arm64.sh`, beside the folder of this machine's own programs.
const TARGET_FOLDER: &str = "../aarch64-unknown-linux-gnu/release";
const LIBRARY: &str = "libluc_gate_preload.so";
/// Program that exchanges a known number of bytes.
const TALK: &str = include_str!("../../../../../crates/luc/tests/programs/talk.c");
/// Program that counts its own work.
const PHASES: &str = include_str!("../../../../subjects/fleet/phases.c");
const RUN_TIMEOUT: Duration = Duration::from_secs(1800);
/// Memory of a guest, which has two processors.
const MEMORY_MIB: u32 = 2048;

#[derive(Debug)]
pub(super) struct Tools {
    luc: PathBuf,
    library: PathBuf,
    known: PathBuf,
    talk: PathBuf,
    phases: PathBuf,
}

impl Tools {
    pub(super) fn build(harness: &Harness) -> Result<Self, EvaluateError> {
        let own = harness.luc_path().parent().unwrap_or(Path::new("."));
        let [luc, library] = ["luc", LIBRARY].map(|name| own.join(TARGET_FOLDER).join(name));
        if !luc.is_file() || !library.is_file() {
            return Err(missing("luc for 64-bit Arm: run scripts/build-arm64.sh; it"));
        }
        let compile = |name: &str, source: &str| {
            let (path, file) = (harness.path(name), harness.path(&format!("{name}.c")));
            fs::write(&file, source).map_err(EvaluateError::file("write", &file))?;
            let mut command = Command::new(COMPILER);
            command.args(["-O2", "-pthread", "-o"]).arg(&path).arg(file);
            harness.execute(&mut command, &[0])?;
            Ok::<_, EvaluateError>(path)
        };
        Ok(Self {
            luc,
            library,
            known: compile("known", KNOWN)?,
            talk: compile("talk", TALK)?,
            phases: compile("phases", PHASES)?,
        })
    }

    /// Describes a guest that has the programs.
    pub(super) fn vm<'k>(&self, kernel: &'k GuestKernel) -> VirtualMachine<'k> {
        let programs = [&self.known, &self.talk, &self.phases];
        let vm = VirtualMachine::new(kernel)
            .memory_mib(MEMORY_MIB)
            .timeout(RUN_TIMEOUT)
            .module("fuse")
            .program(&self.luc)
            .file(Path::new("/luc/bin").join(LIBRARY), &self.library)
            .program("mkfs.ext4")
            .program("e2fsck");
        programs.into_iter().fold(vm, VirtualMachine::program)
    }
}

/// Returns the outcome of a script if it has succeeded.
pub(super) fn succeeded(
    kernel: &GuestKernel,
    outcome: GuestOutcome,
) -> Result<GuestOutcome, EvaluateError> {
    if outcome.status == 0 {
        return Ok(outcome);
    }
    Err(EvaluateError::Command {
        command: format!("the script in a guest with Linux {}", kernel.release()),
        how: format!("status {}", outcome.status),
        said: outcome.text(),
    })
}

/// Writes the guest's files into a folder.
pub(super) fn unpack(outcome: &GuestOutcome, folder: &Path) -> Result<(), EvaluateError> {
    for (name, bytes) in &outcome.files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(EvaluateError::file("make", parent))?;
        fs::write(&path, bytes).map_err(EvaluateError::file("write", &path))?;
    }
    Ok(())
}

/// Parses a JSON file that the script has left.
pub(super) fn parsed(outcome: &GuestOutcome, name: &str) -> Result<Value, EvaluateError> {
    let text = outcome.file(name).unwrap_or_default();
    parse(&text, &format!("the JSON of the guest's {name}"))
}
