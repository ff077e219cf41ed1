//! What a guest does.

use std::fmt::Write as _;

use luc_disk::units::{parse_duration_ns, parse_size_bytes};

use super::super::error::SweepError;
use super::super::options::words;
use super::super::plan::{Disk, LONGEST_HOLD_US, Plan};
use super::super::points::Point;
use super::lots::Lot;
use super::speed::Speed;

/// What each point does.
const PREAMBLE: &str = include_str!("point.sh");
/// What draws nothing at random meets the kernel's ticks elsewhere in another round: so much later, µs.
const SHIFT_US: usize = 1300;
/// What `pid` waits for the next request, and holds in all, µs: the module's own.
const PID_US: [(&str, u64); 2] = [("timeout_us", 1000), ("max_hold_us", 20_000)];
/// What `delay` waits, and holds in all, µs.
const DELAY_US: [(&str, u64); 2] = [("delay_us", 1000), ("max_hold_us", LONGEST_HOLD_US)];

/// The script of a lot.
pub(super) fn script(plan: &Plan, lot: &Lot) -> Result<String, SweepError> {
    let speed = Speed::of(plan, lot.mips);
    let mut script = PREAMBLE.to_owned();
    let _ = writeln!(script, "stretch {}", speed.stretch.permille); // a String takes any text
    let disk = disk(&plan.disk, speed)?;
    for point in &lot.points {
        let target = &point.target;
        let bench = bench(plan, point, lot.round, speed)?.join(" ");
        let _ = writeln!(
            script,
            "point {} '{}' '{}' '{}' '{disk}' {} {bench}",
            target.fs.as_deref().unwrap_or_default(),
            target.mkfs,
            target.mount,
            settings(point, speed),
            lot.round * SHIFT_US,
        );
    }
    Ok(script)
}

/// The parameters of lagdisk.
fn disk(disk: &Disk, speed: Speed) -> Result<String, SweepError> {
    let mut all = vec![format!("size_mib={}", parse_size_bytes(&disk.size)? >> 20)];
    for (name, time) in [
        ("write", &disk.write),
        ("flush", &disk.flush),
        ("read", &disk.read),
    ] {
        let ns = time.as_deref().map_or(Ok(0), parse_duration_ns)?;
        all.push(format!("{name}_ns={}", speed.stretch.stretch(ns)));
    }
    Ok(all.join(" "))
}

/// The words after `luc bench`, times stretched.
fn bench(
    plan: &Plan,
    point: &Point,
    round: usize,
    speed: Speed,
) -> Result<Vec<String>, SweepError> {
    let Some(bench) = point.workload.bench else {
        return Ok(Vec::new());
    };
    let mut all = vec![
        bench.name().to_owned(),
        bench.clients().to_owned(),
        point.threads.to_string(),
        "--seed".to_owned(),
        plan.seed.wrapping_add(round as u64).to_string(),
    ];
    for (option, value) in &point.workload.options {
        all.extend(words(bench, option, value, speed.stretch)?);
    }
    if point.target.no_fsync {
        all.push("--no-fsync".to_owned());
    }
    Ok(all)
}

/// The module's settings, times stretched; nothing where it is not loaded or has no journal to serve.
fn settings(point: &Point, speed: Speed) -> String {
    let Some((policy, copy_out)) = point.policy.module() else {
        return String::new();
    };
    let mut all = vec![format!("policy={policy}"), format!("copy_out={copy_out}")];
    let defaults = match policy {
        "pid" => PID_US.as_slice(),
        "delay" => DELAY_US.as_slice(),
        _ => &[],
    };
    let own = &point.workload.settings;
    let missing = defaults.iter().filter(|(name, _)| !own.contains_key(*name));
    let given = own.iter().map(|(name, value)| (name.as_str(), *value));
    for (name, value) in missing.copied().chain(given) {
        if point.policy.takes(name) {
            all.push(format!("{name}={}", stretched(name, value, speed)));
        }
    }
    all.join(" ")
}

fn stretched(name: &str, value: u64, speed: Speed) -> u64 {
    if !name.ends_with("_us") {
        return value;
    }
    speed.stretch.stretch(value).min(LONGEST_HOLD_US)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::points::points;
    use super::super::lots::deal;
    use super::*;

    #[test]
    fn a_line_for_each_point_with_stretched_times() {
        let text = "
            seed = 7
            policy = ['kernel:off', 'kernel:delay', 'kernel:luc']
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
            no-fsync = true";
        let plan = Plan::parse(text, Path::new("p.toml")).expect("fine");
        let lots = deal(&plan, &points(&plan));
        assert_eq!(lots.len(), 4);
        let script = script(&plan, &lots[3]).expect("fine");
        assert!(script.contains("\nstretch 1500\n"));
        let lines: Vec<&str> = script
            .lines()
            .filter(|line| line.starts_with("point ") && line.contains("_ns"))
            .collect();
        assert_eq!(lines.len(), 4, "{script}");
        for line in [
            "point ext4 '-J size=64' 'noatime' 'policy=delay copy_out=off max_hold_us=50000 delay_us=24000' \
             'size_mib=400 write_ns=12000000 flush_ns=0 read_ns=0' 1300 oltp --writers 48 --seed 8 \
             --parameters luc --seconds 0.75 --think 1500000ns",
            "point ext4 '-J size=64' 'noatime' 'policy=pid copy_out=heuristic timeout_us=1500 max_hold_us=30000 \
             set_point=3' 'size_mib=400 write_ns=12000000 flush_ns=0 read_ns=0' 1300 oltp --writers 48 --seed 8 \
             --parameters luc --seconds 0.75 --think 1500000ns",
            "point xfs '' '' '' 'size_mib=400 write_ns=12000000 flush_ns=0 read_ns=0' 1300 oltp --writers 48 \
             --seed 8 --parameters luc --seconds 0.75 --think 1500000ns --no-fsync",
        ] {
            assert!(lines.contains(&line), "{line}\n{lines:#?}");
        }
    }
}
