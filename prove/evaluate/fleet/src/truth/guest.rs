//! Records the twin in a guest, for troubles that the kernel here cannot make.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::Harness;
use luc_vm::{GuestKernel, VirtualMachine};

/// Series of Debian's kernel that has the controller for processors in cgroups v2.
const KERNEL: &str = "6.12";
const TIMEOUT: Duration = Duration::from_secs(600);
const MODULES: [&str; 4] = ["veth", "bridge", "sch_ingress", "cls_bpf"];

/// Records the twin in a guest. Returns the reason if there is no guest.
pub(super) fn record(
    harness: &Harness,
    twin: &Path,
    words: &[OsString],
    [trace, truth]: [&Path; 2],
) -> Result<Option<String>, EvaluateError> {
    if let Some(why) = luc_vm::missing() {
        return Ok(Some(why.to_string()));
    }
    let kernel = match GuestKernel::find(KERNEL) {
        Ok(kernel) => kernel,
        Err(error) if error.is_unavailable() => return Ok(Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let script = format!(
        "for module in {}; do modprobe $module || exit 1; done\n\
         echo +cpu >/sys/fs/cgroup/cgroup.subtree_control || exit 1\n\
         luc record --fleet --all --no-calls --quiet --out /run/trace -- luc-twin run /run/truth {} || exit 1\n\
         mkdir \"$OUT/trace\" \"$OUT/truth\"\n\
         cp /run/trace/* \"$OUT/trace\" && cp /run/truth/* \"$OUT/truth\"\n",
        MODULES.join(" "),
        words.join(" ")
    );
    let vm = MODULES
        .into_iter()
        .fold(VirtualMachine::new(&kernel), VirtualMachine::module)
        .program(harness.luc_path())
        .program(twin)
        .program("ip")
        .program("tc")
        .program("nsenter")
        .timeout(TIMEOUT)
        .script(script);
    let outcome = guests::succeed(&vm, "luc record --fleet -- luc-twin run")?;
    for folder in [trace, truth] {
        fs::create_dir_all(folder).map_err(EvaluateError::file("make", folder))?;
    }
    for (name, bytes) in &outcome.files {
        let to = match name.split_once('/') {
            Some(("trace", name)) => trace.join(name),
            Some(("truth", name)) => truth.join(name),
            _ => continue,
        };
        fs::write(&to, bytes).map_err(EvaluateError::file("write", &to))?;
    }
    Ok(None)
}
