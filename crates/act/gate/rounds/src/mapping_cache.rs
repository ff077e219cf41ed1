//! Which file system a mapped address is of.
//!
//! Asked of the kernel and remembered for a second by the mapping's addresses: an answer that has grown stale only
//! means company on the wrong file system, never a call that is not made.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::call_path_syscalls;
use crate::proc_self_maps::{self, MemoryMapping};

const REMEMBERED: usize = 16;
const FRESH_NS: u64 = 1_000_000_000;

/// A mapping that was looked up. Written without a lock: `end` is cleared first and set last, and a
/// reader that sees a mixture is at worst wrong in the way described above.
struct Found {
    start: AtomicU64,
    end: AtomicU64,
    /// `st_dev` of its file; 0 if it has none, or that cannot be known.
    device: AtomicU64,
    found_ns: AtomicU64,
}

static FOUND: [Found; REMEMBERED] = [const {
    Found {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        device: AtomicU64::new(0),
        found_ns: AtomicU64::new(0),
    }
}; REMEMBERED];

/// The device (as `st_dev`) of the file mapped at `address`; `None` if none is.
pub fn device_at(address: usize) -> Option<u64> {
    let now_ns = call_path_syscalls::now_ns();
    let address = address as u64;
    let known = FOUND.iter().find(|found| found.is_of(address, now_ns));
    let device = match known {
        Some(found) => found.device.load(Relaxed),
        None => find(address, now_ns),
    };
    Some(device).filter(|&device| device != 0)
}

/// Asks the kernel, and forgets what was found first. Where too much is mapped to be read, that is remembered for all
/// addresses.
#[cold]
fn find(address: u64, now_ns: u64) -> u64 {
    let mapping = match proc_self_maps::mapping_at(address as usize) {
        Ok(Some(mapping)) => mapping,
        Ok(None) => return 0,
        Err(proc_self_maps::MapsUnreadable) => {
            MemoryMapping { start: 0, end: u64::MAX, file: None }
        }
    };
    let device = mapping.file.map_or(0, |file| file.device);
    if let Some(oldest) = FOUND.iter().min_by_key(|found| found.found_ns.load(Relaxed)) {
        oldest.end.store(0, Relaxed);
        oldest.start.store(mapping.start, Release);
        oldest.device.store(device, Release);
        oldest.found_ns.store(now_ns, Release);
        oldest.end.store(mapping.end, Release);
    }
    device
}

impl Found {
    fn is_of(&self, address: u64, now_ns: u64) -> bool {
        let end = self.end.load(Acquire);
        (self.start.load(Relaxed)..end).contains(&address)
            && now_ns.saturating_sub(self.found_ns.load(Relaxed)) < FRESH_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_asked_for_once() {
        let code = a_mapping_is_asked_for_once as *const () as usize;
        let device = device_at(code);
        assert!(device.is_some());
        let Ok(Some(mapping)) = proc_self_maps::mapping_at(code) else {
            panic!("code is mapped");
        };
        let known = |address| {
            let now_ns = call_path_syscalls::now_ns();
            FOUND.iter().any(|found| found.is_of(address, now_ns))
        };
        assert!(known(mapping.start) && known(mapping.end - 1));
        assert!(!known(mapping.end));
        assert_eq!(device_at(mapping.start as usize), device);
    }

    #[test]
    fn what_is_no_file_has_no_device() {
        let place = 5_u64;
        assert_eq!(device_at(&raw const place as usize), None);
        assert_eq!(device_at(0), None);
    }
}
