//! Conversion of a request to a plan for a sweep.

use std::path::{Path, PathBuf};

use luc_power::energy;

use super::candidates::{self, CandidateFilter, NotTried};
use super::emulated_disk;
use super::erasable_device::ErasableDevice;
use super::error::AdviseError;
use super::resolve_workload::WorkloadRequest;
use luc_sweep::{
    DeviceDescription, PlanDisk, StopRule, SweepPlan, SweepPolicy, SweepTarget, VirtualTime,
};

/// Request of a user for advice: a workload, and the candidates to compare.
#[derive(Debug, Clone)]
pub struct AdviceRequest {
    /// Built-in workload, personality or file.
    pub workload: String,
    /// `name=value`: options of a built-in workload, variables of a personality.
    pub set: Vec<String>,
    /// Length of a run; without: 5 s, or to its end.
    pub seconds: Option<f64>,
    /// Clients; without: the workload's own.
    pub threads: Option<usize>,
    pub place: CandidateStorage,
    /// File systems; all, if there are none.
    pub only: Vec<String>,
    /// Labels of options; all, if there are none.
    pub options: Vec<String>,
    /// Policies: with the gate, without it, or both.
    pub policies: Vec<SweepPolicy>,
    /// Whether options that lose data are tried as well.
    pub unsafe_too: bool,
    /// Rounds before the first look.
    pub least_rounds: usize,
    /// Rounds after which it ends.
    pub most_rounds: usize,
    /// A difference that is too small to matter, as a share.
    pub goal: f64,
    pub seed: u64,
    /// Options of the energy meter.
    pub energy: energy::EnergyOptions,
}

/// Place where candidates are measured.
#[derive(Debug, Clone)]
pub enum CandidateStorage {
    /// On emulated disks, which are made anew for each repeat.
    Disk {
        /// Name or file for `luc disk create --model`.
        model: String,
        /// Size, as in 4G; by default it follows from the workload's files.
        size: Option<String>,
    },
    /// On emulated disks in guests, in virtual time.
    Virtual { model: String, size: Option<String>, kernel: String, processors: Option<u32> },
    /// On a block device of the user, which is formatted for each repeat.
    Device(ErasableDevice),
    /// On file systems that exist.
    Directories(Vec<PathBuf>),
}

/// A plan, with explanations.
#[derive(Debug)]
pub struct AdvicePlan {
    pub plan: SweepPlan,
    /// A word for the workload, for names of folders.
    pub name: String,
    pub workload: String,
    /// Place, in words: the device that a disk stands for.
    pub place: String,
    pub device: Option<DeviceDescription>,
    /// Candidates that were left out, with the reason.
    pub not_tried: Vec<NotTried>,
}

impl AdvicePlan {
    /// Returns the workload in Filebench's language; `None` of a built-in one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let text = &self.plan.workload.first()?.text;
        (!text.is_empty()).then_some(text)
    }
}

/// Default length of a run, in s.
const SECONDS: f64 = 5.0;
/// The same in virtual time, where no noise has to average out.
const VIRTUAL_SECONDS: f64 = 2.0;
/// Millions of instructions a second of a guest's processor.
const MIPS: u64 = 1000;

