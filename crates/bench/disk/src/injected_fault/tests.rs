use super::*;
use proptest::prelude::*;

const SIZE: u64 = 1 << 20;

fn numbers(fault: &mut ActiveFault, count: u64) -> Vec<u64> {
    let mut failed = Vec::new();
    for number in 1..=count {
        if fault.strikes(0, DiskRequestKind::Write, 0, 512).is_some() {
            failed.push(number);
        }
    }
    failed
}

#[test]
fn after_and_every_count_matching_requests() {
    for (after, every, expected) in [
        (0, 1, vec![1, 2, 3, 4, 5, 6]),
        (4, 1, vec![5, 6]),
        (0, 3, vec![3, 6]),
        (2, 2, vec![4, 6]),
        (9, 1, vec![]),
    ] {
        let spec = FaultSpec { after, every, ..FaultSpec::writes(BlockErrno::EIO) };
        let mut fault = ActiveFault::new(spec, 0);
        // Reads and discards do not match, and are not counted.
        assert_eq!(fault.strikes(0, DiskRequestKind::Read, 0, 512), None);
        assert_eq!(fault.strikes(0, DiskRequestKind::Discard, 0, 512), None);
        assert_eq!(numbers(&mut fault, 6), expected, "after {after} every {every}");
        let status = fault.status(0);
        assert_eq!((status.matched, status.failed), (6, expected.len() as u64));
    }
}

#[test]
fn ranges_are_touched_or_not() {
    let spec = FaultSpec {
        ranges: vec!["4K-8K".parse().expect("a range"), "1M-2M".parse().expect("a range")],
        ..FaultSpec::writes(BlockErrno::EIO)
    };
    let mut fault = ActiveFault::new(spec, 0);
    for (offset, len, fails) in [
        (0, 4096, false),
        (0, 4097, true),
        (8191, 1, true),
        (8192, 512, false),
        (0, 2 << 20, true),
        (1 << 20, 512, true),
    ] {
        let struck = fault.strikes(0, DiskRequestKind::Write, offset, len).is_some();
        assert_eq!(struck, fails, "{offset} {len}");
    }
}

#[test]
fn a_flush_has_no_place() {
    let spec = FaultSpec {
        on: vec![FaultKind::Write, FaultKind::Flush],
        ranges: vec!["4K-8K".parse().expect("a range")],
        ..FaultSpec::writes(BlockErrno::EIO)
    };
    assert!(spec.check(SIZE).is_ok());
    let mut fault = ActiveFault::new(spec, 0);
    assert!(fault.strikes(0, DiskRequestKind::Flush, 0, 0).is_some());
}

#[test]
fn it_ends_in_time() {
    let spec = FaultSpec { for_ns: Some(1000), ..FaultSpec::writes(BlockErrno::EIO) };
    let mut fault = ActiveFault::new(spec, 500);
    assert!(fault.strikes(1499, DiskRequestKind::Write, 0, 512).is_some());
    assert_eq!(fault.strikes(1500, DiskRequestKind::Write, 0, 512), None);
    assert!(fault.status(1500).is_over);
}

#[test]
fn bad_faults_are_refused() {
    let good = FaultSpec::writes(BlockErrno::EIO);
    let enodata: BlockErrno = "ENODATA".parse().expect("an errno");
    for (spec, expected) in [
        (FaultSpec { every: 0, ..good.clone() }, "--every 0"),
        (FaultSpec { for_ns: Some(0), ..good.clone() }, "--for 0"),
        (FaultSpec { on: vec![], ..good.clone() }, "no kind"),
        (
            FaultSpec { on: vec![FaultKind::Flush], errno: enodata, ..good.clone() },
            "turns any failed flush into EIO",
        ),
        (
            FaultSpec {
                on: vec![FaultKind::Flush],
                ranges: vec!["0-1K".parse().expect("a range")],
                ..good.clone()
            },
            "whole disk",
        ),
        (
            FaultSpec { ranges: vec!["0-2M".parse().expect("a range")], ..good.clone() },
            "beyond the end",
        ),
    ] {
        let message = spec.check(SIZE).expect_err("refused").to_string();
        assert!(message.contains(expected), "{message}");
    }
    for text in ["", "4K", "8K-4K", "4K-4K", "x-4K", "4K-"] {
        assert!(text.parse::<ByteRange>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_range_panics(text in "\\PC{0,20}") {
        let _ = text.parse::<ByteRange>();
    }

    #[test]
    fn what_is_printed_is_read_back(start in 0u64..1 << 40, len in 1u64..1 << 30) {
        let range = ByteRange { start_bytes: start, end_bytes: start + len };
        prop_assert_eq!(range.to_string().parse::<ByteRange>().ok(), Some(range));
    }
}
