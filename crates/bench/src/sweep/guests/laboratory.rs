//! What all guests of a sweep share, and the run of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_vm::{Kernel, Mode, Vm};

use super::super::environment::mkfs_version;
use super::super::error::SweepError;
use super::super::journal::Record;
use super::super::plan::Plan;
use super::lots::Lot;
use super::reading::records;
use super::script::script;
use super::speed::Speed;

/// Where the modules' sources are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");
/// What a guest may take on a busy host.
const LIMIT: Duration = Duration::from_secs(3600);
/// Its memory: the largest disk, and as much again for the workload.
const MEMORY_MIB: u32 = 2048;

/// The plan, the kernel, the modules and the program.
#[derive(Debug)]
pub(super) struct Laboratory {
    plan: Plan,
    kernel: Kernel,
    luc: PathBuf,
    modules: [PathBuf; 2],
    /// Versions of mkfs, by file system.
    mkfs: BTreeMap<String, String>,
}

impl Laboratory {
    /// Finds the kernel, and builds the modules into `work`.
    pub(super) fn open(plan: &Plan, luc: &Path, work: &Path) -> Result<Self, SweepError> {
        let version = plan.virtual_time.as_ref().map(|time| time.kernel.as_str());
        let kernel = Kernel::find(version.unwrap_or_default())?;
        let module = |name: &str| kernel.build_module(&Path::new(SOURCES).join(name), work);
        let modules = [module("luc")?, module("lagdisk")?];
        let file_systems = plan.target.iter().filter_map(|target| target.fs.clone());
        let mkfs = file_systems.filter_map(|fs| Some((fs.clone(), mkfs_version(&fs)?)));
        Ok(Self {
            mkfs: mkfs.collect(),
            plan: plan.clone(),
            kernel,
            luc: luc.to_owned(),
            modules,
        })
    }

    /// Boots a guest and runs a lot.
    pub(super) fn run(&self, lot: &Lot) -> Result<Vec<Record>, SweepError> {
        let plan = &self.plan;
        let shift = Speed::of(plan, lot.mips).shift;
        let has_xfs = |fs: &Option<String>| fs.as_deref() == Some("xfs");
        let mut vm = Vm::new(&self.kernel)
            .mode(Mode::VirtualTime { shift })
            .memory_mib(MEMORY_MIB)
            .timeout(LIMIT)
            .program("mke2fs")
            .program(&self.luc)
            .script(script(plan, lot)?);
        if plan.target.iter().any(|target| has_xfs(&target.fs)) {
            vm = vm.program("mkfs.xfs");
        }
        for module in &self.modules {
            let name = module.file_name().unwrap_or_default();
            vm = vm.file(Path::new("/root").join(name), module);
        }
        let outcome = vm.run()?;
        let failed = |said: String| SweepError::InGuest {
            what: format!(
                "guest {} of {} MIPS, repeat {}",
                lot.number + 1,
                lot.mips,
                lot.round + 1
            ),
            said,
        };
        if outcome.status != 0 {
            let text = outcome.text();
            let words: Vec<&str> = text.split_whitespace().collect();
            return Err(failed(words.join(" ")));
        }
        if let Some(complaint) = outcome.complaints().first() {
            return Err(failed(format!("the kernel complained: {complaint}")));
        }
        records(plan, lot, &outcome, self.kernel.release(), &self.mkfs)
    }
}
