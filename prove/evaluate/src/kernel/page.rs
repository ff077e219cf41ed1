//! The page: targets, tables, and sentences computed from the figures.

mod papers;
mod series;
mod targets;

use luc_stats::median;

use super::super::report::{Page, Table, number};
use super::cells::{
    FLUSHING, Load, REPEATED, REPEATED_LOADS, RIVALS, SEEDS, SPEEDS, SWEEP, Sheet, Speed, WRITING,
};
use super::results::{Cell, Results};
use series::{Series, rates_of_seeds, speeds};

/// The page of what is there.
pub(super) fn page(results: &Results) -> Page {
    let mut tables = vec![(
        "Gains over stock at the speeds where they are least and most, and the greatest fall of \
         throughput from one speed to the next faster one:"
            .to_owned(),
        gains(results),
    )];
    tables.push((papers::ABOUT.to_owned(), papers::table(results)));
    for load in Load::ALL {
        let title = |what: &str| format!("**{}**, {what}:", load.name());
        tables.push((
            title(&format!(
                "{} by speed ({})",
                load.unit(),
                phenomenon(results, load)
            )),
            rates(results, load),
        ));
        tables.push((
            title(
                "what the journal did at the slowest and the fastest speed (commits; fsyncs per \
                 commit; commits waited per fsync; share of metadata changes delayed and their mean \
                 delay; mean fsync; copies)",
            ),
            counters(results, load),
        ));
    }
    tables.push((
        "Rivals, the same workloads and disks (rate; in parentheses over plain ext4 without the \
         module; what of them survives power cuts is in [head-to-head](head-to-head.md) and [kernel-powercut](kernel-powercut.md)):"
            .to_owned(),
        rivals(results),
    ));
    tables.push((
        format!(
            "Repeated with other seeds, and begun as many ms later (rate, the median of the sweep's seed, 1, and {}; in parentheses their range):",
            SEEDS.map(|seed| seed.to_string()).join(", ")
        ),
        repeated(results),
    ));
    tables.retain(|(_, table)| !table.is_empty());
    Page {
        title: "The kernel module, by processor speed".to_owned(),
        about: format!("{}{}", about(), scatter(results)),
        tables,
        targets: targets::targets(results),
    }
}

fn about() -> String {
    let disk = |disk: super::cells::Disk| {
        format!(
            "\"{}\" takes {} ms for a write, {} ms for a flush",
            disk.name,
            disk.write_us as f64 / 1000.0,
            disk.flush_us as f64 / 1000.0
        )
    };
    format!(
        "Each cell is a fresh `lagdisk`, ext4 (4 KiB blocks, journal of 64 MiB) and module in a guest with \
         one processor in **virtual time**: an instruction takes a fixed time and idle time is skipped, \
         so figures do not depend on the machine that makes them, and a repeat gives the same bytes. A \
         speed is given in millions of instructions per second: factors of 2 by the time of an \
         instruction, finer ones by stretching the disk's latencies, the module's and the benchmark's \
         times and scaling the results back. The kernel's own timer (4 ms) and the scheduler's slices are not \
         stretched: a jump between 841 and 1000 MIPS, where the two ways meet, may be theirs. Two \
         disks, on each of which one of the papers' delays can be seen: {}; {} (about a \
         revolution at 7200 a minute). Both serve requests side by side. metarates and varmail run on \
         the first, initial-write (128 KiB files, 32 KiB records, mean of 10 rounds of 64 or 4 of 256 children) and oltp on the second. With one \
         processor and a fair scheduler all children of an initial write get their first share of it before \
         the first one gets a second: a child that comes back from writing its data asks for a commit only \
         after most others have written. So the more children there are, the smaller the share that meets one; the \
         papers' machines, with several processors, had more.\n\n\
         \"stock\" has the module loaded with everything off: it only counts. \"delay\" is delayJC with the \
         thesis' 1 ms (16 ms for initial-write and oltp), \"pid\" the paper's controller with its gains \
         and set point, \"auto\" the module's own; \"copy heuristic\", \"copy on\" and \"copy auto\" are \
         copy-out alone; \"both auto\" is auto with copy auto. Counts are of a whole run, making the \
         files and warm-up included. The rate of metarates is the papers' file creation rate, N / mean(T_open \
         + T_fsync + T_close), \
         that of varmail likewise N / mean latency of all operations: clients that share commits end their \
         work in bursts, and a count depends on how many bursts just fit into the interval. There are no \
         intervals: a repeat gives the same.",
        disk(FLUSHING),
        disk(WRITING)
    )
}

