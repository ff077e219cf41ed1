//! The emulated disk: how large it has to be, and what it stands for.

use std::fs;

use luc_disk::units::{format_size, parse_size_bytes};

use super::error::AdviseError;
use crate::sweep::Disk;

/// What file systems take beside the files, and what a run adds.
const ROOM_BYTES: u64 = 2 << 30;
/// Sizes are whole multiples of this.
const STEP_BYTES: u64 = 1 << 30;

/// A disk of `model` for files of `bytes`, or of the `size` that the user wants.
pub(super) fn disk(model: &str, size: Option<&str>, bytes: f64) -> Result<Disk, AdviseError> {
    let wanted = (bytes * 2.0) as u64 + ROOM_BYTES;
    let size_bytes = match size {
        Some(size) => parse_size_bytes(size)
            .map_err(|error| AdviseError::Option(format!("--disk-size: {error}")))?,
        None => wanted.next_multiple_of(STEP_BYTES),
    };
    // Only what is written takes memory.
    let there = available_bytes();
    if let Some(there) = there.filter(|&there| bytes > there as f64 * 0.8) {
        return Err(AdviseError::Memory {
            needed: mebibytes(bytes),
            there: mebibytes(there as f64 * 0.8),
        });
    }
    if bytes > size_bytes as f64 * 0.9 {
        return Err(AdviseError::Option(format!(
            "--disk-size {}: the workload's files take {} when all exist: leave it out, or make them smaller (--set)",
            format_size(size_bytes),
            mebibytes(bytes)
        )));
    }
    Ok(Disk {
        model: model.to_owned(),
        size: format_size(size_bytes),
        ..Disk::default()
    })
}

/// To be read, not computed with.
fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / f64::from(1 << 20))
}

/// Memory that programs can have.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// What the disk stands for, in a sentence.
pub(super) fn stands_for(disk: &Disk) -> String {
    let size = parse_size_bytes(&disk.size).map_or(disk.size.clone(), format_size);
    let stands = match disk.model.as_str() {
        "hdd" => {
            "a hard disk of 7200 rpm (Seagate Barracuda, 250 GB, by its manual), of which this is the outer edge, \
             where seeks are short"
        }
        "ssd" => {
            "a SATA solid-state disk (Samsung 850 PRO by its data sheet; the time of a flush, 1 ms and the transfer of \
             its cache, is assumed)"
        }
        "cloud" => {
            "a network volume (Amazon EBS gp3 baseline by its documentation: 3000 operations/s, 125 MiB/s), on which a \
             flush is free"
        }
        "fixed" => {
            "no disk that one can buy: every request costs a constant, one after the other, by default 6 ms a flush \
             and 100 us a read or write"
        }
        file => return format!("emulated disk of {size}: what {file} says"),
    };
    format!("emulated disk {} of {size}: {stands}", disk.model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_the_files() {
        let made = disk("ssd", None, 3.0e9).expect("fits");
        assert_eq!(made.size, "8G");
        assert!(stands_for(&made).contains("of 8G"), "{}", stands_for(&made));
        let small = disk("ssd", Some("64M"), 1e8).expect_err("too small");
        assert!(small.to_string().contains("64M"), "{small}");
        let huge = disk("ssd", None, 1e15).expect_err("no memory");
        assert!(huge.to_string().contains("--on DIR"), "{huge}");
    }
}
