//! Tests of the stock workloads against the parameters of Filebench's personalities: threads, filesets, and in
//! `--compat` the share of each flowop and the mean size of its calls.

use super::*;
use crate::personality_reference::{FlowopCounts, PersonalityParameters, STOCKS};

#[test]
fn the_stock_workloads_have_filebenchs_parameters() {
    assert_eq!(STOCKS.len(), stock_workloads::stock_names().count());
    for stock in STOCKS {
        let workload = stock.load(&[]).expect(stock.name);
        let differences = stock.differences(&workload);
        assert_eq!(differences, Vec::<String>::new(), "{}", stock.name);
    }
    let [varmail, fileserver, ..] = STOCKS else { panic!("two") };
    let workload = fileserver.load(&[]).expect("loads");
    assert!(!varmail.differences(&workload).is_empty());
}

/// Runs a personality until every flowop was made `least` times: a busy machine needs longer.
fn run(stock: &PersonalityParameters, least: u64) -> (FilebenchReport, FlowopCounts) {
    let (report, operations) = [500, 2000, 8000]
        .map(|ms| ms * 1_000_000)
        .into_iter()
        .map(|measured_ns| counts_of(stock.name, stock.small, true, measured_ns))
        .find(|(_, counts)| counts.values().all(|count| *count >= least))
        .expect(stock.name);
    let moved = report.moved.iter();
    let bytes = moved.map(|row| (row.operation.clone(), row.bytes));
    let counted = FlowopCounts { operations, bytes: bytes.collect() };
    (report, counted)
}

/// Runs every fourth personality from `first` on and checks its shares and sizes.
fn shares_of(first: usize) {
    for stock in STOCKS.iter().skip(first).step_by(4) {
        let (report, counted) = run(stock, 1);
        assert_eq!(report.flowops, counted.operations.values().sum::<u64>());
        let workload = stock.load(stock.small).expect(stock.name);
        let verdict = stock.judge(&workload, true, &counted);
        assert!(verdict.flowops > 0, "{}", stock.name);
        assert_eq!(verdict.wrong, Vec::<String>::new(), "{}", stock.name);
    }
}

#[test]
fn what_is_not_as_in_the_reference_is_found() {
    let stock = STOCKS.iter().find(|stock| stock.name == "varmail").expect("varmail");
    // Enough that a mean of twice the reference's is no chance.
    let (_, mut counted) = run(stock, 100);
    let workload = stock.load(stock.small).expect("loads");
    let wrong = |counted: &FlowopCounts| stock.judge(&workload, true, counted).wrong;
    assert_eq!(wrong(&counted), Vec::<String>::new());
    // One that moves nothing: the mean size is by the count.
    let closed = counted.operations.get_mut("closefile2").expect("a close");
    *closed = *closed * 2 + 100;
    let miscounted = wrong(&counted);
    assert_eq!(miscounted.len(), 1, "{miscounted:?}");
    for bytes in counted.bytes.values_mut() {
        *bytes *= 2;
    }
    let missized = wrong(&counted);
    assert!(missized.len() > 2, "{missized:?}");
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
