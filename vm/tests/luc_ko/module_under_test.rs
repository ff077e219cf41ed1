//! Parts that the tests share: both modules, and the shell functions that their scripts begin with.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use luc_vm::{GuestKernel, VirtualMachine};

use crate::common::{kernel_and_lagdisk, luc};

/// `$journal` is the journal's folder in sysfs. `files OPTIONS` prints the number of files that metarates creates and
/// syncs in a fixed time. `count NAME` prints one of the journal's counters. `message TEXT` fails unless TEXT is in
/// the log.
const PRELUDE: &str = "
set -Eeuo pipefail
trap 'echo line $LINENO: $BASH_COMMAND' ERR
trap 'status=$?; [[ $status == 0 ]] || echo status $status after $BASH_COMMAND' EXIT
id=11111111-1111-1111-1111-111111111111
journal=/sys/kernel/luc/lagdisk0-8
prepare() {
	insmod lagdisk.ko size_mib=400 \"$@\"
	mke2fs -q -t ext4 -U $id -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed=$id /dev/lagdisk0
	mount -t ext4 /dev/lagdisk0 /mnt
}
count() { cat $journal/stats/$1; }
files() {
	local before=$(count fsyncs)
	luc bench metarates --dir /mnt --file-size 1k --warmup 200ms --json \"$@\" >/dev/null
	echo $(($(count fsyncs) - before))
}
message() { dmesg | grep -F \"$1\" >/dev/null; }
finish() {
	umount /mnt
	e2fsck -fn /dev/lagdisk0 >/dev/null 2>&1 || { echo 'e2fsck is not content'; exit 1; }
}
";

pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/luc");

/// Held while the module is built, in a folder that the tests share.
static BUILDING: Mutex<()> = Mutex::new(());

/// A kernel with `luc.ko` and `lagdisk.ko` built for it, and the `luc` that makes the load.
pub(crate) struct ModuleTestParts {
    kernel: GuestKernel,
    lagdisk: PathBuf,
    module: PathBuf,
    luc: PathBuf,
}

impl ModuleTestParts {
    /// Returns the parts, or `None` after saying what is missing.
    pub(crate) fn find(version: &str) -> Option<Self> {
        Self::of(version, Path::new(SOURCES))
    }

    /// Builds the module from a folder named `luc`. Objects are in its parent if it is not ours.
    pub(crate) fn of(version: &str, source: &Path) -> Option<Self> {
        let luc = luc()?;
        let (kernel, lagdisk) = kernel_and_lagdisk(version)?;
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let work = match source.parent() {
            Some(folder) if source != Path::new(SOURCES) => folder,
            _ => work,
        };
        let _one = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let module = kernel.build_module(source, work).unwrap_or_else(|error| panic!("{error}"));
        Some(Self { kernel, lagdisk, module, luc })
    }

    /// Makes a machine that runs `script` after the prelude and stops at the first warning.
    pub(crate) fn vm(&self, script: &str) -> VirtualMachine<'_> {
        VirtualMachine::new(&self.kernel)
            .kernel_argument("panic_on_warn=1")
            // Seconds on a machine of its own.
            .timeout(Duration::from_secs(600))
            .program("mke2fs")
            .program("e2fsck")
            .program(&self.luc)
            .file("/root/lagdisk.ko", &self.lagdisk)
            .file("/root/luc.ko", &self.module)
            .script(format!("{PRELUDE}{script}"))
    }
}

/// Returns the number after `name` in lines of `name number`.
pub(crate) fn figure(text: &str, name: &str) -> f64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}
