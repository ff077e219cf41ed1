//! A table of file systems that many threads and processes fill without a lock.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

/// File systems that one run, one process or one user's rounds tell apart; calls on further ones are
/// passed through.
pub const FILE_SYSTEMS: usize = 16;

/// A place of such a table.
pub trait DeviceSlot {
    /// `st_dev` of its file system plus one; 0 while free.
    fn device(&self) -> &AtomicU64;
}

/// The place of the file system `device` (as `st_dev`), claimed on first use, with its index; `None` when
/// all are taken.
pub fn claim<S: DeviceSlot>(slots: &[S], device: u64) -> Option<(usize, &S)> {
    let key = device.wrapping_add(1);
    slots.iter().enumerate().find(|(_, slot)| {
        let taken = slot.device().load(Acquire);
        taken == key
            || (taken == 0
                && match slot.device().compare_exchange(0, key, AcqRel, Acquire) {
                    Ok(_) => true,
                    Err(now) => now == key,
                })
    })
}

/// The place of the file system `device`, if it was claimed before.
pub fn find<S: DeviceSlot>(slots: &[S], device: u64) -> Option<&S> {
    let key = device.wrapping_add(1);
    slots.iter().find(|slot| slot.device().load(Acquire) == key)
}

/// All claimed places, with `st_dev` of their file systems.
pub fn claimed<S: DeviceSlot>(slots: &[S]) -> impl Iterator<Item = (u64, &S)> {
    slots.iter().filter_map(|slot| {
        let key = slot.device().load(Acquire);
        Some((key.checked_sub(1)?, slot))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Place(AtomicU64);

    impl DeviceSlot for Place {
        fn device(&self) -> &AtomicU64 {
            &self.0
        }
    }

    #[test]
    fn a_device_keeps_its_place_and_a_full_table_takes_no_more() {
        let slots: [Place; 2] = Default::default();
        assert!(find(&slots, 7).is_none());
        assert_eq!(claim(&slots, 7).unwrap().0, 0);
        assert_eq!(claim(&slots, 0).unwrap().0, 1);
        assert_eq!(claim(&slots, 7).unwrap().0, 0);
        assert!(claim(&slots, 8).is_none());
        assert!(find(&slots, 0).is_some());
        let devices: Vec<u64> = claimed(&slots).map(|(device, _)| device).collect();
        assert_eq!(devices, [7, 0]);
    }
}
