//! Parts that the tests share: a kernel, `lagdisk.ko`, `luc`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use luc_vm::{Error, GuestKernel, GuestOutcome, VirtualMachine};

/// The kernel of Debian 12.
pub(crate) const STABLE: &str = "6.1";
/// A newer kernel in the same archive.
pub(crate) const BACKPORT: &str = "6.12";

/// Held while a kernel is fetched or a module built, which is done once while other tests wait.
static PREPARING: Mutex<()> = Mutex::new(());

/// Returns the kernel, or `None` after saying why there is none.
pub(crate) fn kernel(version: &str) -> Option<GuestKernel> {
    let _one = PREPARING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Not by testkit's own, which uses this crate.
    luc_testkit::unless_missing(GuestKernel::bootable(version), Error::is_unavailable)
}

/// The kernel and `lagdisk.ko` for it.
pub(crate) fn kernel_and_lagdisk(version: &str) -> Option<(GuestKernel, PathBuf)> {
    let kernel = kernel(version)?;
    let _one = PREPARING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/lagdisk");
    let module = kernel.build_module(&source, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let module = luc_testkit::unless_missing(module, Error::is_unavailable)?;
    Some((kernel, module))
}

/// Returns the `luc` that `make test` builds before it tests.
pub(crate) fn luc() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("the test's own path");
    let luc = test.ancestors().nth(2).expect("target/release").join("luc");
    if luc.is_file() {
        return Some(luc);
    }
    luc_testkit::skipped!("{} is not built: run `make build`", luc.display());
    None
}

/// Bits of EFLAGS that no processor sets: 3, 5, 15 and all from 22 on.
const RESERVED_FLAGS: u64 = 0xffc0_8028;

/// Runs a machine whose script must succeed, and whose kernel must log no faults. A guest that its emulator broke is
/// run once more.
pub(crate) fn succeed(vm: &VirtualMachine<'_>) -> GuestOutcome {
    let outcome = vm.run().or_else(|error| {
        if !has_impossible_flags(&error.to_string()) {
            return Err(error);
        }
        println!("once more, since QEMU resumed with flags that no processor has: {error}");
        vm.run()
    });
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    assert_eq!(outcome.complaints(), Vec::<&str>::new());
    outcome
}

/// Whether a guest's log has an EFLAGS with reserved bits. QEMU 7.2 without KVM resumed a guest with some once in all
/// tests so far. The trap flag among them ends in a warning of `exc_debug_kernel()`.
fn has_impossible_flags(log: &str) -> bool {
    log.split("EFLAGS: ").skip(1).any(|rest| {
        let digits = rest.split_whitespace().next().unwrap_or_default();
        u64::from_str_radix(digits, 16).is_ok_and(|flags| flags & RESERVED_FLAGS != 0)
    })
}

#[test]
fn flags_that_no_processor_has() {
    let of = |flags: &str| has_impossible_flags(&format!("RSP: 0000:ffff EFLAGS: {flags}\nRAX: 0"));
    assert!(of("0470802a") && of("04708b6a"));
    assert!(!of("00010246") && !of("00000202") && !of("00000102"));
}
