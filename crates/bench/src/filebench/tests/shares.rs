//! The stock workloads against the parameters of Filebench's personalities: threads, filesets, and in
//! `--compat` the share of each flowop and the mean size of what it moves.
//!
//! A loop is written as its flowops in their order: O C N D S F open, close, create, delete, stat, fsync;
//! RW WW A AR r w whole reads and writes, appends, reads, writes; aw ai asynchronous writes and waits; M X L
//! directories made, removed, listed. `x10`: as often in a round. `=2048`: each moves so much. `~16384/13377`:
//! so much on average, with this standard deviation. `+1`: an opening by each thread counts as well. `?`: may
//! be skipped, as the deletion of a file that is open.

use super::*;
use crate::filebench::plan::{Plan, Step, Task};

/// A personality.
struct Stock {
    name: &'static str,
    /// Variables that make it small enough for a test.
    small: &'static [&'static str],
    /// Entries or leaf directories, directory width and percent made in advance, of each fileset.
    filesets: &'static str,
    /// Threads of each loop and its flowops.
    loops: &'static [&'static str],
}

const fn stock(
    name: &'static str,
    small: &'static [&'static str],
    filesets: &'static str,
    loops: &'static [&'static str],
) -> Stock {
    Stock {
        name,
        small,
        filesets,
        loops,
    }
}

const SMALL: &[&str] = &["filesize=8m"];
/// Sequential reads of 1 MiB of 8 MiB: each ninth finds the end.
const READ: &str = "1: r~932068/329543+1";
const WRITE: &str = "1: w=1048576+1";
/// Deviation of a gamma variable of shape 1.5.
const APPEND: &str = "AR~8191.5/4730";

