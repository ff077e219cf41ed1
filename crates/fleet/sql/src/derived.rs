//! The tables that are not in any trace: what was found in the traces of all hosts.
//!
//! They are in the schema `fleet`, as traces have a table `request` as well, that of requests to block devices.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use luc_fleet::{Edge, EdgeSide, Joined, PathStep, Relations, RequestNode, relations};

use crate::error::SqlError;
use crate::files::{Files, FilesTable, HostFile};
use crate::schema::{TableColumn, name_of};

/// The schema of these tables.
pub(crate) const SCHEMA: &str = "fleet";
/// Rows of a row group: several executors can share the work.
const GROUP_ROWS: usize = 1 << 16;

/// A column: its name, type, whether values may be missing, and what it means.
type Definition = (&'static str, DataType, bool, &'static str);

const TIME: DataType = DataType::Int64;
const NUMBER: DataType = DataType::UInt32;
const COUNT: DataType = DataType::UInt64;
const TEXT: DataType = DataType::Utf8;

const EDGE: &[Definition] = &[
    ("kind", TEXT, false, "What connects the two: message."),
    ("from_host", TEXT, false, "Who sent: the host."),
    ("from_process", NUMBER, false, "Who sent: the process' id."),
    ("from_thread", NUMBER, false, "Who sent: the thread's id."),
    (
        "from_connection",
        COUNT,
        false,
        "The connection's number in the sender's trace.",
    ),
    (
        "from_ns",
        TIME,
        false,
        "When the call that sent the bytes began, on the sender's clock.",
    ),
    (
        "from_global_ns",
        TIME,
        true,
        "The same on the first host's clock.",
    ),
    ("to_host", TEXT, false, "Who received: the host."),
    (
        "to_process",
        NUMBER,
        false,
        "Who received: the process' id.",
    ),
    ("to_thread", NUMBER, false, "Who received: the thread's id."),
    (
        "to_connection",
        COUNT,
        false,
        "The connection's number in the receiver's trace.",
    ),
    (
        "to_ns",
        TIME,
        false,
        "When the receiver had copied the bytes, on its clock.",
    ),
    (
        "to_global_ns",
        TIME,
        true,
        "The same on the first host's clock.",
    ),
    (
        "first_byte",
        COUNT,
        false,
        "The first of the bytes, as the sender's table message counts them.",
    ),
    (
        "bytes",
        COUNT,
        false,
        "How many bytes the send and the reception have in common.",
    ),
    ("latency_ns", TIME, true, "From the send to the reception."),
    (
        "low_ns",
        TIME,
        true,
        "The latency is guaranteed to be no less.",
    ),
    (
        "high_ns",
        TIME,
        true,
        "The latency is guaranteed to be no more.",
    ),
];

const REQUEST: &[Definition] = &[
    ("id", NUMBER, false, "The request's number."),
    (
        "parent",
        NUMBER,
        true,
        "Of one that was received, the same request as its client has sent it. Of one that was sent, the received one that it was made for.",
    ),
    ("root", NUMBER, false, "The one at the top of its tree."),
    (
        "pre",
        NUMBER,
        false,
        "Its number in pre-order. All below it, and itself, have those from pre to last.",
    ),
    (
        "last",
        NUMBER,
        false,
        "The greatest number in pre-order of all below it.",
    ),
    ("post", NUMBER, false, "Its number in post-order."),
    (
        "number",
        NUMBER,
        true,
        "Its number as luc fleet explain --request takes it: 1 is the slowest. Only of answered ones without a parent.",
    ),
    (
        "is_sent",
        DataType::Boolean,
        false,
        "Whether this end has sent it; else it has received it.",
    ),
    ("host", TEXT, false, "The host of this end."),
    ("process", NUMBER, false, "The process' id."),
    (
        "thread",
        NUMBER,
        false,
        "The thread that sent or read its first bytes.",
    ),
    (
        "connection",
        COUNT,
        false,
        "The connection's number in the host's trace.",
    ),
    ("local", TEXT, false, "This end's address."),
    ("remote", TEXT, false, "The other end's address."),
    ("bytes", COUNT, false, "How many bytes it has."),
    (
        "start_ns",
        TIME,
        false,
        "When its first bytes were sent or read, on the host's clock.",
    ),
    (
        "end_ns",
        TIME,
        true,
        "When the last bytes of the answer were read or sent; missing without an answer.",
    ),
    ("time_ns", TIME, true, "From start to end."),
    (
        "start_global_ns",
        TIME,
        true,
        "The start on the first host's clock.",
    ),
    (
        "evidence",
        TEXT,
        true,
        "What says that it was made for its parent, of one that was sent.",
    ),
];

