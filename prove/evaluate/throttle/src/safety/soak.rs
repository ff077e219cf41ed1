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
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_harness::report::{Page, Table, Target};
use luc_harness::{cells, groups};
use luc_stats::random;
use serde_json::json;

use events::{Count, FILES, SoakSite};
use growth::Growth;
use watch::Watch;

/// Maximum time for which the daemon may freeze a service, s.
const MAX_FROZEN_S: f64 = 2.0;
/// Tolerance of that time, s.
const FREEZE_TOLERANCE_S: f64 = 0.1;
const DEFAULT_SECONDS: f64 = 7200.0;
const EVENT_INTERVAL: Duration = Duration::from_millis(700);
/// Time for services that run at the end to finish.
const FINISH_TIMEOUT: Duration = Duration::from_secs(120);
/// Size of each file that services read, MiB.
const FILE_MIB: u64 = 24;
/// Disk that files and the services' output fill now and then.
const DISK: DiskSpec =
    DiskSpec { model: &["--model", "hdd"], fs: "ext4", mkfs: "-E nodiscard,lazy_itable_init=1" };

/// Leftovers of an ended daemon, which are faults.
#[derive(Debug)]
struct Left {
    frozen: usize,
    records: usize,
}

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
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
    let mut random = random::stream(harness.options.seed, 0);
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
    let left = Left { frozen, records: records().saturating_sub(records_before) };
    drop(watch);
    harness.keep(json!({ "seconds": seconds, "events": count, "longest_frozen_s": longest_s,
                         "growth": growth, "left_frozen": left.frozen, "left_records": left.records }));
    Ok(page(seconds, &count, longest_s, &growth, &left))
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

fn page(seconds: f64, count: &Count, longest_s: f64, growth: &Growth, left: &Left) -> Page {
    let mut events = Table::new(&["event", "times"]);
    for (what, times) in count.rows() {
        events.row(cells![what, times]);
    }
    let mut sizes = Table::new(&["at most", "first 1000 looks", "after them"]);
    for (what, first, last) in growth.rows() {
        sizes.row(cells![what, first, last]);
    }
    let bound_s = MAX_FROZEN_S + FREEZE_TOLERANCE_S;
    Page {
        title: "A throttle among services that come, go and are killed".to_owned(),
        about: format!(
            "`luc throttle daemon` for {seconds} s of real time on ext4 on an emulated hard disk of 512 MiB. Every \
             {} ms something happens at random: a service arrives that reads, writes, fsyncs, fills the disk or \
             sleeps; one is killed and its cgroup removed; the daemon or its guardian is stopped (SIGSTOP) for up to \
             3 s, as if its clock stood still; a service is frozen by somebody else, who thaws it later; in the second \
             half the daemon or its guardian is killed (SIGKILL) and the daemon started again. A thread looks at \
             every cgroup each 2 ms. A machine that sleeps is not tried: both clocks would have to stop at once.",
            EVENT_INTERVAL.as_millis()
        ),
        tables: vec![
            ("What happened:".to_owned(), events),
            ("The daemon of the first half:".to_owned(), sizes),
        ],
        targets: vec![
            Target::new(
                format!("nothing is frozen longer than {bound_s} s"),
                longest_s <= bound_s && longest_s > 0.0,
                format!("{longest_s:.3} s"),
            ),
            Target::new(
                "no service is lost: each that was not killed ends by itself, without an error",
                count.lost == 0 && count.ended > 0,
                format!("{} of {} lost", count.lost, count.ended + count.lost),
            ),
            Target::new(
                "whoever somebody else froze stays frozen",
                count.thawed_foreign == 0 && count.foreign > 0,
                format!("{} of {} thawed", count.thawed_foreign, count.foreign),
            ),
            Target::new(
                "nothing is left frozen, and no record",
                left.frozen == 0 && left.records == 0,
                format!("{} frozen, {} records", left.frozen, left.records),
            ),
            Target::new(
                "the daemon does not grow: memory by less than 1 MiB, descriptors by less than a service's",
                growth.is_none(),
                growth.text(),
            ),
        ],
    }
}
