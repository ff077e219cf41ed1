//! Table `finding`: why the slowest requests are slow.

use crate::explain::SlowRequestFindings;
use crate::export::derived_table::{DerivedCell, DerivedColumn, DerivedTable, signed};

/// A finding about the slowest requests to an address.
pub(in crate::export) struct FindingRow {
    address: String,
    rank: u32,
    requests: u64,
    finding: crate::explain::SlowRequestFinding,
}

pub(in crate::export) fn findings(all: Vec<SlowRequestFindings>) -> Vec<FindingRow> {
    let rows = all.into_iter().flat_map(|findings| {
        let (address, requests) = (findings.address, findings.slowest.requests);
        findings.findings.into_iter().zip(1..).map(move |(finding, rank)| FindingRow {
            address: address.clone(),
            rank,
            requests,
            finding,
        })
    });
    rows.collect()
}

pub(in crate::export) const FINDING: DerivedTable<FindingRow> = DerivedTable {
    name: "finding",
    about: "What a share of the slowest requests' time to an address went into, as luc fleet explain says it.",
    columns: || {
        vec![
            DerivedColumn::of(
                "address",
                "Address that the requests were sent to.",
                DerivedCell::Text(|row, _| Some(&row.address)),
            ),
            DerivedColumn::of(
                "rank",
                "Rank of the finding for this address, from 1.",
                DerivedCell::U32(|row| Some(row.rank)),
            ),
            DerivedColumn::of(
                "text",
                "The finding in words.",
                DerivedCell::Text(|row, _| Some(&row.finding.text)),
            ),
            DerivedColumn::of(
                "kind",
                "Kind, as in the JSON of luc fleet explain.",
                DerivedCell::Text(|row, _| Some(row.finding.kind)),
            ),
            DerivedColumn::of(
                "service",
                "Service of the threads; the address of a server that no trace has.",
                DerivedCell::Text(|row, _| Some(&row.finding.service)),
            ),
            DerivedColumn::of(
                "host",
                "Host of the process with the most of it; empty: unknown.",
                DerivedCell::Text(|row, _| Some(&row.finding.who.host)),
            ),
            DerivedColumn::of(
                "process",
                "Name of the process.",
                DerivedCell::Text(|row, _| Some(&row.finding.who.process)),
            ),
            DerivedColumn::or_null(
                "process_id",
                "Id of the process.",
                DerivedCell::U32(|row| row.finding.who.process_id),
            ),
            DerivedColumn::of(
                "name",
                "Name of the threads, without numbers.",
                DerivedCell::Text(|row, _| Some(&row.finding.who.name)),
            ),
            DerivedColumn::or_null(
                "cause",
                "Cause of the wait, as the table trace_wait names it.",
                DerivedCell::Text(|row, _| row.finding.cause),
            ),
            DerivedColumn::or_null(
                "holder_host",
                "Host of the sender, or of whom a stopped thread was woken by.",
                DerivedCell::Text(|row, _| Some(&row.finding.holder.as_ref()?.host)),
            ),
            DerivedColumn::or_null(
                "holder_process",
                "Process of the same.",
                DerivedCell::Text(|row, _| Some(&row.finding.holder.as_ref()?.process)),
            ),
            DerivedColumn::or_null(
                "holder_name",
                "Name of these threads.",
                DerivedCell::Text(|row, _| Some(&row.finding.holder.as_ref()?.name)),
            ),
            DerivedColumn::of(
                "slowest",
                "Number of the slowest requests that were looked at.",
                DerivedCell::I64(|row| Some(signed(row.requests))),
            ),
            DerivedColumn::of(
                "requests",
                "Number of those that have it.",
                DerivedCell::I64(|row| Some(signed(row.finding.requests))),
            ),
            DerivedColumn::of(
                "time_ns",
                "Time of the slowest requests that it took.",
                DerivedCell::I64(|row| Some(signed(row.finding.time_ns))),
            ),
            DerivedColumn::of(
                "usual_time_ns",
                "Time of as many usual requests that it took.",
                DerivedCell::I64(|row| Some(signed(row.finding.usual_time_ns))),
            ),
            DerivedColumn::of(
                "largest_in",
                "Number of those of whose time it is the largest part.",
                DerivedCell::I64(|row| Some(signed(row.finding.largest_in))),
            ),
            DerivedColumn::of(
                "share",
                "Share of the slowest requests' time.",
                DerivedCell::F64(|row| Some(row.finding.share)),
            ),
            DerivedColumn::of(
                "share_low",
                "Lower end of the share's 95 % interval.",
                DerivedCell::F64(|row| Some(row.finding.share_low)),
            ),
            DerivedColumn::of(
                "share_high",
                "Upper end of it.",
                DerivedCell::F64(|row| Some(row.finding.share_high)),
            ),
        ]
    },
};