/// How far apart runs are in which the module did the same: nothing.
fn scatter(results: &Results) -> String {
    let mut ratios = Vec::new();
    for load in Load::ALL {
        for speed in speeds() {
            let cells = results.cells(Sheet::Sweep, load, speed).unwrap_or_default();
            let Some(stock) = cells.iter().find(|cell| cell.setting == "stock") else {
                continue;
            };
            let idle = |cell: &&Cell| cell.holds == Some(0) && cell.copies == Some(0);
            let others = cells.iter().filter(|cell| cell.setting != "stock");
            ratios.extend(others.filter(idle).map(|cell| cell.rate / stock.rate));
        }
    }
    let least = ratios.iter().copied().reduce(f64::min);
    let most = ratios.iter().copied().reduce(f64::max);
    match (least, most) {
        (Some(least), Some(most)) => format!(
            " But a microsecond more or less sends a run another way: in the {} cells whose setting neither \
             held a commit nor made a copy the rate is {least:.3} to {most:.3} of stock's, and a ratio in \
             that range says nothing. Therefore what the module must not lose is judged by medians over several \
             seeds.",
            ratios.len()
        ),
        _ => String::new(),
    }
}

/// What stock does when the processor gets faster, in words.
fn phenomenon(results: &Results, load: Load) -> String {
    let stock = Series::of_seeds(results, load, "stock");
    let fall = match stock.greatest_fall() {
        Some(fall) if fall.share > 0.005 => format!(
            "stock falls by {:.1} % from {} to {} MIPS",
            fall.share * 100.0,
            fall.from.mips(),
            fall.to.mips()
        ),
        Some(_) => "stock never falls when the processor gets faster".to_owned(),
        None => "too few speeds to tell how stock changes".to_owned(),
    };
    let shares: Vec<f64> = speeds()
        .filter_map(|speed| results.cell(Sheet::Sweep, load, speed, "stock"))
        .filter_map(|cell| delays_per_child(load, cell))
        .collect();
    let least = shares.iter().copied().reduce(f64::min);
    let most = shares.iter().copied().reduce(f64::max);
    match (load, least, most) {
        (Load::InitialWrite(_), Some(least), Some(most)) => {
            format!("{fall}; {least:.2} to {most:.2} write delays per child")
        }
        _ => fall,
    }
}

/// Write delays of stock per child of an initial write.
fn delays_per_child(load: Load, cell: &Cell) -> Option<f64> {
    match load {
        Load::InitialWrite(threads) => {
            let children = (threads * load.rounds()) as f64;
            Some(cell.writes_delayed? as f64 / children)
        }
        _ => None,
    }
}

fn heads(first: &str) -> Vec<&str> {
    let settings = SWEEP.iter().map(|setting| setting.name);
    std::iter::once(first).chain(settings).collect()
}

fn rates(results: &Results, load: Load) -> Table {
    let mut table = Table::new(&heads("MIPS"));
    for speed in speeds() {
        let Some(cells) = results.cells(Sheet::Sweep, load, speed) else {
            continue;
        };
        let mut row = vec![speed.mips().to_string()];
        row.extend(SWEEP.iter().map(|setting| {
            let cell = cells.iter().find(|cell| cell.setting == setting.name);
            cell.map_or("-".to_owned(), |cell| number(cell.rate))
        }));
        table.row(row);
    }
    table
}