/// Returns the plan that answers `request`; nothing is made yet.
///
/// # Errors
/// [`AdviseError`]: an option is wrong, or this machine lacks what is needed.
pub fn prepare(request: &AdviceRequest) -> Result<AdvicePlan, AdviseError> {
    // 1. The workload.
    let asked = WorkloadRequest {
        given: &request.workload,
        set: &request.set,
        seconds: request.seconds,
        threads: request.threads,
        default_seconds: match request.place {
            CandidateStorage::Virtual { .. } => VIRTUAL_SECONDS,
            _ => SECONDS,
        },
    };
    let resolved = asked.resolve()?;
    // 2. The candidates, and the disk or directories on which they are measured.
    let made_for = |kernel| {
        candidates::targets(&CandidateFilter {
            only: &request.only,
            options: &request.options,
            unsafe_too: request.unsafe_too,
            kernel,
        })
    };
    let made = || made_for(None);
    let (mut disk, mut device, mut virtual_time) = (PlanDisk::default(), None, None);
    let (targets, not_tried, place) = match &request.place {
        CandidateStorage::Disk { model, size } => {
            disk = emulated_disk::disk(model, size.as_deref(), resolved.bytes)?;
            let (targets, mut not_tried) = made()?;
            let targets = candidates::that_fit(targets, disk.size.bytes(), &mut not_tried);
            (targets, not_tried, emulated_disk::describe_disk(&disk))
        }
        CandidateStorage::Virtual { model, size, kernel, processors } => {
            if request.policies.contains(&SweepPolicy::AUTO) {
                return Err(AdviseError::Option(
                    "--policy auto is the fsync gate's, which the guests of --virtual do not have: leave one of them \
                     out"
                        .to_owned(),
                ));
            }
            disk = emulated_disk::in_guest(model, size.as_deref(), resolved.bytes)?;
            virtual_time =
                Some(VirtualTime { processors: *processors, ..VirtualTime::of(kernel, MIPS) });
            let (targets, mut not_tried) = made_for(Some(kernel))?;
            let targets = candidates::that_fit(targets, disk.size.bytes(), &mut not_tried);
            let place = format!(
                "virtual time: Linux {kernel} in QEMU, {} of {MIPS} million instructions a second; {}",
                match processors {
                    None | Some(1) => "one processor".to_owned(),
                    Some(several) => format!("{several} processors"),
                },
                emulated_disk::describe_disk(&disk)
            );
            (targets, not_tried, place)
        }
        CandidateStorage::Device(given) => {
            let about = given.about(resolved.bytes)?;
            let (targets, mut not_tried) = made()?;
            let targets = given.take(targets, &about, &mut not_tried)?;
            let place = format!("device {about}");
            device = Some(about);
            (targets, not_tried, place)
        }
        CandidateStorage::Directories(directories) => {
            if !request.only.is_empty() || !request.options.is_empty() {
                return Err(AdviseError::Option(
                    "--only and --options choose file systems to make, and --on takes those that are there: leave \
                     them out"
                        .to_owned(),
                ));
            }
            let targets =
                directories.iter().map(|path| directory(path)).collect::<Result<Vec<_>, _>>()?;
            let mounts: Vec<String> = targets.iter().map(mount).collect();
            let place = format!("file systems as they are: {}", mounts.join(", "));
            (targets, Vec::new(), place)
        }
    };
    // 3. The plan, if there is a choice.
    if targets.len() * request.policies.len() < 2 {
        let reasons: Vec<String> =
            not_tried.iter().map(|NotTried { what, why }| format!("{what}: {why}")).collect();
        return Err(AdviseError::NoCandidate(if reasons.is_empty() {
            "a choice needs two candidates: name more with --only, --options, --on, or --policy off,auto".to_owned()
        } else {
            reasons.join("; ")
        }));
    }
    let plan = SweepPlan {
        seed: request.seed,
        stop: StopRule {
            goal: request.goal,
            min: request.least_rounds,
            max: request.most_rounds,
            best: true,
            stolen: None,
        },
        disk,
        virtual_time,
        threads: vec![resolved.threads],
        policy: request.policies.clone(),
        energy: request.energy.clone(),
        workload: vec![resolved.workload],
        target: targets,
        ..SweepPlan::default()
    };
    Ok(AdvicePlan {
        name: plan.workload[0].name.clone(),
        plan: plan.checked()?,
        workload: resolved.about,
        place,
        device,
        not_tried,
    })
}

fn directory(path: &Path) -> Result<SweepTarget, AdviseError> {
    let absolute = path.canonicalize().ok().filter(|path| path.is_dir());
    let absolute = absolute.ok_or_else(|| AdviseError::Directory(path.to_owned()))?;
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' }
    };
    let name: String = absolute.to_string_lossy().chars().map(plain).collect();
    let name = name.trim_matches('-');
    Ok(SweepTarget {
        name: if name.is_empty() { "root" } else { name }.to_owned(),
        directory: Some(absolute),
        ..SweepTarget::default()
    })
}

/// Describes the mount of the directory.
fn mount(target: &SweepTarget) -> String {
    let directory = target.directory.clone().unwrap_or_default();
    let mount = luc_disk::mount_of(&directory).unwrap_or_else(|| "unknown mount".to_owned());
    format!("{} ({mount})", directory.display())
}
