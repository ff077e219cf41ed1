//! What the tests share: a kernel, `lagdisk.ko`, `luc`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use luc_vm::{Kernel, Outcome, Vm};

/// The kernel of Debian 12.
pub(crate) const STABLE: &str = "6.1";
/// The newer one in the same archive.
pub(crate) const BACKPORT: &str = "6.12";

/// Fetching a kernel and building a module are done once; the other tests wait.
static PREPARING: Mutex<()> = Mutex::new(());

/// The kernel, or `None` after saying why there is none.
pub(crate) fn kernel(version: &str) -> Option<Kernel> {
    let _one = PREPARING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(reason) = luc_vm::missing() {
        luc_testkit::skipped!("{reason}");
        return None;
    }
    match Kernel::find(version) {
        Ok(kernel) => Some(kernel),
        Err(error) if error.is_unavailable() => {
            luc_testkit::skipped!("{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The kernel and `lagdisk.ko` for it.
pub(crate) fn kernel_and_lagdisk(version: &str) -> Option<(Kernel, PathBuf)> {
    let kernel = kernel(version)?;
    let _one = PREPARING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/lagdisk");
    match kernel.build_module(&source, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(module) => Some((kernel, module)),
        Err(error) if error.is_unavailable() => {
            luc_testkit::skipped!("{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The `luc` that `make test` builds before it tests.
pub(crate) fn luc() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("the test's own path");
    let luc = test.ancestors().nth(2).expect("target/release").join("luc");
    if luc.is_file() {
        return Some(luc);
    }
    luc_testkit::skipped!("{} is not built: run `make build`", luc.display());
    None
}

/// Runs a machine whose script must succeed, and whose kernel must have nothing to complain of.
pub(crate) fn succeed(vm: &Vm<'_>) -> Outcome {
    let outcome = vm.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status, 0, "{}", outcome.text());
    assert_eq!(outcome.complaints(), Vec::<&str>::new());
    outcome
}
