//! Part `throttle-soak`: hours of services that come, go and are killed, under a daemon that is disturbed in every
//! known way.

mod events;
mod growth;
mod watch;

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_harness::disks::{Disk, DiskSpec};
use luc_harness::error::EvaluateError;
use luc_harness::groups;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_stats::seeded_random;
use serde_json::json;

use events::{FILES, SoakSite};
use growth::Growth;
use watch::Watch;

/// Maximum time for which the daemon may freeze a service, s.
const MAX_FROZEN_S: f64 = 2.0;
const DEFAULT_SECONDS: f64 = 7200.0;
const EVENT_INTERVAL: Duration = Duration::from_millis(700);
/// Time for services that run at the end to finish.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);
/// Size of each file that services read, MiB.
const FILE_MIB: u64 = 24;
/// Disk that files and the services' output fill now and then.
const DISK: DiskSpec =
    DiskSpec { model: &["--model", "hdd"], fs: "ext4", mkfs: "-E nodiscard,lazy_itable_init=1" };

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let root = groups::root().ok_or_else(|| missing("a mount of cgroup2"))?;
    let mut words = DISK.words();
    if let Some(size) = words.iter_mut().find(|word| *word == "4G") {
        *size = "512M".to_owned();
    }
    let disk = Disk::create_with(harness, words)?;
    for number in 0..FILES {
        let path = disk.mount.join(format!("file-{number}"));
        let zeros = vec![0x5a_u8; (FILE_MIB << 20) as usize];
        fs::write(&path, zeros).map_err(EvaluateError::file("write", &path))?;
    }
    let config = config(harness, &disk)?;
    let seconds = harness.options.seconds.unwrap_or(DEFAULT_SECONDS);
    let half = Duration::from_secs_f64(seconds / 2.0);
    let mut progress = Progress::new(harness.part, 20);
    let records_before = records();
    let watch = Watch::start(&root);
    let mut site = SoakSite::open(harness, &root, &disk, config)?;
    let mut random = seeded_random::stream(harness.options.seed, 0);
    let mut growth = Growth::default();
    let begun = Instant::now();
    let mut steps = 0;
    // One daemon lives through the first half, so that it shows whether it grows.
    while begun.elapsed() < 2 * half {
        stop_if_interrupted()?;
        let may_kill = begun.elapsed() >= half;
        site.step(&mut random, may_kill, &watch)?;
        if !may_kill {
            growth.look(site.daemon());
        }
        let done = (begun.elapsed().as_secs_f64() / (2 * half).as_secs_f64() * 20.0) as usize;
        while steps < done.min(20) {
            steps += 1;
            progress.step(&site.count().line());
        }
        sleep(EVENT_INTERVAL);
    }
    site.finish(&watch, FINISH_TIMEOUT)?;
    let (count, frozen) = site.close(&watch);
    let longest_s = watch.longest_s();
    // Whatever an ended daemon leaves is a fault.
    let left_records = records().saturating_sub(records_before);
    drop(watch);
    harness.keep(json!({ "seconds": seconds, "events": count, "longest_frozen_s": longest_s,
                         "growth": growth, "left_frozen": frozen, "left_records": left_records }));
    Ok(())
}

fn records() -> usize {
    fs::read_dir("/run/luc/throttle/records").map_or(0, Iterator::count)
}

fn config(harness: &Harness, disk: &Disk<'_>) -> Result<PathBuf, EvaluateError> {
    let path = harness.path("soak.toml");
    let own = |kind: &str| format!("luc-evaluate-{}-{kind}", std::process::id());
    let text = format!(
        "max_frozen = '{MAX_FROZEN_S}s'\ndisks = ['{}']\n[[task]]\nmatch = '{}'\nclass = 'protect'\n\
         [[task]]\nmatch = '{}'\nclass = 'batch'\n",
        disk.device(),
        own("0"),
        own("*"),
    );
    fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
    Ok(path)
}
