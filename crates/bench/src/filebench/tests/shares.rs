//! The stock workloads against the parameters of Filebench's personalities: threads, filesets, and in
//! `--compat` the share of each flowop and the mean size of what it moves. The table is in `stocks`.

use super::*;
use crate::filebench::plan::{Plan, Step, Task};

mod stocks;

use stocks::{APPEND, STOCKS, Stock};

/// A flowop of a loop as this file writes it.
struct Share {
    task: Task,
    weight: u64,
    exact: Option<u64>,
    /// Mean and standard deviation.
    mean: Option<(f64, f64)>,
    openings: u64,
    skipped: bool,
}

/// Threads and flowops of a loop.
fn shares(text: &str) -> (usize, Vec<Share>) {
    let (threads, flowops) = text.split_once(": ").expect("threads");
    let text = flowops
        .replace("[A]", APPEND)
        .replace(
            "[aw=2048x10]29",
            &["aw=2048x10+1", &" aw=2048x10".repeat(28)].concat(),
        )
        .replace("[r=2048]30", &["r=2048+1", &" r=2048".repeat(29)].concat());
    let share = |word: &str| {
        let (word, skipped) = word
            .strip_suffix('?')
            .map_or((word, false), |word| (word, true));
        let (word, openings) = word.split_once('+').map_or((word, 0), |(word, count)| {
            (word, count.parse().expect("openings"))
        });
        let (word, weight) = word.split_once('x').map_or((word, 1), |(word, count)| {
            (word, count.parse().expect("weight"))
        });
        let (word, mean) = word.split_once('~').map_or((word, None), |(word, size)| {
            let (mean, deviation) = size.split_once('/').expect("deviation");
            (
                word,
                Some((
                    mean.parse().expect("mean"),
                    deviation.parse().expect("deviation"),
                )),
            )
        });
        let (kind, exact) = word.split_once('=').map_or((word, None), |(word, size)| {
            (word, Some(size.parse().expect("size")))
        });
        let task = match kind {
            "O" => Task::Open,
            "C" => Task::Close,
            "N" => Task::Create,
            "D" => Task::Delete,
            "S" => Task::Stat,
            "F" => Task::Fsync,
            "RW" => Task::ReadWhole,
            "WW" => Task::WriteWhole,
            "A" => Task::Append,
            "AR" => Task::AppendRandom,
            "r" => Task::Read,
            "w" => Task::Write,
            "aw" => Task::AioWrite,
            "ai" => Task::AioWait,
            "M" => Task::MakeDirectory,
            "X" => Task::RemoveDirectory,
            "L" => Task::ListDirectory,
            other => panic!("{other}"),
        };
        Share {
            task,
            weight,
            exact,
            mean,
            openings,
            skipped,
        }
    };
    let shares = text.split_whitespace().map(share).collect();
    (threads.parse().expect("threads"), shares)
}

/// The operations that a loop counts, with what they do.
fn operations(steps: &[Step]) -> Vec<(Task, usize)> {
    let mut found = Vec::new();
    Step::each(steps, &mut |flowop| {
        if flowop.task.counts() {
            found.push((flowop.task, flowop.operation));
        }
    });
    found
}

fn threads(plan: &Plan, steps: usize) -> usize {
    plan.clients
        .iter()
        .filter(|member| member.steps == steps)
        .count()
}

#[test]
fn the_stock_workloads_have_filebenchs_parameters() {
    assert_eq!(STOCKS.len(), stock::stock_names().count());
    for Stock {
        name,
        filesets,
        loops,
        ..
    } in STOCKS
    {
        let plan = Workload::load(name, &[]).expect(name).plan;
        let made: Vec<String> = plan
            .filesets
            .iter()
            .map(|files| {
                let entries = files.entries + files.leaf_directories;
                format!("{entries}w{}p{}", files.dirwidth, files.prealloc)
            })
            .collect();
        match filesets.parse::<usize>() {
            Ok(count) => assert_eq!(made, vec!["1w10p100"; count], "{name}"),
            Err(_) => assert_eq!(made.join(" "), *filesets, "{name}"),
        }
        assert_eq!(plan.loops.len(), loops.len(), "{name}");
        for (steps, text) in loops.iter().enumerate() {
            let (count, shares) = shares(text);
            assert_eq!(threads(&plan, steps), count, "{name}: {text}");
            let tasks: Vec<Task> = operations(&plan.loops[steps])
                .iter()
                .map(|row| row.0)
                .collect();
            let wanted: Vec<Task> = shares.iter().map(|share| share.task).collect();
            assert_eq!(tasks, wanted, "{name}: {text}");
        }
    }
}