fn gains(results: &Results) -> Table {
    let mut table = Table::new(&[
        "workload",
        "delay",
        "pid",
        "auto",
        "copy heuristic",
        "copy on",
        "copy auto",
        "both auto",
        "greatest fall, stock",
        "both auto",
    ]);
    for load in Load::ALL {
        let stock = Series::of(results, load, "stock");
        if stock.is_empty() {
            continue;
        }
        let mut row = vec![load.name()];
        row.extend(SWEEP[1..].iter().map(|setting| {
            let series = Series::of(results, load, setting.name);
            match series.over(&stock).range() {
                Some((least, most)) => format!("{:.2} to {:.2}", least.1, most.1),
                None => "-".to_owned(),
            }
        }));
        for setting in ["stock", "both auto"] {
            let fall = Series::of_seeds(results, load, setting).greatest_fall();
            row.push(fall.map_or("-".to_owned(), |fall| {
                format!("{:.1} %", fall.share.max(0.0) * 100.0)
            }));
        }
        table.row(row);
    }
    table
}

fn counters(results: &Results, load: Load) -> Table {
    let there: Vec<Speed> = speeds()
        .filter(|speed| results.cells(Sheet::Sweep, load, *speed).is_some())
        .collect();
    let mut ends = there
        .first()
        .into_iter()
        .chain(there.last())
        .collect::<Vec<_>>();
    ends.dedup();
    let mut table = Table::new(&[
        "MIPS, setting",
        "commits",
        "fsyncs/commit",
        "waited",
        "delayed",
        "mean delay, ms",
        "mean fsync, ms",
        "copies",
    ]);
    for speed in ends {
        for setting in &SWEEP {
            if let Some(cell) = results.cell(Sheet::Sweep, load, *speed, setting.name) {
                table.row(counter_row(*speed, cell));
            }
        }
    }
    table
}

fn counter_row(speed: Speed, cell: &Cell) -> Vec<String> {
    let count = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    vec![
        format!("{}, {}", speed.mips(), cell.setting),
        count(cell.commits),
        figure(cell.fsyncs_per_commit()),
        figure(cell.commits_waited()),
        cell.delayed_share()
            .map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0)),
        figure(cell.mean_delay_ms()),
        figure(cell.fsync_mean_us.map(|us| us / 1000.0)),
        count(cell.copies),
    ]
}

fn rivals(results: &Results) -> Table {
    let mut heads = vec!["workload, MIPS"];
    heads.extend(RIVALS.iter().map(|rival| rival.name));
    let mut table = Table::new(&heads);
    for load in Load::ALL {
        for speed in speeds() {
            let Some(cells) = results.cells(Sheet::Rivals, load, speed) else {
                continue;
            };
            let plain = cells.first().map_or(f64::NAN, |cell| cell.rate);
            let mut row = vec![format!("{}, {}", load.name(), speed.mips())];
            row.extend(
                cells
                    .iter()
                    .map(|cell| format!("{} ({:.2})", number(cell.rate), cell.rate / plain)),
            );
            table.row(row);
        }
    }
    table
}

fn repeated(results: &Results) -> Table {
    let mut heads = vec!["workload, MIPS"];
    heads.extend(REPEATED.iter().map(|setting| setting.name));
    let mut table = Table::new(&heads);
    for load in REPEATED_LOADS {
        for speed in speeds() {
            let is_there = |seed: &u64| results.cells(Sheet::Seed(*seed), load, speed).is_some();
            if !SEEDS.iter().any(is_there) {
                continue;
            }
            let mut row = vec![format!("{}, {}", load.name(), speed.mips())];
            row.extend(REPEATED.iter().map(|setting| {
                let rates = rates_of_seeds(results, load, speed, setting.name);
                let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
                let most = rates.iter().copied().fold(0.0, f64::max);
                median(&rates).map_or("-".to_owned(), |rate| {
                    format!("{} ({} to {})", number(rate), number(least), number(most))
                })
            }));
            table.row(row);
        }
    }
    table
}

/// The speeds of [`SPEEDS`] that the sweep has for a workload.
fn measured(results: &Results, load: Load) -> usize {
    SPEEDS
        .iter()
        .filter(|speed| results.cells(Sheet::Sweep, load, **speed).is_some())
        .count()
}
