//! Requests that fail on purpose: which ones, and how many have.

use std::fmt;
use std::str::FromStr;

use luc_units::{format_duration, format_size, parse_size_bytes};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::block_errno::{BlockErrno, kernel_release};
use crate::model::DiskRequestKind;

/// Ranges of one fault; its request to the disk stays small.
const MAX_RANGES: usize = 1024;

/// Rule by which requests fail. A request matches if it is of one of these kinds and touches one of these ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSpec {
    pub errno: BlockErrno,
    pub on: Vec<FaultKind>,
    /// Matching requests that are served first.
    pub after: u64,
    /// Interval of failures: of the matching requests after these, every N-th fails.
    pub every: u64,
    /// Affected bytes; empty: all. Flushes have no place and match any.
    pub ranges: Vec<ByteRange>,
    /// Duration of the fault; without it, the fault ends with [`crate::clear_fault`].
    pub for_ns: Option<u64>,
}

/// A kind of requests that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    Write,
    Read,
    Flush,
}

/// Bytes of a disk, `start_bytes` up to but without `end_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    pub start_bytes: u64,
    /// The first byte after it.
    pub end_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultStatus {
    /// Rule by which requests fail.
    #[serde(flatten)]
    pub spec: FaultSpec,
    pub matched: u64,
    pub failed: u64,
    pub is_over: bool,
}

impl FaultSpec {
    /// Builds a fault by which every write fails with `errno`.
    pub fn writes(errno: BlockErrno) -> Self {
        Self {
            errno,
            on: vec![FaultKind::Write],
            after: 0,
            every: 1,
            ranges: Vec::new(),
            for_ns: None,
        }
    }

    /// Checks that a disk of this many bytes can fail so on this kernel.
    ///
    /// # Errors
    /// [`Error::Errno`], [`Error::Fault`].
    pub fn check(&self, size_bytes: u64) -> Result<(), Error> {
        self.errno.check_kernel(&kernel_release())?;
        let refused = |option: String, reason: &'static str| Err(Error::Fault { option, reason });
        if self.on.is_empty() {
            return refused(
                "--on ''".to_owned(),
                "no kind of requests is left: use write, read or flush",
            );
        }
        if self.on.contains(&FaultKind::Flush) && self.errno != BlockErrno::EIO {
            return refused(
                format!("--on flush --errno {}", self.errno),
                "the loop device turns any failed flush into EIO: use --errno EIO",
            );
        }
        if self.every == 0 {
            return refused("--every 0".to_owned(), "no request would fail: use 1 or more");
        }
        if self.for_ns == Some(0) {
            return refused(
                "--for 0".to_owned(),
                "the fault would be over at once: use a time such as 2s",
            );
        }
        if !self.ranges.is_empty() && self.on == [FaultKind::Flush] {
            return refused(
                format!("--range {}", self.ranges[0]),
                "a flush is of the whole disk: leave it out",
            );
        }
        if self.ranges.len() > MAX_RANGES {
            return refused(
                format!("{} times --range", self.ranges.len()),
                "these are too many: use at most 1024",
            );
        }
        match self.ranges.iter().find(|range| range.end_bytes > size_bytes) {
            Some(range) => refused(
                format!("--range {range}"),
                "it reaches beyond the end of the disk: see `luc disk list` for its size",
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self.on.iter().map(ToString::to_string).collect();
        let every = match self.every {
            1 => String::new(),
            every => format!("1 of {every} "),
        };
        write!(f, "{every}{} fail with {}", kinds.join(" and "), self.errno)?;
        match self.ranges.as_slice() {
            [] => {}
            [range] => write!(f, " in {range}")?,
            ranges => write!(f, " in {} ranges", ranges.len())?,
        }
        if self.after > 0 {
            write!(f, " after {}", self.after)?;
        }
        self.for_ns.map_or(Ok(()), |ns| write!(f, " for {}", format_duration(ns)))
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "writes",
            Self::Read => "reads",
            Self::Flush => "flushes",
        })
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "write" => Ok(Self::Write),
            "read" => Ok(Self::Read),
            "flush" => Ok(Self::Flush),
            _ => Err("no such kind of requests: use write, read or flush".to_owned()),
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", format_size(self.start_bytes), format_size(self.end_bytes))
    }
}

impl FromStr for ByteRange {
    type Err = Error;

    /// Reads `A-B`, two sizes.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |reason| Error::Fault { option: format!("--range {text}"), reason };
        let (start, end) = text.split_once('-').ok_or_else(|| {
            refused("it is not two sizes with a '-' between them: write it like 4K-8K or 1G-1025M")
        })?;
        let range =
            Self { start_bytes: parse_size_bytes(start)?, end_bytes: parse_size_bytes(end)? };
        if range.start_bytes >= range.end_bytes {
            return Err(refused("no byte is in it: write the lower end first"));
        }
        Ok(range)
    }
}

impl fmt::Display for FaultStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec, matched, failed, is_over } = self;
        let over = if *is_over { ", over" } else { "" };
        write!(f, "{spec}: {failed} of {matched} have failed{over}")
    }
}

/// A fault at work.
#[derive(Debug)]
pub(crate) struct ActiveFault {
    spec: FaultSpec,
    until_ns: Option<u64>,
    matched: u64,
    failed: u64,
}

impl ActiveFault {
    pub(crate) fn new(spec: FaultSpec, now_ns: u64) -> Self {
        Self {
            until_ns: spec.for_ns.map(|ns| now_ns.saturating_add(ns)),
            spec,
            matched: 0,
            failed: 0,
        }
    }

    /// Returns the errno if the request fails, and counts it.
    pub(crate) fn strikes(
        &mut self,
        now_ns: u64,
        kind: DiskRequestKind,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> Option<BlockErrno> {
        if self.is_over(now_ns) || !self.matches(kind, offset_bytes, len_bytes) {
            return None;
        }
        self.matched += 1;
        let beyond = self.matched.checked_sub(self.spec.after)?;
        // `every` is not 0: it was checked. The first `every`-th is number `every`.
        if beyond == 0 || beyond % self.spec.every != 0 {
            return None;
        }
        self.failed += 1;
        Some(self.spec.errno)
    }

    pub(crate) fn status(&self, now_ns: u64) -> FaultStatus {
        FaultStatus {
            spec: self.spec.clone(),
            matched: self.matched,
            failed: self.failed,
            is_over: self.is_over(now_ns),
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.until_ns.is_some_and(|until| now_ns >= until)
    }

    fn matches(&self, kind: DiskRequestKind, offset_bytes: u64, len_bytes: u64) -> bool {
        let kind = match kind {
            DiskRequestKind::Write => FaultKind::Write,
            DiskRequestKind::Read => FaultKind::Read,
            DiskRequestKind::Flush => FaultKind::Flush,
            DiskRequestKind::Discard => return false,
        };
        let end_bytes = offset_bytes.saturating_add(len_bytes);
        let touches =
            |range: &ByteRange| offset_bytes < range.end_bytes && range.start_bytes < end_bytes;
        self.spec.on.contains(&kind)
            && (kind == FaultKind::Flush
                || self.spec.ranges.is_empty()
                || self.spec.ranges.iter().any(touches))
    }
}

#[cfg(test)]
mod tests;
