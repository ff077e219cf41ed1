//! A plan and repeats for tests: two numbers of threads, two directories.

use std::fs;

use super::plan::SweepPlan;
use super::repeat_environment::RepeatEnvironment;
use super::results_journal::RepeatRecord;

pub(super) fn plan() -> SweepPlan {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.toml");
    let text = "threads = [1, 8]\n[[workload]]\nname = 'w'\ncommand = ['true']\n\
                [[target]]\nname = 'a'\ndirectory = '/'\n[[target]]\nname = 'b'\ndirectory = '/tmp'\n";
    fs::write(&path, text).expect("written");
    SweepPlan::read(&path).expect("fine")
}

pub(super) fn record(key: &str, round: usize, value: f64) -> RepeatRecord {
    RepeatRecord {
        key: key.to_owned(),
        round,
        value,
        warm_up: None,
        environment: RepeatEnvironment {
            started_unix_s: 1_700_000_000,
            kernel: "6.1.0".to_owned(),
            qemu: None,
            mkfs: None,
            mount: Some("ext4 /dev/loop0 rw".to_owned()),
            caches_dropped: true,
            io_pressure_us: Some(5),
            cpu_pressure_us: None,
            stolen_share: 0.0,
            load: 0.5,
            governor: None,
            frequency_khz: None,
        },
        energy: None,
        per_gross_joule: None,
        per_net_joule: None,
        counters: Default::default(),
        discarded: Vec::new(),
    }
}