/// Runs every fourth personality from `first` on and checks its shares and sizes.
fn shares_of(first: usize) {
    for Stock {
        name, small, loops, ..
    } in STOCKS.iter().skip(first).step_by(4)
    {
        // A busy machine needs longer until every thread has had its turn.
        let (report, counts) = [500, 2000, 8000]
            .map(|ms| ms * 1_000_000)
            .into_iter()
            .map(|measured_ns| counts_of(name, small, true, measured_ns))
            .find(|(_, counts)| counts.values().all(|count| *count > 0))
            .expect(name);
        assert_eq!(report.flowops, counts.values().sum::<u64>());
        let set: Vec<String> = small.iter().map(|pair| (*pair).to_owned()).collect();
        let plan = Workload::load(name, &set).expect(name).plan;
        for (steps, text) in loops.iter().enumerate() {
            check(name, &plan, steps, &shares(text).1, &report, &counts);
        }
    }
}

fn check(
    name: &str,
    plan: &Plan,
    steps: usize,
    shares: &[Share],
    report: &Report,
    counts: &HashMap<String, u64>,
) {
    let threads = threads(plan, steps) as u64;
    // Rounds are at most `most`, and at least `least` with each thread's last, unfinished one.
    let (mut most, mut least) = (f64::MAX, 0.0_f64);
    for (share, (_, operation)) in shares.iter().zip(operations(&plan.loops[steps])) {
        let row = &plan.names[operation];
        let count = counts[row];
        let rounds = |count: u64| count as f64 / share.weight as f64;
        least = least.max(rounds(count.saturating_sub(share.openings * threads)) - threads as f64);
        if !share.skipped {
            most = most.min(rounds(count));
        }
        let moved = report.moved.iter().find(|moved| moved.operation == *row);
        let bytes = moved.map_or(0, |moved| moved.bytes);
        if let Some(size) = share.exact {
            assert!(bytes % size == 0, "{name}: {row}: {bytes} bytes");
            let moves = bytes / size;
            let possible = count.saturating_sub(share.openings * threads)..=count;
            assert!(
                possible.contains(&moves),
                "{name}: {row}: {moves} of {count}"
            );
        }
        if let Some((mean, deviation)) = share.mean {
            assert!(count > 0, "{name}: {row}");
            // Sizes of files are as many draws as there are files.
            let files: u64 = plan.filesets.iter().map(|files| files.entries).sum();
            let draws = if share.task == Task::ReadWhole {
                count.min(files)
            } else {
                count
            };
            let found = bytes as f64 / count as f64;
            let openings = (share.openings * threads) as f64 / count as f64 * mean;
            let allowed = 5.0 * deviation / (draws as f64).sqrt() + openings;
            assert!(
                (found - mean).abs() <= allowed,
                "{name}: {row}: {found} is not {mean} +- {allowed}"
            );
        }
    }
    assert!(most > 0.0, "{name}: {counts:?}");
    assert!(
        least <= most,
        "{name}: {least} to {most} rounds: {counts:?}"
    );
}

#[test]
fn shares_and_sizes_of_the_first_quarter() {
    shares_of(0);
}

#[test]
fn shares_and_sizes_of_the_second_quarter() {
    shares_of(1);
}

#[test]
fn shares_and_sizes_of_the_third_quarter() {
    shares_of(2);
}

#[test]
fn shares_and_sizes_of_the_last_quarter() {
    shares_of(3);
}
