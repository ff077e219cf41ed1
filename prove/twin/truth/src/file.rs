//! The file of JSON lines with one process' truth.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::row::{Header, Row, VERSION};

const MAX_LINE_BYTES: u64 = 1 << 16;

/// A truth file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    /// A line that is not of this version's format.
    #[error("{path}, line {line}: {why}; make it again by `luc-twin run`")]
    Line { path: PathBuf, line: usize, why: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    pub header: Header,
    /// All rows, in no order.
    pub rows: Vec<Row>,
}

/// Writes a process' file.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, truth: &Truth) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut file, &truth.header)?;
    file.write_all(b"\n")?;
    for row in &truth.rows {
        serde_json::to_writer(&mut file, row)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// Reads a process' file.
///
/// # Errors
/// It cannot be opened, or a line of it is not what it should be.
pub fn read(path: &Path) -> Result<Truth, TruthError> {
    let system = |source| TruthError::File { path: path.to_owned(), source };
    let wrong = |line, why: String| TruthError::Line { path: path.to_owned(), line, why };
    let mut file = BufReader::new(File::open(path).map_err(system)?);
    let mut bytes = Vec::new();
    let mut header: Option<Header> = None;
    let mut rows = Vec::new();
    for line in 1.. {
        bytes.clear();
        let mut limited = (&mut file).take(MAX_LINE_BYTES);
        if limited.read_until(b'\n', &mut bytes).map_err(system)? == 0 {
            break;
        }
        if bytes.pop() != Some(b'\n') {
            return Err(wrong(line, "it is cut off, or too long".into()));
        }
        if header.is_some() {
            let row = serde_json::from_slice(&bytes);
            rows.push(row.map_err(|error| wrong(line, error.to_string()))?);
            continue;
        }
        let first: Header =
            serde_json::from_slice(&bytes).map_err(|error| wrong(line, error.to_string()))?;
        if first.version != VERSION {
            let why = format!("version {} is not {VERSION}", first.version);
            return Err(wrong(line, why));
        }
        header = Some(first);
    }
    let header = header.ok_or_else(|| wrong(1, "there is no header".into()))?;
    Ok(Truth { header, rows })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kind::Kind;
    use crate::row::{
        Answer, Connection, Direction, MAX_HITS, Message, MessageKind, Planted, Role, Work,
        WorkKind,
    };

    fn truth() -> Truth {
        let [local, remote] = ["10.0.0.1:5", "10.0.0.2:65535"].map(|at| at.parse().expect("valid"));
        let header = Header {
            version: VERSION,
            role: Role::BackEnd,
            host: "back-end-0".into(),
            process: 12,
            namespace: u64::MAX,
            seed: u64::MAX,
            options: vec!["--partition".into(), "a \"b\"\n".into()],
            dropped_rows: 0,
        };
        let rows = vec![
            Row::Message(Message {
                at_ns: u64::MAX,
                thread: 1,
                request: u64::MAX,
                parent: 7,
                kind: MessageKind::Texts,
                direction: Direction::Received,
                local,
                remote,
                first_byte: 1 << 60,
                bytes: 9,
            }),
            Row::Work(Work {
                request: 1,
                thread: 2,
                kind: WorkKind::Planted,
                from_ns: 3,
                to_ns: 4,
            }),
            Row::Answer(Answer {
                request: 1,
                client: 2,
                sequence: 3,
                documents: [u32::MAX; MAX_HITS],
                hits: 4,
                snippet_bytes: 5,
                due_ns: 6,
            }),
            Row::Connection(Connection {
                local,
                remote,
                sent_bytes: 1,
                received_bytes: 2,
                retransmitted_bytes: 3,
            }),
            Row::Planted(Planted {
                kind: Kind::Lock,
                from_ns: 1,
                to_ns: 2,
                thread: 3,
                holder: 3,
                strength: 4,
                times: 5,
            }),
        ];
        Truth { header, rows }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("back-end-0.jsonl");
        write(&path, &truth()).expect("written");
        assert_eq!(read(&path).expect("read"), truth());
    }

    #[test]
    fn errors_name_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        write(&path, &truth()).expect("written");
        let good = std::fs::read_to_string(&path).expect("read");
        let said = |text: &str| {
            std::fs::write(&path, text).expect("written");
            read(&path).expect_err("refused").to_string()
        };
        assert!(said("").contains("no header"));
        assert!(said(&good[..good.len() - 1]).contains("cut off"));
        assert!(said(&good.replace("\"work\"", "\"play\"")).contains("line 3"));
        assert!(said(&good.replacen("\"version\":1", "\"version\":9", 1)).contains("version 9"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_truth_or_an_error(
            noise: Vec<u8>,
            at in any::<prop::sample::Index>(),
            byte: u8,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("file");
            std::fs::write(&path, &noise).expect("written");
            read(&path).expect_err("noise");
            write(&path, &truth()).expect("written");
            let mut bytes = std::fs::read(&path).expect("read");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            std::fs::write(&path, &bytes).expect("written");
            let _ = read(&path);
        }
    }
}
