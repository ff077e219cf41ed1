//! Script that a guest runs.

use std::fmt::Write as _;

use luc_disk::ModelSpec;

use super::super::error::SweepError;
use super::super::plan::{
    BatchingRule, MAX_HOLD_US, PlanDisk, PlanDuration, SweepPlan, SweepPolicy,
};
use super::super::sweep_points::SweepPoint;
use super::super::time_scale::{GuestSpeed, TimeScale};
use super::super::workload_options::{PersonalityOptions, words};
use super::batches::GuestBatch;

/// A huge page, in which a model's disk is kept.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Path of a model's file in a guest.
pub(super) const MODEL_FILE: &str = "/root/model.toml";
/// Shell functions that run one point.
const PREAMBLE: &str = include_str!("point.sh");
/// Delay between rounds, in µs. Without it, a workload without random numbers would meet the kernel's ticks at the
/// same place in every round.
const SHIFT_US: usize = 1300;
/// Maximum time that `delay` may hold a commit, in µs, large enough that its restarts are not cut short.
const DELAY_MAX_HOLD_US: (&str, u64) = ("max_hold_us", MAX_HOLD_US);

/// Writes the script of a batch.
pub(super) fn script(plan: &SweepPlan, batch: &GuestBatch) -> Result<String, SweepError> {
    let speed = plan.speed(batch.mips);
    let mut script = head(plan, speed)?;
    script += PREAMBLE;
    let _ = writeln!(script, "stretch {}", speed.scale.permille); // a String takes any text
    for point in &batch.points {
        let target = &point.target;
        let disk = if plan.disk.is_modelled() {
            String::new()
        } else {
            disk(&plan.disk_of(target), speed)
        };
        let memory = point.workload.memory.as_ref();
        let bench = bench(plan, point, batch.round, speed)?.join(" ");
        let _ = writeln!(
            script,
            "point {} '{}' '{}' '{}' '{disk}' {} {} {bench}",
            target.fs.as_deref().unwrap_or_default(),
            target.mkfs,
            target.mount,
            write_settings(point),
            batch.round * SHIFT_US,
            memory.map_or(0, |memory| memory.bytes() >> 10),
        );
    }
    Ok(script)
}

/// Writes the variables that the shell functions read.
fn head(plan: &SweepPlan, speed: GuestSpeed) -> Result<String, SweepError> {
    let lenient = if plan.stop.best { "1" } else { "" };
    if !plan.disk.is_modelled() {
        return Ok(format!("MODEL= PAGES= ELEVATOR= LENIENT={lenient}\n"));
    }
    let spec = plan.disk.spec()?;
    let mut words = plan.disk.words();
    if model_file(plan, speed)?.is_some() {
        MODEL_FILE.clone_into(&mut words[1]);
    }
    let elevator = if spec.is_rotational() { "mq-deadline" } else { "" };
    Ok(format!(
        "MODEL='{}' PAGES={} ELEVATOR={elevator} LENIENT={lenient}\n",
        words.join(" "),
        disk_bytes(plan, &spec).div_ceil(HUGE_PAGE_BYTES)
    ))
}

/// Returns the text of the file of a model, where its name does not say all: it has one, or its times are stretched.
pub(super) fn model_file(
    plan: &SweepPlan,
    speed: GuestSpeed,
) -> Result<Option<String>, SweepError> {
    let disk = &plan.disk;
    if !disk.is_modelled() || (disk.path().is_none() && speed.scale == TimeScale::NONE) {
        return Ok(None);
    }
    Ok(Some(disk.spec()?.slowed(speed.scale.permille).to_toml()?))
}

/// Returns the memory that a model's disk takes in a guest: its size, and twice its cache for what a power cut would
/// bring back.
pub(super) fn disk_bytes(plan: &SweepPlan, spec: &ModelSpec) -> u64 {
    plan.disk.size.bytes() + 2 * spec.cache_bytes() + 2 * HUGE_PAGE_BYTES
}

