//! Guests with `lagdisk.ko`, `luc.ko` and `luc`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_vm::{Kernel, Outcome, Vm};

use crate::error::EvaluateError;
use crate::harness::Harness;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");

/// Texts that the kernel rightly logs at a power cut.
const EXPECTED_AT_A_CUT: [&str; 2] = ["EXT4-fs error", "JBD2: Error"];

/// A kernel, and the modules built for it.
#[derive(Debug)]
pub(crate) struct Guests {
    kernel: Kernel,
    lagdisk: PathBuf,
    module: PathBuf,
    luc: PathBuf,
}

impl Guests {
    /// Fetches the kernel of `version` and builds the modules.
    pub(crate) fn prepare(harness: &Harness, version: &str) -> Result<Self, EvaluateError> {
        let kernel = Kernel::bootable(version)?;
        let build = |name: &str| {
            kernel.build_module(&Path::new(SOURCES).join(name), &harness.path("modules"))
        };
        let (lagdisk, module) = (build("lagdisk")?, build("luc")?);
        Ok(Self { kernel, lagdisk, module, luc: harness.luc_path().to_owned() })
    }

    pub(crate) fn release(&self) -> &str {
        self.kernel.release()
    }

    /// Describes a machine with two processors, the modules, `luc`, and the tools of ext4 and XFS.
    pub(crate) fn machine(&self, limit: Duration) -> Vm<'_> {
        ["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair"]
            .into_iter()
            .fold(Vm::new(&self.kernel), |vm, tool| vm.program(tool))
            .program(&self.luc)
            .file("/root/lagdisk.ko", &self.lagdisk)
            .file("/root/luc.ko", &self.module)
            .memory_mib(2048)
            .timeout(limit)
    }
}

/// Returns the kernel's warnings, without the expected ones of a power cut.
pub(crate) fn warnings(outcome: &Outcome) -> Vec<String> {
    let expected = |line: &str| EXPECTED_AT_A_CUT.iter().any(|words| line.contains(words));
    let lines = outcome.complaints().into_iter().filter(|line| !expected(line));
    lines.map(str::to_owned).collect()
}
