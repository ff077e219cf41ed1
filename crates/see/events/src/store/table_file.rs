//! A file: its head, its row groups with their checksums, its footer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use super::row_group::{GroupBytes, GroupEncoder, TableRow, kind};
use super::table_kind::TableKind;
use super::{OLDEST_VERSION, SCHEMA_VERSION, StoreError};

/// Parquet's magic number.
const PARQUET_MAGIC: &[u8; 4] = b"PAR1";
/// LUC's magic number, behind Parquet's.
const MAGIC: &[u8; 4] = b"LUC1";
/// Length of the head, between Parquet's magic number and the first row group.
pub(crate) const HEAD_BYTES: usize = 20;
/// Offset of the first row group.
const GROUPS_OFFSET: u64 = (PARQUET_MAGIC.len() + HEAD_BYTES) as u64;
/// Length of the end of a Parquet file: the footer's length and the magic number.
const TAIL_BYTES: usize = 8;

/// Most row groups are smaller than this.
const LIKELY_BYTES: u64 = 1 << 20;

const SCHEMA_KEY: &str = "luc.schema";
const TABLE_KEY: &str = "luc.table";
const GROUPS_KEY: &str = "luc.segments";

/// A row group, as the footer's `luc.segments` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRowGroup {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) crc: u32,
    pub(crate) rows: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl FileRowGroup {
    fn to_text(self) -> String {
        let Self { offset, length, crc, rows, first_ns, last_ns } = self;
        format!("{offset}:{length}:{crc}:{rows}:{first_ns}:{last_ns}")
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let group = Self {
            offset: next()?,
            length: next()?,
            crc: u32::try_from(next()?).ok()?,
            rows: next()?,
            first_ns: next()?,
            last_ns: next()?,
        };
        numbers.next().is_none().then_some(group)
    }
}

/// Returns the key-value metadata of a file of a table with these groups.
pub(crate) fn key_values(kind: TableKind, groups: &[FileRowGroup]) -> [KeyValue; 3] {
    let groups: Vec<String> = groups.iter().map(|group| group.to_text()).collect();
    [
        KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA_VERSION.to_string()),
        KeyValue::new(TABLE_KEY.to_owned(), kind.name.to_owned()),
        KeyValue::new(GROUPS_KEY.to_owned(), groups.join(" ")),
    ]
}

/// Number and times of a row group's rows, by its description.
struct Extent {
    rows: u64,
    first_ns: u64,
    last_ns: u64,
}

/// A complete file with one row group of these rows, which must be sorted by time and not empty.
pub(crate) fn encode<T: TableRow>(rows: &[T]) -> ParquetResult<Vec<u8>> {
    let extent = Extent {
        rows: rows.len() as u64,
        first_ns: rows.first().map_or(0, TableRow::time_ns),
        last_ns: rows.last().map_or(0, TableRow::time_ns),
    };
    encode_columns(kind::<T>(), extent, &|out| T::encode(rows, out))
}

/// A complete file with one row group, whose columns `encode` writes.
fn encode_columns(
    kind: TableKind,
    extent: Extent,
    encode: &dyn Fn(&mut GroupEncoder<'_, '_>) -> ParquetResult<()>,
) -> ParquetResult<Vec<u8>> {
    let schema = kind.schema()?;
    let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(kind.properties()))?;
    file.write_all(&[0; HEAD_BYTES])?;
    let mut group = file.next_row_group()?;
    encode(&mut GroupEncoder::new(&mut group, &descriptor))?;
    group.close()?;
    file.flush()?;
    let written = &file.inner()[GROUPS_OFFSET as usize..];
    let group = FileRowGroup {
        offset: GROUPS_OFFSET,
        length: written.len() as u64,
        crc: crc32fast::hash(written),
        rows: extent.rows,
        first_ns: extent.first_ns,
        last_ns: extent.last_ns,
    };
    for pair in key_values(kind, &[group]) {
        file.append_key_value_metadata(pair);
    }
    let mut bytes = file.into_inner()?;
    let footer_offset = GROUPS_OFFSET + group.length;
    let head = head(footer_offset, &bytes[footer_offset as usize..]);
    bytes[PARQUET_MAGIC.len()..GROUPS_OFFSET as usize].copy_from_slice(&head);
    Ok(bytes)
}