/// Returns the path of a workload file in a guest.
pub(super) fn workload_file(name: &str) -> String {
    format!("/root/{name}.f")
}

/// Returns the parameters of lagdisk.
fn disk(disk: &PlanDisk, speed: GuestSpeed) -> String {
    let mut all = vec![format!("size_mib={}", disk.size.bytes() >> 20)];
    for (name, time) in [("write", &disk.write), ("flush", &disk.flush), ("read", &disk.read)] {
        let ns = time.as_ref().map_or(0, PlanDuration::ns);
        all.push(format!("{name}_ns={}", speed.scale.apply(ns)));
    }
    all.join(" ")
}

/// Returns the words after `luc bench`, times stretched.
fn bench(
    plan: &SweepPlan,
    point: &SweepPoint,
    round: usize,
    speed: GuestSpeed,
) -> Result<Vec<String>, SweepError> {
    let seed = plan.seed.wrapping_add(round as u64).to_string();
    let Some(bench) = point.workload.bench else {
        // Its own times cannot be stretched: the plan's check allows only speeds at which nothing has to be.
        let personality = PersonalityOptions::of(&point.workload.options, point.threads)?;
        let all = ["filebench".to_owned(), workload_file(&point.workload.name)];
        let all = all.into_iter().chain(["--seed".to_owned(), seed]);
        return Ok(all.chain(personality.words()).map(quote).collect());
    };
    let mut all = vec![
        bench.name().to_owned(),
        bench.clients().to_owned(),
        point.threads.to_string(),
        "--seed".to_owned(),
        seed,
    ];
    for (option, value) in &point.workload.options {
        all.extend(words(bench, option, value, speed.scale)?);
    }
    if point.target.no_fsync {
        all.push("--no-fsync".to_owned());
    }
    Ok(all)
}

