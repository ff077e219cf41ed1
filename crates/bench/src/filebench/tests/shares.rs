//! The stock workloads against the parameters of Filebench's personalities: threads, filesets, and in
//! `--compat` the share of each flowop and the mean size of what it moves.

use super::*;
use crate::filebench::reference::{Counted, STOCKS};

#[test]
fn the_stock_workloads_have_filebenchs_parameters() {
    assert_eq!(STOCKS.len(), stock::stock_names().count());
    for stock in STOCKS {
        let workload = stock.load(&[]).expect(stock.name);
        let differences = stock.differences(&workload);
        assert_eq!(differences, Vec::<String>::new(), "{}", stock.name);
    }
    let [varmail, fileserver, ..] = STOCKS else {
        panic!("two")
    };
    let workload = fileserver.load(&[]).expect("loads");
    assert!(!varmail.differences(&workload).is_empty());
}

/// Runs every fourth personality from `first` on and checks its shares and sizes.
fn shares_of(first: usize) {
    for stock in STOCKS.iter().skip(first).step_by(4) {
        // A busy machine needs longer until every thread has had its turn.
        let (report, counts) = [500, 2000, 8000]
            .map(|ms| ms * 1_000_000)
            .into_iter()
            .map(|measured_ns| counts_of(stock.name, stock.small, true, measured_ns))
            .find(|(_, counts)| counts.values().all(|count| *count > 0))
            .expect(stock.name);
        assert_eq!(report.flowops, counts.values().sum::<u64>());
        let moved = report.moved.iter();
        let counted = Counted {
            operations: counts,
            bytes: moved
                .map(|row| (row.operation.clone(), row.bytes))
                .collect(),
        };
        let workload = stock.load(stock.small).expect(stock.name);
        let verdict = stock.judge(&workload, true, &counted);
        assert!(verdict.flowops > 0, "{}", stock.name);
        assert_eq!(verdict.wrong, Vec::<String>::new(), "{}", stock.name);
    }
}

#[test]
fn what_is_not_as_in_the_reference_is_found() {
    let stock = STOCKS.iter().find(|stock| stock.name == "varmail");
    let stock = stock.expect("varmail");
    let (report, counts) = counts_of("varmail", stock.small, true, 500_000_000);
    let moved = report.moved.iter();
    let mut counted = Counted {
        operations: counts,
        bytes: moved
            .map(|row| (row.operation.clone(), row.bytes))
            .collect(),
    };
    let workload = stock.load(stock.small).expect("loads");
    for count in counted.operations.values_mut().take(1) {
        *count = *count * 2 + 100;
    }
    assert_eq!(stock.judge(&workload, true, &counted).wrong.len(), 1);
    for bytes in counted.bytes.values_mut() {
        *bytes *= 2;
    }
    assert!(stock.judge(&workload, true, &counted).wrong.len() > 2);
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