const PATH: &[Definition] = &[
    (
        "request",
        NUMBER,
        false,
        "The request's id: an answered one without a parent.",
    ),
    (
        "step",
        NUMBER,
        false,
        "The part's place on the critical path, from 0.",
    ),
    (
        "part",
        TEXT,
        false,
        "What it was: running, runnable, blocked, network or contradictory.",
    ),
    ("host", TEXT, false, "Whose time it was: the host."),
    ("process", NUMBER, true, "The process' id."),
    ("thread", NUMBER, false, "The thread's id."),
    ("name", TEXT, false, "The thread's name."),
    (
        "cause",
        TEXT,
        true,
        "Of a wait: its cause, as the table wait names it.",
    ),
    ("from_host", TEXT, true, "Of a message: the sender's host."),
    (
        "from_thread",
        NUMBER,
        true,
        "Of a message: the sender's thread.",
    ),
    (
        "start_ns",
        TIME,
        false,
        "When it began, on the clock of the host that has the request.",
    ),
    (
        "end_ns",
        TIME,
        false,
        "When it ended. The parts of a request sum to its time exactly.",
    ),
    ("time_ns", TIME, false, "From start to end."),
    (
        "error_ns",
        TIME,
        true,
        "By how much start and end may be off, as clocks are known to that only; missing: not bounded.",
    ),
];

/// A table that is made of all traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    Edge,
    Request,
    Path,
}

impl Derived {
    pub(crate) const ALL: [Self; 3] = [Self::Edge, Self::Request, Self::Path];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Request => "request",
            Self::Path => "path",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Edge => "A send and a reception that have bytes in common.",
            Self::Request => "A request, as one of its ends has seen it.",
            Self::Path => "A part of the critical path of a request.",
        }
    }

    fn definitions(self) -> &'static [Definition] {
        match self {
            Self::Edge => EDGE,
            Self::Request => REQUEST,
            Self::Path => PATH,
        }
    }

    pub(crate) fn columns(self) -> Vec<TableColumn> {
        let column = |(name, data_type, _, meaning): &Definition| TableColumn {
            name: (*name).to_owned(),
            kind: name_of(data_type).to_owned(),
            meaning: (*meaning).to_owned(),
            data_type: data_type.clone(),
        };
        self.definitions().iter().map(column).collect()
    }

    pub(crate) fn schema(self) -> SchemaRef {
        let field = |(name, data_type, may_be_missing, _): &Definition| {
            Field::new(*name, data_type.clone(), *may_be_missing)
        };
        let fields: Vec<Field> = self.definitions().iter().map(field).collect();
        Arc::new(Schema::new(fields))
    }

    fn columns_of(self, found: &Relations) -> Vec<ArrayRef> {
        match self {
            Self::Edge => edges(found),
            Self::Request => requests(found),
            Self::Path => steps(found),
        }
    }

    /// The table without rows, for queries that do not ask for it.
    pub(crate) fn empty(self) -> FilesTable {
        FilesTable::new(self.schema(), Files::default())
    }
}

/// Writes tables into a directory, from which executors read them.
///
/// # Errors
/// [`SqlError::Fleet`], [`SqlError::Directory`], [`SqlError::Engine`].
pub(crate) fn write(
    joined: &Joined,
    wanted: &[Derived],
    directory: &Path,
) -> Result<Vec<(Derived, FilesTable)>, SqlError> {
    let found = relations(joined)?;
    let write = |&table: &Derived| {
        let path = directory.join(format!("{}.parquet", table.name()));
        let file = one(table, &found, &path)?;
        let files = Files {
            files: vec![file],
            has_hosts: false,
        };
        Ok((table, FilesTable::new(table.schema(), files)))
    };
    wanted.iter().map(write).collect()
}

fn one(table: Derived, found: &Relations, path: &Path) -> Result<HostFile, SqlError> {
    let failed = |reason| SqlError::Directory {
        path: path.to_owned(),
        reason,
    };
    let batch = RecordBatch::try_new(table.schema(), table.columns_of(found));
    let batch = batch.map_err(|error| SqlError::of_engine(error.into()))?;
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let file = File::create_new(path).map_err(failed)?;
    let write = || {
        let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.close()
    };
    write().map_err(|error| failed(std::io::Error::other(error)))?;
    Ok(HostFile {
        host: None,
        bytes: std::fs::metadata(path).map_err(failed)?.len(),
        rows: batch.num_rows() as u64,
        path: path.to_owned(),
    })
}

