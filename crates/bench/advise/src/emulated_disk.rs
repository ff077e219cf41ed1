//! The emulated disk: its size, and the device it stands for.

use luc_host::available_memory::available_bytes;
use luc_units::{format_size, parse_size_bytes};

use super::error::AdviseError;
use luc_sweep::{MAX_GUEST_DISK_BYTES, PlanDisk, PlanSize};

/// Space for the file system's metadata and for growth during a run.
const ROOM_BYTES: u64 = 2 << 30;
/// Sizes are whole multiples of this.
const STEP_BYTES: u64 = 1 << 30;
/// Step of the size of a guest's disk, which is in the guest's memory.
const GUEST_STEP_BYTES: u64 = 512 << 20;

/// Builds a disk of `model` for files of `bytes`, or of the `size` that the user wants.
pub(super) fn disk(model: &str, size: Option<&str>, bytes: f64) -> Result<PlanDisk, AdviseError> {
    let wanted = (bytes * 2.0) as u64 + ROOM_BYTES;
    let size_bytes = parse_size_or(size, wanted.next_multiple_of(STEP_BYTES))?;
    build_disk(model, size_bytes, bytes)
}

/// Returns the user's `--disk-size`, or without it `otherwise`.
fn parse_size_or(size: Option<&str>, otherwise: u64) -> Result<u64, AdviseError> {
    let given = size.map_or(Ok(otherwise), parse_size_bytes);
    given.map_err(|error| AdviseError::Option(format!("--disk-size: {error}")))
}

fn build_disk(model: &str, size_bytes: u64, bytes: f64) -> Result<PlanDisk, AdviseError> {
    // Only written blocks take memory.
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
    Ok(PlanDisk {
        model: model.to_owned(),
        size: PlanSize::of_bytes(size_bytes),
        ..PlanDisk::default()
    })
}

/// Returns the same for a guest, whose disk is smaller.
pub(super) fn in_guest(
    model: &str,
    size: Option<&str>,
    bytes: f64,
) -> Result<PlanDisk, AdviseError> {
    if model == "fixed" {
        return Err(AdviseError::Option(
            "--disk fixed does not go with --virtual: give hdd, ssd, cloud or a model file"
                .to_owned(),
        ));
    }
    let largest = MAX_GUEST_DISK_BYTES;
    if bytes > largest as f64 * 0.9 {
        return Err(AdviseError::Option(format!(
            "the workload's files take {}, and a guest's disk has at most {}: make them fewer or smaller (--set \
             nfiles=N), or leave --virtual out",
            mebibytes(bytes),
            format_size(largest)
        )));
    }
    let wanted = ((bytes * 2.0) as u64 + GUEST_STEP_BYTES).next_multiple_of(GUEST_STEP_BYTES);
    build_disk(model, parse_size_or(size, wanted.min(largest))?, bytes)
}

/// Formats a size for people, rounded.
fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / f64::from(1 << 20))
}

/// Describes in a sentence which device the disk stands for.
pub(super) fn describe_disk(disk: &PlanDisk) -> String {
    let size = &disk.size;
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
        assert_eq!(made.size.to_string(), "8G");
        assert!(describe_disk(&made).contains("of 8G"), "{}", describe_disk(&made));
        let small = disk("ssd", Some("64M"), 1e8).expect_err("too small");
        assert!(small.to_string().contains("64M"), "{small}");
        let guest = in_guest("hdd", None, 2e8).expect("fits");
        assert_eq!(guest.size.to_string(), "1G");
        assert_eq!(in_guest("hdd", None, 2e9).expect("fits").size.to_string(), "4G");
        for (model, bytes, words) in [("hdd", 5e9, "at most 4G"), ("fixed", 1e6, "--virtual")] {
            let said = in_guest(model, None, bytes).expect_err("refused");
            assert!(said.to_string().contains(words), "{said}");
        }
        let huge = disk("ssd", None, 1e15).expect_err("no memory");
        assert!(huge.to_string().contains("--on DIR"), "{huge}");
    }
}
