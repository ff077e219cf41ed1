//! Part `throttle-host`: streams on the running kernel, in real time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_harness::disks::Disk;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use luc_harness::progress::Progress;
use luc_harness::steal;
use luc_stats::seeded_random;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use super::guest::{CELLS, cells, times};
use super::mixes::{Mix, Model};
use super::settings::{Setting, ours, plain, schedulers};

/// Size of the disk, over which its arm makes its whole stroke.
const DISK_BYTES: u64 = 3 << 30;
/// Number of runs of each setting.
const REPEATS: usize = 5;
/// Number of streams at a time, and size of each one's file, MiB.
const STREAMS: [(usize, u64); 2] = [(4, 64), (8, 32)];

/// Measures the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let mixes: Vec<Mix> = STREAMS
        .into_iter()
        .map(|(count, file_mib)| Mix::streams(count, file_mib))
        .filter(|mix| harness.options.wants(&mix.name))
        .collect();
    if mixes.is_empty() {
        return Err(harness.options.no_cell());
    }
    harness.keep_processors_awake()?;
    let repeats = harness.options.repeats.unwrap_or(REPEATS);
    let settings: Vec<Setting> = schedulers().into_iter().chain(ours()).collect();
    let settings: Vec<&Setting> = settings.iter().collect();
    let cells_of = |mix: &Mix| (mix.kinds.len() + settings.len()) * repeats;
    let mut progress = Progress::new(harness.part, mixes.iter().map(cells_of).sum());
    for mix in &mixes {
        let site = HostSite::open(harness, mix)?;
        for repeat in 0..repeats {
            site.repeat(mix, &settings, repeat, &mut progress)?;
        }
    }
    Ok(())
}

/// A disk with files, and the scheduler that its queue had before.
struct HostSite<'a> {
    harness: &'a Harness,
    disk: Disk<'a>,
    scheduler: PathBuf,
    before: String,
    head: String,
}

impl<'a> HostSite<'a> {
    fn open(harness: &'a Harness, mix: &Mix) -> Result<Self, EvaluateError> {
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(EvaluateError::file("write", path))
        };
        let (model, cell) = (harness.path("model.toml"), harness.path("cell.sh"));
        write(&model, &Model::Hdd.file(DISK_BYTES))?;
        write(&cell, CELLS)?;
        let (work, out) = (harness.path("tasks"), harness.path("times"));
        for folder in [&work, &out] {
            fs::create_dir_all(folder).map_err(EvaluateError::file("make", folder))?;
        }
        let options = [
            "--model",
            &model.display().to_string(),
            "--size",
            &DISK_BYTES.to_string(),
            "--mkfs",
            "ext4",
            "--mkfs-options",
            "-E nodiscard,lazy_itable_init=1,lazy_journal_init=1",
        ];
        let mut words: Vec<String> = options.map(str::to_owned).into();
        words.extend(["--mount-options", "noatime,noinit_itable"].map(str::to_owned));
        let disk = Disk::create_with(harness, words)?;
        let mounts = Mounts::read()?;
        let head = format!(
            "export LUC='{}' MNT='{}'\nDEVICE={} CGROUPS='{}' BLKIO='{}' WORK='{}' OUT='{}' BEFORE=\n. '{}'\n",
            harness.luc_path().display(),
            disk.mount.display(),
            disk.device(),
            mounts.cgroups.display(),
            mounts.blkio.map_or_else(String::new, |path| path.display().to_string()),
            work.display(),
            out.display(),
            cell.display(),
        );
        let scheduler = PathBuf::from(format!("/sys/block/{}/queue/scheduler", disk.device()));
        let site = Self { harness, before: chosen(&scheduler), disk, scheduler, head };
        site.shell(&mix.preparation(harness.options.seed))?;
        Ok(site)
    }

    fn shell(&self, script: &str) -> Result<(), EvaluateError> {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{}{script}\n", self.head)]);
        self.harness.execute(&mut command, &[0]).map(drop)
    }

    /// Runs each task alone and all together under each setting, in random order.
    fn repeat(
        &self,
        mix: &Mix,
        settings: &[&Setting],
        repeat: usize,
        progress: &mut Progress,
    ) -> Result<(), EvaluateError> {
        let lines = cells(mix, &plain(), settings);
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.shuffle(&mut seeded_random::stream(self.harness.options.seed, repeat as u64));
        let tasks = mix.kinds.len();
        for cell in order {
            let line = &lines[cell];
            let name = line.split(' ').nth(1).unwrap_or_default();
            let setting = cell.checked_sub(tasks).map_or_else(
                || format!("task {} alone", cell + 1),
                |cell| settings[cell].name.clone(),
            );
            steal::undisturbed(self.harness, |may_repeat| {
                let (_, stolen_share) = steal::with_stolen_share(|| self.shell(line))?;
                let path = self.harness.path("times").join(format!("{name}.tasks"));
                let text = fs::read_to_string(&path).map_err(EvaluateError::file("read", &path))?;
                let times = times(&text)?;
                if times.is_empty() {
                    return Err(missing("a task's times"));
                }
                let report = fs::read_to_string(path.with_extension("json")).ok();
                let report: Option<Value> =
                    report.and_then(|text| serde_json::from_str(&text).ok());
                self.harness.keep(json!({
                    "mix": mix.name, "kinds": mix.about(), "file_mib": mix.sizes(),
                    "setting": setting, "repeat": repeat, "tasks": times,
                    "throttle": report, "stolen_share": stolen_share,
                    "disturbed": steal::is_disturbed(may_repeat, stolen_share),
                }));
                Ok(((), stolen_share))
            })?;
            progress.step(&format!("{}, {setting}", mix.name));
        }
        Ok(())
    }
}

impl Drop for HostSite<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.scheduler, &self.before) {
            let device = self.disk.device();
            eprintln!("luc-evaluate: the scheduler of {device} is not put back: {error}");
        }
    }
}

/// Returns the scheduler in brackets: `mq-deadline [none]`.
fn chosen(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let name = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    name.map_or("none", |(name, _)| name).to_owned()
}

struct Mounts {
    cgroups: PathBuf,
    /// Mount point of the blkio controller of version 1, if there is one.
    blkio: Option<PathBuf>,
}

impl Mounts {
    fn read() -> Result<Self, EvaluateError> {
        let path = Path::new("/proc/self/mounts");
        let text = fs::read_to_string(path).map_err(EvaluateError::file("read", path))?;
        Self::of(&text).ok_or_else(|| missing("a mount of cgroup2"))
    }

    fn of(mounts: &str) -> Option<Self> {
        let mut found = (None, None);
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                [_, path, "cgroup2", ..] => found.0 = Some(PathBuf::from(path)),
                [_, path, "cgroup", options, ..]
                    if options.split(',').any(|word| word == "blkio") =>
                {
                    found.1 = Some(PathBuf::from(path));
                }
                _ => {}
            }
        }
        Some(Self { cgroups: found.0?, blkio: found.1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_found_in_mounts() {
        let text = "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let mounts = Mounts::of(text).expect("cgroup2");
        assert_eq!(mounts.cgroups, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(mounts.blkio.as_deref(), Some(Path::new("/sys/fs/cgroup/blkio")));
        assert!(Mounts::of("proc /proc proc rw 0 0\n").is_none());
    }
}