/// Quotes a word for a shell.
fn quote(word: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    if word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the module's settings, whose times it stretches itself; nothing where it is not loaded or has no journal to
/// serve.
fn write_settings(point: &SweepPoint) -> String {
    let SweepPolicy::Kernel(batching, copy_out) = point.policy else {
        return String::new();
    };
    let mut all =
        vec![format!("policy={}", batching.name()), format!("copy_out={}", copy_out.name())];
    let own = &point.workload.settings;
    let is_missing = batching == BatchingRule::Delay && !own.contains_key(DELAY_MAX_HOLD_US.0);
    let missing = is_missing.then_some(DELAY_MAX_HOLD_US);
    let given = own.iter().map(|(name, value)| (name.as_str(), *value));
    for (name, value) in missing.into_iter().chain(given) {
        if point.policy.takes(name) {
            all.push(format!("{name}={value}"));
        }
    }
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::sweep_points::points;
    use super::super::batches::{RepeatStage, partition};
    use super::*;

    #[test]
    fn a_workload_file_on_a_model_is_run_as_it_is() {
        let text = "
            [virtual]
            mips = [500]
            [disk]
            model = 'hdd'
            size = '512M'
            [[workload]]
            name = 'w'
            filebench = 'webserver'
            options = { seconds = 0.5, set = ['nfiles=50', 'dir=/a b'], cold = true }
            memory = '60M'
            [[target]]
            name = 'old'
            fs = 'reiserfs'";
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let batches = partition(&plan, &points, &RepeatStage::whole(&plan, &points));
        let script = script(&plan, &batches[1]).expect("fine");
        // 512 MiB, twice the drive's 16 MiB, and two more.
        let head = "MODEL='--model hdd --size 512M' PAGES=274 ELEVATOR=mq-deadline LENIENT=\n";
        assert!(script.starts_with(head), "{script}");
        let line = "point reiserfs '' '' '' '' 1300 61440 filebench /root/w.f --seed 2 --seconds 0.5 --cold --set \
                    nfiles=50 --set 'dir=/a b'";
        assert!(script.contains("\nstretch 1000\n"));
        assert_eq!(script.lines().last(), Some(line));
    }

    #[test]
    fn a_model_is_as_much_slower_as_the_processor_is_faster() {
        let text = "
            policy = ['kernel:delay']
            [virtual]
            mips = [1000, 2000]
            repeats = 1
            [disk]
            model = 'hdd'
            [[workload]]
            name = 'w'
            bench = 'metarates'
            [[target]]
            name = 'ext4'
            fs = 'ext4'";
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let batches = partition(&plan, &points, &RepeatStage::whole(&plan, &points));
        let file = |mips| model_file(&plan, plan.speed(mips)).expect("fine");
        assert_eq!(file(1000), None);
        let text = file(2000).expect("a file");
        assert!(
            text.contains("rpm = 3600") && text.contains("average_seek_ns = 17000000"),
            "{text}"
        );
        let script = |batch| script(&plan, batch).expect("fine");
        assert!(script(&batches[0]).starts_with("MODEL='--model hdd "));
        let slower = script(&batches[1]);
        assert!(slower.starts_with("MODEL='--model /root/model.toml "), "{slower}");
        assert!(
            slower.contains("\npoint ext4 '' '' 'policy=delay copy_out=off max_hold_us=50000' '' ")
        );
    }

    #[test]
    fn a_line_for_each_point_with_stretched_times() {
        let text = "
            seed = 7
            policy = ['kernel:off', 'kernel:delay', 'kernel:luc', 'kernel:auto+on']
            [virtual]
            mips = [1000, 1500]
            repeats = 2
            [disk]
            size = '400M'
            write = '8ms'
            [[workload]]
            name = 'w'
            bench = 'oltp'
            threads = [48]
            options = { seconds = 0.5, think = '1ms', parameters = 'luc' }
            settings = { delay_us = 16000, set_point = 3 }
            [[target]]
            name = 'ext4'
            fs = 'ext4'
            mkfs = '-J size=64'
            mount = 'noatime'
            [[target]]
            name = 'nofsync'
            fs = 'xfs'
            policy = ['off']
            no-fsync = true
            disk = { flush = '1ms', size = '500M' }";
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        let points = points(&plan);
        let batches = partition(&plan, &points, &RepeatStage::whole(&plan, &points));
        assert_eq!(batches.len(), 4);
        let head = "MODEL= PAGES= ELEVATOR= LENIENT=\n";
        let script = script(&plan, &batches[3]).expect("fine");
        assert!(script.starts_with(head) && script.contains("\nstretch 1500\n"));
        let lines: Vec<&str> = script
            .lines()
            .filter(|line| line.starts_with("point ") && line.contains("_ns"))
            .collect();
        assert_eq!(lines.len(), 5, "{script}");
        for line in [
            "point ext4 '-J size=64' 'noatime' 'policy=auto copy_out=on' 'size_mib=400 write_ns=12000000 flush_ns=0 \
             read_ns=0' 1300 0 oltp --writers 48 --seed 8 --parameters luc --seconds 0.75 --think 1500000ns",
            "point ext4 '-J size=64' 'noatime' 'policy=delay copy_out=off max_hold_us=50000 delay_us=16000' \
             'size_mib=400 write_ns=12000000 flush_ns=0 read_ns=0' 1300 0 oltp --writers 48 --seed 8 \
             --parameters luc --seconds 0.75 --think 1500000ns",
            "point ext4 '-J size=64' 'noatime' 'policy=pid copy_out=heuristic set_point=3' \
             'size_mib=400 write_ns=12000000 flush_ns=0 read_ns=0' 1300 0 oltp --writers 48 --seed 8 \
             --parameters luc --seconds 0.75 --think 1500000ns",
            "point xfs '' '' '' 'size_mib=500 write_ns=12000000 flush_ns=1500000 read_ns=0' 1300 0 oltp --writers 48 \
             --seed 8 --parameters luc --seconds 0.75 --think 1500000ns --no-fsync",
        ] {
            assert!(lines.contains(&line), "{line}\n{lines:#?}");
        }
    }
}
