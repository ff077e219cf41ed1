//! Table `finding`: why the slowest requests are slow.

use crate::explain::Findings;
use crate::export::table::{Cell, Column, Table, signed};

/// A finding about the slowest requests to an address.
pub(in crate::export) struct FindingRow {
    address: String,
    rank: u32,
    requests: u64,
    finding: crate::explain::Finding,
}

pub(in crate::export) fn findings(all: Vec<Findings>) -> Vec<FindingRow> {
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

pub(in crate::export) const FINDING: Table<FindingRow> = Table {
    name: "finding",
    about: "What a share of the slowest requests' time to an address went into, as luc fleet explain says it.",
    columns: || {
        vec![
            Column::of(
                "address",
                "Address that the requests were sent to.",
                Cell::Text(|row, _| Some(&row.address)),
            ),
            Column::of(
                "rank",
                "Rank of the finding for this address, from 1.",
                Cell::U32(|row| Some(row.rank)),
            ),
            Column::of(
                "text",
                "The finding in words.",
                Cell::Text(|row, _| Some(&row.finding.text)),
            ),
            Column::of(
                "kind",
                "Kind, as in the JSON of luc fleet explain.",
                Cell::Text(|row, _| Some(row.finding.kind)),
            ),
            Column::of(
                "host",
                "Host whose time it is.",
                Cell::Text(|row, _| Some(&row.finding.who.host)),
            ),
            Column::of(
                "process",
                "Name of the process.",
                Cell::Text(|row, _| Some(&row.finding.who.process)),
            ),
            Column::or_null(
                "process_id",
                "Id of the process.",
                Cell::U32(|row| row.finding.who.process_id),
            ),
            Column::of(
                "name",
                "Name of the threads, without numbers.",
                Cell::Text(|row, _| Some(&row.finding.who.name)),
            ),
            Column::or_null(
                "cause",
                "Cause of the wait, as the table trace_wait names it.",
                Cell::Text(|row, _| row.finding.cause),
            ),
            Column::or_null(
                "holder_host",
                "Host of whom it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.host)),
            ),
            Column::or_null(
                "holder_process",
                "Process that it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.process)),
            ),
            Column::or_null(
                "holder_name",
                "Name of the threads that it waits for.",
                Cell::Text(|row, _| Some(&row.finding.holder.as_ref()?.name)),
            ),
            Column::of(
                "slowest",
                "Number of the slowest requests that were looked at.",
                Cell::I64(|row| Some(signed(row.requests))),
            ),
            Column::of(
                "requests",
                "Number of those that have it.",
                Cell::I64(|row| Some(signed(row.finding.requests))),
            ),
            Column::of(
                "time_ns",
                "Time of the slowest requests that it took.",
                Cell::I64(|row| Some(signed(row.finding.time_ns))),
            ),
            Column::of(
                "usual_time_ns",
                "Time of as many usual requests that it took.",
                Cell::I64(|row| Some(signed(row.finding.usual_time_ns))),
            ),
            Column::of(
                "saved_ns",
                "Time by which the slowest requests would be shorter at least without it.",
                Cell::I64(|row| Some(signed(row.finding.saved_ns))),
            ),
            Column::of(
                "share",
                "Share of the slowest requests' time.",
                Cell::F64(|row| Some(row.finding.share)),
            ),
            Column::of(
                "share_low",
                "Lower end of the share's 95 % interval.",
                Cell::F64(|row| Some(row.finding.share_low)),
            ),
            Column::of(
                "share_high",
                "Upper end of it.",
                Cell::F64(|row| Some(row.finding.share_high)),
            ),
        ]
    },
};