const STOCKS: &[Stock] = &[
    stock(
        "varmail",
        &["nthreads=2", "nfiles=5000"],
        "1000w1000000p80",
        &["16: D? N [A] F C O RW [A] F C O RW C"],
    ),
    stock(
        "fileserver",
        &["nthreads=2", "nfiles=5000", "filesize=8k"],
        "10000w20p80",
        &["50: N WW=8192 C O [A] C O RW C D? S"],
    ),
    stock(
        "webserver",
        &["nthreads=2"],
        "1000w20p100 1w20p100",
        &[
            "100: O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C \
            O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C [A]+1",
        ],
    ),
    stock(
        "webproxy",
        &["nthreads=2", "nfiles=5000"],
        "10000w1000000p80",
        &["100: D? N [A] C O RW C O RW C O RW C O RW C O RW C"],
    ),
    stock(
        "oltp",
        &["nshadows=4", "ndbwriters=2", "usermode=100"],
        "10w1024p100 1w1024p100",
        &[
            "1: aw=262144+1 ai",
            "10: aw=2048x100+10 ai",
            "200: r=2048+10",
        ],
    ),
    stock(
        "compflow_demo",
        &["filesize=8k", "nthreads=1"],
        "700w20p80 700w20p80 700w20p80",
        &[
            "10: N [A] C Ox5 Ox5 RWx5 WW=8192x5 Cx5 Cx5 D? S",
            "10: N [A] C Ox4 Ox4 RWx4 WW=8192x4 Cx4 Cx4 D? S",
            "10: N [A] C Ox3 Ox3 RWx3 WW=8192x3 Cx3 Cx3 D? S",
        ],
    ),
    stock(
        "copyfiles",
        &[],
        "1000w20p100 1000w20p0",
        &["1: O RW=16384 N WW=16384 C C"],
    ),
    stock(
        "ratelimcopyfiles",
        &["eventrate=1000"],
        "1000w20p100 1000w20p0",
        &["1: O RW=16384 N WW=16384 C C"],
    ),
    stock(
        "createdelete-swing",
        &["filesize=4k"],
        "1000w1000p0",
        &["1: N WW=4096 C", "1: D"],
    ),
    stock(
        "createfiles",
        &["nfiles=3000"],
        "50000w100p0",
        &["16: N WW=16384 C"],
    ),
    stock(
        "cvar_example",
        &["filesize=1m"],
        "1w10p100",
        &["1: O r~6143.5/1182 C"],
    ),
    stock(
        "filemicro_create",
        &["count=64"],
        "1w10p100",
        &["1: A=1048576+1"],
    ),
    stock(
        "filemicro_createfiles",
        &[],
        "20000w100000p50",
        &["1: N WW=1024 C"],
    ),
    stock(
        "filemicro_createrand",
        &["bytes=100m"],
        "1w10p100",
        &["1: AR~524287.5/302697x10+1 F"],
    ),
    stock("filemicro_delete", &[], "5000w100p100", &["16: D"]),
    stock("filemicro_rread", SMALL, "1w10p100", &["1: r=2048+1"]),
    stock("filemicro_rwrite", SMALL, "1w10p100", &["1: w=2048+1"]),
    stock("filemicro_rwritedsync", SMALL, "1w10p100", &["1: w=2048+1"]),
    stock(
        "filemicro_rwritefsync",
        &["filesize=8m", "writes=1k"],
        "1w10p100",
        &["1: w=8192x1024+1 F"],
    ),
    stock("filemicro_seqread", SMALL, "1w10p100", &[READ]),
    stock(
        "filemicro_seqwrite",
        &["writes=64"],
        "1w10p100",
        &["1: A=1048576x64+1"],
    ),
    stock(
        "filemicro_seqwriterand",
        &["writes=4k"],
        "1w10p100",
        &["1: O AR~4095.5/2365x4096 C"],
    ),
    stock(
        "filemicro_seqwriterandvargam",
        &["writes=4k"],
        "1w1024p100",
        &["1: O A~5631.5/3762x4096 C"],
    ),
    stock(
        "filemicro_seqwriterandvartab",
        &["writes=4k"],
        "1w1024p100",
        &["1: O A~5631.5/9258x4096 C"],
    ),
    stock(
        "filemicro_statfile",
        &["filesize=1k"],
        "10000w20p100",
        &["20: S"],
    ),
    stock(
        "filemicro_writefsync",
        &["syncs=8"],
        "1w10p100",
        &["1: A=8192x1024+1 F"],
    ),
    stock(
        "fivestreamread",
        SMALL,
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[READ; 5],
    ),
    stock(
        "fivestreamreaddirect",
        &["filesize=8m", "directio=false"],
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[READ; 5],
    ),
    stock(
        "fivestreamwrite",
        SMALL,
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[WRITE; 5],
    ),
    stock(
        "fivestreamwritedirect",
        &["filesize=8m", "directio=false"],
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[WRITE; 5],
    ),
    stock("listdirs", &["nfiles=1000"], "50000w5p100", &["16: L"]),
    stock("makedirs", &[], "10000w100p0", &["16: M"]),
    stock("removedirs", &[], "10000w100p100", &["16: X"]),
    stock(
        "mongo",
        &[],
        "1000w20p100 1000w20p100",
        &["1: O [A] C O RW C D"],
    ),
    stock(
        "netsfs",
        &["eventrate=0", "nfiles=5000"],
        "100000w20p60",
        &[
            "1: O RW O RW C O RW C C O RW N WW C C D? O RW N WW C C D? O RW N WW C C D? O RW N WW C C D? \
            O RW N WW C C D? O RW N WW C C D? O AR~18022/23700 C O AR~18022/23700 C O AR~18022/23700 C S",
        ],
    ),
    stock(
        "networkfs",
        &["eventrate=1000", "nfiles=5"],
        "100000w20p60",
        &["1: O RW O RW C O RW C C Ox6 RWx6 Nx6 WWx6 Cx6 Cx6 Dx6? Ox3 AR~18022/23700x3 Cx3 S"],
    ),
    stock("openfiles", &["nfiles=1000"], "50000w100p100", &["16: O C"]),
    stock(
        "randomfileaccess",
        &["nfiles=1000"],
        "10000w20p100",
        &["5: O O O AR~8191.5/8852 C RW RW C C"],
    ),
    stock("randomread", SMALL, "1w10p100", &["1: r=8192+1"]),
    stock("randomwrite", SMALL, "1w10p100", &["1: w=8192+1"]),
    stock(
        "randomrw",
        SMALL,
        "1w10p100",
        &["1: r=8192+1", "1: w=8192+1"],
    ),
    stock("singlestreamread", SMALL, "1w10p100", &[READ]),
    stock(
        "singlestreamreaddirect",
        &["filesize=8m", "directio=false"],
        "1w10p100",
        &[READ],
    ),
    stock("singlestreamwrite", &[], "1w10p100", &[WRITE]),
    stock(
        "singlestreamwritedirect",
        &["directio=false"],
        "1w10p100",
        &[WRITE],
    ),
    stock(
        "tpcso",
        &[
            "unit=1k",
            "nshadows=2",
            "ndbwriters=1",
            "directio=false",
            "usermode=10",
        ],
        "30",
        &["10: [aw=2048x10]29 ai", "1: w=262144+1", "200: [r=2048]30"],
    ),
    stock(
        "videoserver",
        &["filesize=4m", "nthreads=2", "eventrate=0"],
        "32w4p100 194w20p50",
        &["1: D N WW=4194304 C", "48: r~246724/61681+1"],
    ),
];

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
    assert_eq!(STOCKS.len(), stock::STOCK.len());
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
