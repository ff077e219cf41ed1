//! The cost of watching disks: `cargo bench -p luc-probe` as root, with `TMPDIR` on tmpfs for the disk's file.
//!
//! Direct reads of 4 KiB from a loop device take turns: without the programs, with programs that watch another disk,
//! and with programs that watch a thread on this disk. Then come buffered writes to a file system, and the time to read
//! the sums. Times of programs are the kernel's own (`BPF_ENABLE_STATS`, which adds some 20 ns to each run).

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Instant;

use libbpf_rs::query::ProgInfoIter;
use luc_probe::disk_contention::{ContentionProbe, NotifyOn};

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/contention/test_bed.rs"]
mod test_bed;

use test_bed::{ContentionBed, LoopDisk};

const ROUNDS: usize = 9;
const READS: u64 = 20_000;
const WRITE_MIB: u64 = 128;
const TASKS: u32 = 100;

fn main() {
    let Some(ContentionBed { contention, disk, .. }) = ContentionBed::new() else {
        return;
    };
    drop(contention);
    let kinds = ["without", "another disk", "watched", "watched, notifying"];
    let mut reads = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for (kind, times) in reads.iter_mut().enumerate() {
            let contention = watching(kind, &disk);
            times.push(read_us(&disk));
            drop(contention);
        }
    }
    for (kind, times) in kinds.iter().zip(&mut reads) {
        println!("direct read of 4 KiB, {kind:<20} {:>8.2} us", median(times));
    }
    let mount = disk.mount();
    let mut writes = vec![Vec::new(); 3];
    for _ in 0..ROUNDS {
        for (kind, times) in writes.iter_mut().enumerate() {
            let contention = watching(kind, &disk);
            times.push(write_us(&mount.path));
            drop(contention);
        }
    }
    for (kind, times) in kinds.iter().zip(&mut writes) {
        println!("buffered write of 1 MiB, {kind:<18} {:>8.2} us", median(times));
    }
    drop(mount);
    programs(&disk);
    reading(&disk);
}

/// Loads the programs for a kind of watching.
fn watching(kind: usize, disk: &LoopDisk) -> Option<ContentionProbe> {
    if kind == 0 {
        return None;
    }
    let mut contention = ContentionProbe::open().expect("opened");
    let both = kind == 3;
    let notify = NotifyOn { on_submit: both, on_done: both };
    contention.watch_thread(test_bed::thread_id(), notify).expect("watched");
    for id in 1..u64::from(TASKS) {
        contention.watch_cgroup(id << 40, notify).expect("watched");
    }
    if kind > 1 {
        contention.watch_disk(disk.dev).expect("watched");
    }
    Some(contention)
}

/// Time of a read, us.
fn read_us(disk: &LoopDisk) -> f64 {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&disk.path)
        .expect("opened");
    let mut memory = vec![0; 8192];
    let skip = memory.as_ptr().align_offset(4096);
    let begin = Instant::now();
    for number in 0..READS {
        let place = number * 7919 % 8192 * 4096;
        file.read_exact_at(&mut memory[skip..skip + 4096], place).expect("read");
    }
    begin.elapsed().as_secs_f64() * 1e6 / READS as f64
}

/// Time of a buffered write of 1 MiB to a new file, us.
fn write_us(folder: &Path) -> f64 {
    let path = folder.join("written");
    let block = vec![1; 1 << 20];
    let file = File::create(&path).expect("made");
    let begin = Instant::now();
    for number in 0..WRITE_MIB {
        file.write_all_at(&block, (number % 32) << 20).expect("written");
        if number % 32 == 31 {
            // Whole pages that are clean again, not written: to dirty them is what costs.
            file.set_len(0).expect("cut");
        }
    }
    let time = begin.elapsed();
    std::fs::remove_file(&path).expect("removed");
    time.as_secs_f64() * 1e6 / WRITE_MIB as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs and time of each program.
fn programs(disk: &LoopDisk) {
    // SAFETY: no pointers are involved; the file descriptor is ours, and ends with this process.
    let stats = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    assert!(stats >= 0, "statistics of BPF programs");
    let contention = watching(2, disk);
    let mount = disk.mount();
    read_us(disk);
    write_us(&mount.path);
    mount.flush();
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for program in ProgInfoIter::default() {
        let name = program.name.to_string_lossy().into_owned();
        if program.run_cnt > 0 {
            let sum = sums.entry(name).or_default();
            *sum = (sum.0 + program.run_cnt, sum.1 + program.run_time_ns);
        }
    }
    for (name, (runs, time_ns)) in sums {
        println!("{name:<18} {runs:>8} runs {:>7.0} ns each", time_ns as f64 / runs as f64);
    }
    drop(contention);
}

/// Time to read the sums of a hundred tasks.
fn reading(disk: &LoopDisk) {
    let mut contention = ContentionProbe::open().expect("opened");
    let slot = contention.watch_disk(disk.dev).expect("watched");
    let quiet = NotifyOn::default();
    let tasks: Vec<_> = (1..=u64::from(TASKS))
        .map(|id| contention.watch_cgroup(id << 40, quiet).expect("watched"))
        .collect();
    let rounds = 1000;
    let begin = Instant::now();
    for _ in 0..rounds {
        for task in &tasks {
            black_box(contention.task(*task, slot));
        }
        black_box(contention.disk(slot));
    }
    let each_us = begin.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("sums of {TASKS} tasks and a disk {each_us:>12.2} us");
}
