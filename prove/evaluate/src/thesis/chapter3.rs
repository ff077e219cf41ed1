//! Chapter 3: faster processors, slower file systems.

use super::super::report::Table;
use super::data::{Data, Line, commits_waited, delays_per_file};
use super::finding::{Claim, Finding};
use super::tables::BySpeed;

const STOCK: &str = "kernel:off";

/// Metarates on stock ext4.
const METARATES: [Line; 5] = [
    Line::new("metarates", 4, STOCK),
    Line::new("metarates-stock", 8, STOCK),
    Line::new("metarates", 16, STOCK),
    Line::new("metarates", 32, STOCK),
    Line::new("metarates-stock", 64, STOCK),
];

/// IOzone's initial write on stock ext4.
pub(super) const IOZONE: [Line; 3] = [
    Line::new("iozone-128k", 256, STOCK),
    Line::new("iozone-256k", 256, STOCK),
    Line::new("iozone-512k", 256, STOCK),
];

const NOFSYNC: [Line; 2] = [
    Line {
        workload: "metarates-nofsync",
        threads: 4,
        target: "nofsync",
        policy: STOCK,
    },
    Line {
        workload: "iozone-128k",
        threads: 256,
        target: "nofsync",
        policy: "kernel:off",
    },
];

const SLOWER_METARATES: Claim = Claim {
    figure: "3.1 to 3.3",
    says: "Metarates: some faster processor is 11 to 25 % slower than some slower one, on all three machines",
    agrees: "at some speeds the first fsync closes the transaction before the others are in it",
    partly: "at some speeds the first fsync closes the transaction before the others are in it, but few clients are \
             late by that",
    does_not: "with one processor the scheduler's order decides who is in the first transaction, and that is the same \
               at every speed: no core is early",
};

const SLOWER_IOZONE: Claim = Claim {
    figure: "3.4 to 3.6",
    says: "IOzone: some faster processor is 14 to 68 % slower than some slower one, on all three machines",
    agrees: "at some speeds the first child's commit begins while the others still write, and they wait for it",
    partly: "at some speeds the first child's commit begins while the others still write, but with one processor all \
             children have written most of their files by then",
    does_not: "with one processor all children have had their share of it before the first one has its data written \
               and asks for a commit, at every speed",
};

const FASTEST_METARATES: Claim = Claim {
    figure: "3.1 to 3.3",
    says: "Metarates: the fastest speed is up to 13 % slower than the slowest; at best it gains 3 %",
    agrees: "more fsyncs wait for two commits at the fastest speed",
    partly: "a few more fsyncs wait for two commits at the fastest speed",
    does_not: "as many fsyncs wait for two commits at every speed, and the disk's time is nearly all there is",
};

const FASTEST_IOZONE: Claim = Claim {
    figure: "3.4 to 3.6",
    says: "IOzone: on two of three machines the fastest speed is 24 to 68 % slower than the slowest",
    agrees: "more writes wait for a commit at the fastest speed",
    partly: "more writes wait for a commit at the fastest speed, but all others are faster",
    does_not: "the children that no commit blocks are faster with the processor, and outweigh those that one blocks",
};

const ISOLATED: Claim = Claim {
    figure: "3.8, 3.9",
    says: "without commits (NOJC) and without fsync (NOFSYNC) no faster processor is slower",
    agrees: "what is left is the processor's own work and the disk's fixed time",
    partly: "without commits there are still the disk's requests, and whose comes first",
    does_not: "something other than commits slows the faster processor",
};

pub(super) fn findings(data: &Data) -> Vec<Finding> {
    let isolated: Vec<Line> = std::iter::once(METARATES[0].nojc())
        .chain(std::iter::once(IOZONE[0].nojc()))
        .chain(NOFSYNC)
        .collect();
    vec![
        SLOWER_METARATES.slowdown(data, &METARATES, 0.11),
        FASTEST_METARATES.end_to_end(data, &METARATES, 0.065),
        SLOWER_IOZONE.slowdown(data, &IOZONE, 0.14),
        FASTEST_IOZONE.end_to_end(data, &IOZONE, 0.12),
        ISOLATED.no_slowdown(data, &isolated),
    ]
}

pub(super) fn tables(data: &Data) -> Vec<(String, Table)> {
    let mut metarates = BySpeed::new(data);
    for line in METARATES {
        metarates = metarates.normalized(line);
    }
    for line in METARATES {
        metarates = metarates.figure(line, "commits waited for per fsync", commits_waited);
    }
    let mut iozone = BySpeed::new(data);
    for line in IOZONE {
        iozone = iozone.normalized(line);
    }
    for line in IOZONE {
        iozone = iozone.figure(line, "write delays per file", delays_per_file);
    }
    let isolated = BySpeed::new(data)
        .normalized(METARATES[0])
        .normalized(METARATES[0].nojc())
        .normalized(NOFSYNC[0])
        .normalized(IOZONE[0])
        .normalized(IOZONE[0].nojc())
        .normalized(NOFSYNC[1]);
    vec![
        (
            "**Figures 3.1 to 3.3**, Metarates on ext4, normalized to the slowest speed:".to_owned(),
            metarates.end(),
        ),
        (
            "**Figures 3.4 to 3.6**, IOzone's initial write on ext4, normalized to the slowest speed:".to_owned(),
            iozone.end(),
        ),
        (
            "**Figures 3.8 and 3.9**, the same without commits and without fsyncs (UNSAFE):".to_owned(),
            isolated.end(),
        ),
    ]
}
