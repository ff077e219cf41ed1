//! Merging a table's small files into one.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use super::StoreError;
use super::file_names::{self, TableFileName};
use super::table_file::{FileRowGroup, HEAD_BYTES, OpenTableFile, head, key_values};
use super::table_kind::TableKind;

/// Merges `parts` of table `kind`, which follow each other, into one file. Copies their row groups, removes them, and
/// returns the new file and its length.
pub(crate) fn merge(
    kind: TableKind,
    directory: &Path,
    parts: &[TableFileName],
) -> Result<(TableFileName, u64), StoreError> {
    let (first, last) = match parts {
        [] => (0, 0),
        [first, .., last] => (first.first, last.last),
        [only] => (only.first, only.last),
    };
    let path = file_names::path(kind.name, directory, first, last);
    let temporary = file_names::temporary(&path);
    let length = copy(kind, parts, &temporary)?;
    fs::rename(&temporary, &path).map_err(StoreError::io(&path, "rename it into place"))?;
    for part in parts.iter().filter(|part| part.path != path) {
        fs::remove_file(&part.path)
            .map_err(StoreError::io(&part.path, "remove it after merging"))?;
    }
    Ok((TableFileName { first, last, path }, length))
}

/// Writes the merged file and returns its length.
fn copy(kind: TableKind, parts: &[TableFileName], path: &Path) -> Result<u64, StoreError> {
    let encode = |reason: ParquetError| StoreError::Encode {
        path: path.to_path_buf(),
        table: kind.name,
        reason,
    };
    let io = || StoreError::io(path, "write it");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(StoreError::io(path, "create it"))?;
    let schema = kind.schema().map_err(encode)?;
    let mut out =
        SerializedFileWriter::new(file, schema, Arc::new(kind.properties())).map_err(encode)?;
    out.write_all(&[0; HEAD_BYTES]).map_err(io())?;
    let mut groups = Vec::new();
    for part in parts {
        let mut segment = OpenTableFile::open(kind, &part.path)?;
        for index in 0..segment.groups.len() {
            let bytes = segment.group_bytes(index)?;
            let offset = out.bytes_written() as u64;
            let mut group = out.next_row_group().map_err(encode)?;
            for column in segment.metadata.row_group(index).columns() {
                let close = ColumnCloseResult {
                    bytes_written: column.compressed_size().unsigned_abs(),
                    rows_written: segment.groups[index].rows,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                group.append_column(&bytes, close).map_err(encode)?;
            }
            group.close().map_err(encode)?;
            // The columns are copied as they are and in order, so the checksum stays right.
            groups.push(FileRowGroup { offset, ..segment.groups[index] });
        }
    }
    let footer_offset = out.bytes_written() as u64;
    for pair in key_values(kind, &groups) {
        out.append_key_value_metadata(pair);
    }
    let mut file = out.into_inner().map_err(encode)?;
    seal(&mut file, footer_offset).map_err(io())
}

/// Fills in the head, and returns the file's length.
fn seal(file: &mut File, footer_offset: u64) -> std::io::Result<u64> {
    use std::io::Read;
    let mut footer = Vec::new();
    file.seek(SeekFrom::Start(footer_offset))?;
    file.read_to_end(&mut footer)?;
    file.seek(SeekFrom::Start(4))?;
    file.write_all(&head(footer_offset, &footer))?;
    Ok(footer_offset + footer.len() as u64)
}
