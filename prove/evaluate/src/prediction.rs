//! Part `prediction`: the gain by batching that `luc explain` predicts, beside the gate's gain. It also shows the
//! errors of the split and the models of an fsync.

use crate::disks::{DiskSpec, EXT4, FLUSH_6MS};
use crate::error::EvaluateError;
use crate::harness::Harness;
use crate::rounds::{self, Job, Under};

const STOCK: &str = "stock";
const GATE: &str = "gate";
const RECORDED: &str = "recorded";

const FLUSH_2MS: DiskSpec = DiskSpec {
    model: &["--model", "fixed", "--flush", "2ms", "--write", "50us", "--read", "50us"],
    ..EXT4
};
const HARD_DISK: DiskSpec = DiskSpec { model: &["--model", "hdd"], ..EXT4 };
const CLOUD: DiskSpec = DiskSpec { model: &["--model", "cloud"], ..EXT4 };
const FAST_COMMIT: DiskSpec =
    DiskSpec { model: FLUSH_6MS, fs: "ext4", mkfs: "-i 4096 -J size=1024 -O fast_commit" };

/// Name, disk, and words of `luc bench`.
const CELLS: [(&str, DiskSpec, &[&str]); 13] = [
    ("1 thread", EXT4, &["metarates", "--threads", "1"]),
    ("2 threads", EXT4, &["metarates", "--threads", "2"]),
    ("4 threads", EXT4, &["metarates", "--threads", "4"]),
    ("8 threads", EXT4, &["metarates", "--threads", "8"]),
    ("16 threads", EXT4, &["metarates", "--threads", "16"]),
    ("32 threads", EXT4, &["metarates", "--threads", "32"]),
    ("16 processes", EXT4, &["metarates", "--threads", "16", "--processes"]),
    ("8 threads that think 10 ms", EXT4, &["metarates", "--threads", "8", "--think", "10ms"]),
    ("8 threads, flush of 2 ms", FLUSH_2MS, &["metarates", "--threads", "8"]),
    ("8 threads, hard disk", HARD_DISK, &["metarates", "--threads", "8"]),
    ("8 threads, cloud disk", CLOUD, &["metarates", "--threads", "8"]),
    ("8 threads, fast_commit", FAST_COMMIT, &["metarates", "--threads", "8"]),
    ("varmail, 16 threads", EXT4, &["varmail", "--threads", "16", "--parameters", "luc"]),
];

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(3);
    let seconds = harness.options.seconds.unwrap_or(4.0);
    let length = ["--seconds".to_owned(), seconds.to_string()];
    let jobs: Vec<Job> = CELLS
        .iter()
        .flat_map(|(cell, disk, words)| {
            let settings = [(STOCK, Under::Bare), (GATE, Under::Gate), (RECORDED, Under::Recorder)];
            let words = words.iter().map(ToString::to_string);
            let words: Vec<String> = words.chain(length.clone()).collect();
            settings.map(|(setting, under)| Job {
                cell: (*cell).to_owned(),
                setting,
                disk: *disk,
                words: words.clone(),
                under,
            })
        })
        .collect();
    rounds::run(harness, &jobs, repeats)
}
