//! The archive format of an initramfs and of a guest's results: cpio "newc".

use std::collections::BTreeMap;

use crate::error::Error;

const MAGIC: &[u8] = b"070701";
const HEADER_BYTES: usize = 110;
const TRAILER: &str = "TRAILER!!!";

/// An archive being written. Times and inode numbers are fixed: the same content gives the same bytes.
#[derive(Debug, Default)]
pub(crate) struct CpioWriter {
    bytes: Vec<u8>,
    entries: u32,
}

impl CpioWriter {
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    /// Adds a file with its permission bits.
    pub(crate) fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(name, 0o100_000 | (mode & 0o7777), content);
    }

    pub(crate) fn link(&mut self, name: &str, target: &str) {
        self.entry(name, 0o120_777, target.as_bytes());
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let inode = self.entries;
        // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
        let size = content.len();
        let name_size = name.len() + 1;
        let header = format!(
            "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}{size:08x}{0:08x}{0:08x}{0:08x}{0:08x}{name_size:08x}{0:08x}",
            0, 1
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Returns the regular files of an archive, by name without a leading `./`.
///
/// # Errors
///
/// [`Error::Damaged`] if it is no archive or ends before its trailer.
pub(crate) fn read_files(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    let mut at = 0;
    loop {
        let header =
            bytes.get(at..at + HEADER_BYTES).ok_or(Error::Damaged("the archive has no end"))?;
        if !header.starts_with(MAGIC) {
            return Err(Error::Damaged("an archive entry has no magic number"));
        }
        let (mode, size, name_size) = (field(header, 1)?, field(header, 6)?, field(header, 11)?);
        let name_at = at + HEADER_BYTES;
        let name = bytes
            .get(name_at..name_at + name_size)
            .and_then(|name| name.strip_suffix(&[0]))
            .ok_or(Error::Damaged("an archive entry's name is cut"))?;
        let name = String::from_utf8_lossy(name).into_owned();
        if name == TRAILER {
            return Ok(files);
        }
        let content_at = (name_at + name_size).next_multiple_of(4);
        let content = bytes
            .get(content_at..content_at + size)
            .ok_or(Error::Damaged("an archive entry's content is cut"))?;
        if mode & 0o170_000 == 0o100_000 {
            let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
            files.insert(name, content.to_vec());
        }
        at = (content_at + size).next_multiple_of(4);
    }
}

/// Returns the `index`th number of a header: eight hexadecimal digits.
fn field(header: &[u8], index: usize) -> Result<usize, Error> {
    let start = MAGIC.len() + 8 * index;
    std::str::from_utf8(&header[start..start + 8])
        .ok()
        .and_then(|digits| usize::from_str_radix(digits, 16).ok())
        .ok_or(Error::Damaged("an archive entry has a field that is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = CpioWriter::default();
        writer.folder("a");
        writer.file("./a/b", 0o644, b"content");
        writer.link("c", "a/b");
        writer.file("empty", 0o600, b"");
        let files = read_files(&writer.finish()).expect("an archive");
        let expected = [("a/b", &b"content"[..]), ("empty", b"")];
        let expected = expected.map(|(name, content)| (name.to_owned(), content.to_vec()));
        assert_eq!(files, BTreeMap::from(expected));
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let mut writer = CpioWriter::default();
        writer.file("file", 0o644, &[7; 100]);
        let whole = writer.finish();
        for length in 0..whole.len() - 11 {
            assert!(read_files(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        }
    }
}