/// Times beyond 292 years after the boot are in no trace: rows with them were left out.
fn time(at_ns: u64) -> i64 {
    i64::try_from(at_ns).unwrap_or(i64::MAX)
}

fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn times_or_none(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

fn numbers(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn numbers_or_none(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter(values))
}

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn texts_or_none<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}

fn edges(found: &Relations) -> Vec<ArrayRef> {
    let rows = &found.edges;
    let side = |side: fn(&Edge) -> &EdgeSide| -> [ArrayRef; 6] {
        let sides = || rows.iter().map(side);
        [
            texts(sides().map(|side| found.hosts[side.host as usize].as_str())),
            numbers(sides().map(|side| side.process)),
            numbers(sides().map(|side| side.thread)),
            counts(sides().map(|side| side.connection)),
            times(sides().map(|side| time(side.at_ns))),
            times_or_none(sides().map(|side| side.global_ns)),
        ]
    };
    let mut columns = vec![texts(rows.iter().map(|_| "message"))];
    columns.extend(side(|edge| &edge.from));
    columns.extend(side(|edge| &edge.to));
    columns.push(counts(rows.iter().map(|edge| edge.first_byte)));
    columns.push(counts(rows.iter().map(|edge| edge.bytes)));
    columns.push(times_or_none(rows.iter().map(|edge| edge.latency_ns)));
    columns.push(times_or_none(rows.iter().map(|edge| edge.low_ns)));
    columns.push(times_or_none(rows.iter().map(|edge| edge.high_ns)));
    columns
}

fn requests(found: &Relations) -> Vec<ArrayRef> {
    let rows = || found.requests.iter();
    let end_ns = |row: &RequestNode| row.end_ns.map(time);
    let took_ns = |row: &RequestNode| Some(time(row.end_ns?.saturating_sub(row.start_ns)));
    vec![
        numbers(rows().map(|row| row.id)),
        numbers_or_none(rows().map(|row| row.parent)),
        numbers(rows().map(|row| row.root)),
        numbers(rows().map(|row| row.pre)),
        numbers(rows().map(|row| row.last)),
        numbers(rows().map(|row| row.post)),
        numbers_or_none(rows().map(|row| row.number)),
        Arc::new(
            rows()
                .map(|row| Some(row.is_sent))
                .collect::<BooleanArray>(),
        ),
        texts(rows().map(|row| found.hosts[row.host as usize].as_str())),
        numbers(rows().map(|row| row.process)),
        numbers(rows().map(|row| row.thread)),
        counts(rows().map(|row| row.connection)),
        texts(rows().map(|row| row.local.as_str())),
        texts(rows().map(|row| row.remote.as_str())),
        counts(rows().map(|row| row.bytes)),
        times(rows().map(|row| time(row.start_ns))),
        times_or_none(rows().map(end_ns)),
        times_or_none(rows().map(took_ns)),
        times_or_none(rows().map(|row| row.start_global_ns)),
        texts_or_none(rows().map(|row| row.evidence)),
    ]
}

fn steps(found: &Relations) -> Vec<ArrayRef> {
    let rows = || found.steps.iter();
    let host = |number: u32| found.hosts[number as usize].as_str();
    let took_ns = |row: &PathStep| time(row.end_ns.saturating_sub(row.start_ns));
    vec![
        numbers(rows().map(|row| row.request)),
        numbers(rows().map(|row| row.step)),
        texts(rows().map(|row| row.part)),
        texts(rows().map(|row| host(row.host))),
        numbers_or_none(rows().map(|row| row.process)),
        numbers(rows().map(|row| row.thread)),
        texts(rows().map(|row| row.name.as_str())),
        texts_or_none(rows().map(|row| row.cause)),
        texts_or_none(rows().map(|row| row.from_host.map(host))),
        numbers_or_none(rows().map(|row| row.from_thread)),
        times(rows().map(|row| time(row.start_ns))),
        times(rows().map(|row| time(row.end_ns))),
        times(rows().map(took_ns)),
        times_or_none(rows().map(|row| row.error_ns.map(time))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_an_array_for_each_column() {
        let found = Relations::default();
        for table in Derived::ALL {
            let batch = RecordBatch::try_new(table.schema(), table.columns_of(&found));
            let rows = batch.map(|batch| batch.num_rows());
            assert_eq!(rows.expect("a batch"), 0, "{}", table.name());
        }
    }
}
