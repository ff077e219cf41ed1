//! Everything that the guests of a sweep share, and the run of one guest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_module::build_module::embedded_sources::{LAGDISK, LUC, ModuleSources};
use luc_vm::{GuestKernel, GuestTime, Qemu, VirtualMachine};

use super::super::error::SweepError;
use super::super::guest_needs::guest_needs;
use super::super::plan::{PlanWorkload, SweepPlan, SweepPolicy, VirtualTime};
use super::super::repeat_environment::mkfs_version;
use super::super::results_journal::RecordedResults;
use super::super::sweep_points::SweepPoint;
use super::super::workload_options::PersonalityOptions;
use super::batches::GuestBatch;
use super::parse_results::{GuestVersions, records};
use super::script::{MODEL_FILE, disk_bytes, model_file, script, workload_file};

/// Time for one guest on a busy host.
const GUEST_TIMEOUT: Duration = Duration::from_secs(3600);
/// Memory of a guest with lagdisk: the largest disk, and the same again for the workload.
const LAGDISK_MEMORY_BYTES: u64 = 2 << 30;
/// Memory for kernel, programs and dirty pages in a guest whose disk has a model.
const SYSTEM_BYTES: u64 = 640 << 20;
/// Upper bound of the files that built-in workloads make by default.
const BUILT_IN_BYTES: f64 = 2e8;
/// Kernel arguments of guests with a disk model. Clearing each allocated page would take most of a guest's time. With
/// RCU's work on a thread of its own, idle processors skip their ticks. Ticks are the cost of idle time.
const MODEL_ARGUMENTS: [&str; 2] = ["init_on_alloc=0", "rcu_nocbs=0"];

/// The plan, the kernel, the modules and the program.
#[derive(Debug)]
pub(super) struct GuestRunner {
    plan: SweepPlan,
    kernel: GuestKernel,
    qemu: Qemu,
    /// Processors of guests whose points do not name a number.
    processors: u32,
    luc: PathBuf,
    modules: Vec<PathBuf>,
    memory_bytes: u64,
    /// Versions of mkfs, by file system.
    mkfs: BTreeMap<String, String>,
}

impl GuestRunner {
    /// Finds the kernel, and builds the modules into `work`.
    pub(super) fn open(
        plan: &SweepPlan,
        virtual_time: &VirtualTime,
        luc: &Path,
        work: &Path,
    ) -> Result<Self, SweepError> {
        let kernel = GuestKernel::find(&virtual_time.kernel)?;
        let module = |name: &str, sources: ModuleSources| -> Result<PathBuf, SweepError> {
            let folder = work.join("sources").join(name);
            sources.write(&folder)?;
            Ok(kernel.build_module(&folder, work)?)
        };
        // Modules need the kernel's headers, so they are built only if used: lagdisk without a model, luc.ko if a
        // policy needs it.
        let has_kernel =
            plan.all_policies().any(|policy| matches!(policy, SweepPolicy::Kernel(..)));
        let mut modules = Vec::new();
        if has_kernel || !plan.disk.is_modelled() {
            modules.push(module("luc", LUC)?);
        }
        if !plan.disk.is_modelled() {
            modules.push(module("lagdisk", LAGDISK)?);
        }
        let file_systems = plan.target.iter().filter_map(|target| target.fs.clone());
        let mkfs = file_systems.filter_map(|fs| Some((fs.clone(), mkfs_version(&fs)?)));
        Ok(Self {
            mkfs: mkfs.collect(),
            memory_bytes: memory_bytes(plan)?,
            plan: plan.clone(),
            kernel,
            qemu: virtual_time.qemu()?,
            processors: virtual_time.processors.unwrap_or(1),
            luc: luc.to_owned(),
            modules,
        })
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Lists the QEMUs that run the guests of `points`, with the way they run processors.
    pub(super) fn qemus(&self, points: &[SweepPoint]) -> BTreeSet<String> {
        points.iter().map(|point| self.qemu_with(point.processors)).collect()
    }

    fn qemu_with(&self, processors: Option<u32>) -> String {
        self.qemu.with_processors(processors.unwrap_or(self.processors))
    }

    pub(super) fn run(&self, batch: &GuestBatch) -> Result<RecordedResults, SweepError> {
        // 1. The machine, and the programs, modules and files that its script needs.
        let plan = &self.plan;
        let speed = plan.speed(batch.mips);
        let file_systems = plan.target.iter().filter_map(|target| target.fs.as_deref());
        // Sorted by name, so that the order of targets in the plan does not change the guest.
        let file_systems: BTreeSet<&str> = file_systems.collect();
        let programs: BTreeSet<&str> =
            file_systems.iter().map(|fs| guest_needs(fs).program).collect();
        let mut vm = VirtualMachine::new(&self.kernel)
            .qemu(self.qemu.clone())
            .mode(GuestTime::VirtualTime {
                shift: speed.shift,
                processors: batch.processors.unwrap_or(self.processors),
            })
            .memory_mib((self.memory_bytes >> 20) as u32)
            .timeout(GUEST_TIMEOUT)
            .script(script(plan, batch)?);
        for program in programs {
            vm = vm.program(program);
        }
        vm = vm.program(&self.luc);
        for fs in file_systems {
            vm = vm.module(guest_needs(fs).module);
        }
        for workload in plan.workload.iter().filter(|workload| workload.filebench.is_some()) {
            vm = vm.content(workload_file(&workload.name), workload.text.as_str());
        }
        if plan.disk.is_modelled() {
            vm = vm.module("fuse");
            for argument in MODEL_ARGUMENTS {
                vm = vm.kernel_argument(argument);
            }
        }
        if let Some(text) = model_file(plan, speed)? {
            vm = vm.content(MODEL_FILE, text);
        }
        for module in &self.modules {
            let name = module.file_name().unwrap_or_default();
            vm = vm.file(Path::new("/root").join(name), module);
        }
        // 2. The run: a failed script, or a complaint of the kernel, fails the batch.
        let outcome = vm.run()?;
        let failed = |said: String| SweepError::InGuest {
            what: format!(
                "guest {} of {} MIPS, repeat {}",
                batch.number + 1,
                batch.mips,
                batch.round + 1
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
        let versions = GuestVersions {
            kernel: self.kernel.release(),
            qemu: &self.qemu_with(batch.processors),
            mkfs: &self.mkfs,
        };
        records(plan, batch, &outcome, &versions)
    }
}

/// Computes the memory of a guest. With a disk model it holds the disk, the system and the largest workload's files.
/// A workload's `memory` in the plan replaces the size of its files.
fn memory_bytes(plan: &SweepPlan) -> Result<u64, SweepError> {
    if !plan.disk.is_modelled() {
        return Ok(LAGDISK_MEMORY_BYTES);
    }
    let mut files = BUILT_IN_BYTES;
    for workload in &plan.workload {
        if let Some(memory) = &workload.memory {
            files = files.max(memory.bytes() as f64);
            continue;
        }
        for &threads in workload.threads.as_ref().unwrap_or(&plan.threads) {
            files = files.max(file_bytes(workload, threads)?);
        }
    }
    Ok(disk_bytes(plan, &plan.disk.spec()?) + SYSTEM_BYTES + files as u64)
}

/// Returns bytes of a workload file's files.
fn file_bytes(workload: &PlanWorkload, threads: usize) -> Result<f64, SweepError> {
    let Some(file) = &workload.filebench else {
        return Ok(0.0);
    };
    let set = PersonalityOptions::of(&workload.options, threads)?.set;
    Ok(luc_filebench::WorkloadFile::parse(file, &workload.text, &set)?.bytes())
}
