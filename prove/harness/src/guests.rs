//! Guests that a signal ends, and those with `lagdisk.ko`, `luc.ko` and `luc`.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use luc_vm::{GuestKernel, GuestOutcome, VirtualMachine};

use crate::error::EvaluateError;
use crate::harness::{Harness, missing, stop_if_interrupted};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");

/// Texts that the kernel rightly logs at a power cut.
const EXPECTED_AT_A_CUT: [&str; 2] = ["EXT4-fs error", "JBD2: Error"];

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a machine; a signal ends it.
pub fn run(vm: &VirtualMachine<'_>) -> Result<GuestOutcome, EvaluateError> {
    let mut guest = vm.start()?;
    while guest.is_running()? {
        stop_if_interrupted()?;
        thread::sleep(POLL_INTERVAL);
    }
    stop_if_interrupted()?;
    Ok(guest.wait()?)
}

/// Returns a file that a guest has written, as text.
///
/// # Errors
/// [`EvaluateError::Missing`].
pub fn file(outcome: &GuestOutcome, name: &str) -> Result<String, EvaluateError> {
    outcome.file(name).ok_or_else(|| missing(name))
}

/// Runs a machine as [`run`] does. A script that ends with another status than 0 is an error.
pub fn succeed(vm: &VirtualMachine<'_>, what: &str) -> Result<GuestOutcome, EvaluateError> {
    let outcome = run(vm)?;
    if outcome.status == 0 {
        return Ok(outcome);
    }
    let text = outcome.text();
    let lines: Vec<&str> = text.lines().collect();
    Err(EvaluateError::Command {
        command: what.to_owned(),
        how: format!("exit status {} in the guest", outcome.status),
        said: lines[lines.len().saturating_sub(8)..].join("; "),
    })
}

/// A kernel, and the modules built for it.
#[derive(Debug)]
pub struct Guests {
    kernel: GuestKernel,
    lagdisk: PathBuf,
    module: PathBuf,
    luc: PathBuf,
}

impl Guests {
    /// Fetches the kernel of `version` and builds the modules.
    pub fn prepare(harness: &Harness, version: &str) -> Result<Self, EvaluateError> {
        let kernel = GuestKernel::bootable(version)?;
        let build = |name: &str| {
            kernel.build_module(&Path::new(SOURCES).join(name), &harness.path("modules"))
        };
        let (lagdisk, module) = (build("lagdisk")?, build("luc")?);
        Ok(Self { kernel, lagdisk, module, luc: harness.luc_path().to_owned() })
    }

    pub fn release(&self) -> &str {
        self.kernel.release()
    }

    /// Describes a machine with two processors, the modules, `luc`, and the tools of ext4 and XFS.
    pub fn machine(&self, limit: Duration) -> VirtualMachine<'_> {
        ["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair"]
            .into_iter()
            .fold(VirtualMachine::new(&self.kernel), |vm, tool| vm.program(tool))
            .program(&self.luc)
            .file("/root/lagdisk.ko", &self.lagdisk)
            .file("/root/luc.ko", &self.module)
            .memory_mib(2048)
            .timeout(limit)
    }
}

/// Returns the kernel's warnings, without the expected ones of a power cut.
pub fn warnings(outcome: &GuestOutcome) -> Vec<String> {
    let expected = |line: &str| EXPECTED_AT_A_CUT.iter().any(|words| line.contains(words));
    let lines = outcome.complaints().into_iter().filter(|line| !expected(line));
    lines.map(str::to_owned).collect()
}