/// Makes the head of a file whose `footer` (all that follows the row groups) begins at `footer_offset`.
pub(crate) fn head(footer_offset: u64, footer: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(MAGIC);
    head[4..12].copy_from_slice(&footer_offset.to_le_bytes());
    head[12..16].copy_from_slice(&crc32fast::hash(footer).to_le_bytes());
    let crc = crc32fast::hash(&head[..16]);
    head[16..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// An open file of a table, its footer checked.
#[derive(Debug)]
pub(crate) struct OpenTableFile {
    pub(crate) path: PathBuf,
    file: File,
    pub(crate) metadata: ParquetMetaData,
    pub(crate) groups: Vec<FileRowGroup>,
    /// The schema version.
    pub(crate) version: u32,
}

impl OpenTableFile {
    /// Opens a file of table `kind` and checks all but its row groups.
    pub(crate) fn open(kind: TableKind, path: &Path) -> Result<Self, StoreError> {
        let damaged = |offset, reason: &str| StoreError::damaged(path, offset, reason);
        let mut file = File::open(path).map_err(StoreError::io(path, "open it"))?;
        let length = file.metadata().map_err(StoreError::io(path, "read its length"))?.len();
        if length < GROUPS_OFFSET + TAIL_BYTES as u64 {
            return Err(damaged(length, "the file is too short"));
        }
        let mut start = [0; GROUPS_OFFSET as usize];
        file.read_exact(&mut start).map_err(StoreError::io(path, "read it"))?;
        let (magic, found) = start.split_at(PARQUET_MAGIC.len());
        if magic != PARQUET_MAGIC {
            return Err(damaged(0, "not a Parquet file"));
        }
        let footer_offset = number(&found[4..12]);
        if &found[..4] != MAGIC || crc32fast::hash(&found[..16]) as u64 != number(&found[16..20]) {
            return Err(damaged(4, "not the head of a trace's file, or its checksum is wrong"));
        }
        if footer_offset < GROUPS_OFFSET || footer_offset > length - TAIL_BYTES as u64 {
            return Err(damaged(length, "the file ends before its footer"));
        }
        let footer = read_range(&mut file, footer_offset, length - footer_offset)
            .map_err(StoreError::io(path, "read it"))?;
        if crc32fast::hash(&footer) as u64 != number(&found[12..16]) {
            return Err(damaged(footer_offset, "the footer's checksum is wrong"));
        }
        let (footer, tail) = footer.split_at(footer.len() - TAIL_BYTES);
        let thrift_length = number(&tail[..4]) as usize;
        let thrift =
            footer.len().checked_sub(thrift_length).map(|from| &footer[from..]).ok_or_else(
                || damaged(length - TAIL_BYTES as u64, "the footer's length is wrong"),
            )?;
        let metadata = ParquetMetaDataReader::decode_metadata(thrift)
            .map_err(|reason| StoreError::damaged(path, footer_offset, reason))?;
        let (version, groups) = check_metadata(kind, &metadata, path, footer_offset)?;
        Ok(Self { path: path.to_path_buf(), file, metadata, groups, version })
    }

    /// Returns the length of the file.
    pub(crate) fn length(&self) -> Result<u64, StoreError> {
        let about = self.file.metadata();
        Ok(about.map_err(StoreError::io(&self.path, "read its length"))?.len())
    }

    /// Returns the bytes of row group `index` after checking its checksum.
    pub(crate) fn group_bytes(&mut self, index: usize) -> Result<GroupBytes, StoreError> {
        let group = self.groups[index];
        let bytes = read_range(&mut self.file, group.offset, group.length)
            .map_err(StoreError::io(&self.path, "read it"))?;
        if crc32fast::hash(&bytes) != group.crc {
            return Err(StoreError::damaged(
                &self.path,
                group.offset,
                format!("the checksum of row group {index} ({} bytes) is wrong", group.length),
            ));
        }
        Ok(GroupBytes { offset: group.offset, bytes: Bytes::from(bytes) })
    }
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn read_range(file: &mut File, offset: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    // Not more than a segment has: the length may be a damaged one.
    let mut bytes = Vec::with_capacity(length.min(LIKELY_BYTES) as usize);
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// Checks schema version, table and row groups; returns the first and the last.
fn check_metadata(
    kind: TableKind,
    metadata: &ParquetMetaData,
    path: &Path,
    footer_offset: u64,
) -> Result<(u32, Vec<FileRowGroup>), StoreError> {
    let value = |key: &str| {
        metadata
            .file_metadata()
            .key_value_metadata()
            .into_iter()
            .flatten()
            .find(|pair| pair.key == key)
            .and_then(|pair| pair.value.as_deref())
            .unwrap_or_default()
    };
    let version = value(SCHEMA_KEY);
    let readable = OLDEST_VERSION..=SCHEMA_VERSION;
    let version =
        version.parse().ok().filter(|number| readable.contains(number)).ok_or_else(|| {
            StoreError::Version {
                path: path.to_path_buf(),
                found: version.to_owned(),
                oldest: OLDEST_VERSION,
                newest: SCHEMA_VERSION,
            }
        })?;
    if value(TABLE_KEY) != kind.name {
        return Err(StoreError::damaged(
            path,
            footer_offset,
            format!("it holds table {:?}, not {:?}", value(TABLE_KEY), kind.name),
        ));
    }
    let mut expected_offset = GROUPS_OFFSET;
    let groups: Option<Vec<FileRowGroup>> = value(GROUPS_KEY)
        .split_ascii_whitespace()
        .zip(metadata.row_groups())
        .map(|(text, found)| {
            let group = FileRowGroup::from_text(text)?;
            let end = group.offset.checked_add(group.length)?;
            let fits = group.offset == expected_offset
                && end <= footer_offset
                && u64::try_from(found.num_rows()) == Ok(group.rows)
                && group.first_ns <= group.last_ns;
            expected_offset = end;
            fits.then_some(group)
        })
        .collect();
    groups
        .filter(|groups| {
            groups.len() == metadata.num_row_groups() && expected_offset == footer_offset
        })
        .map(|groups| (version, groups))
        .ok_or_else(|| {
            StoreError::damaged(path, footer_offset, "the list of row groups does not fit the file")
        })
}
