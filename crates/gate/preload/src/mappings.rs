//! Which file a mapped address belongs to.
//!
//! Read from `/proc/self/maps` and remembered for a second by the mapping's address: an answer that has
//! grown stale only means company on the wrong file system, never a call that is not made.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use luc_rounds::maps;
use luc_rounds::sys;

const REMEMBERED: usize = 64;
const FRESH_NS: u64 = 1_000_000_000;

/// The device found for an address. Written without a lock: `address` is cleared first and set last, and a reader
/// that sees a mixture is at worst wrong in the way described above.
struct Found {
    address: AtomicU64,
    device: AtomicU64,
    found_ns: AtomicU64,
}

static FOUND: [Found; REMEMBERED] = [const {
    Found {
        address: AtomicU64::new(0),
        device: AtomicU64::new(0),
        found_ns: AtomicU64::new(0),
    }
}; REMEMBERED];

/// The device (as `st_dev`) of the file mapped at `address`; `None` if none is.
pub(crate) fn device_at(address: usize) -> Option<u64> {
    let place = &FOUND[(address >> 12) % REMEMBERED];
    let now_ns = sys::now_ns();
    let fresh = now_ns.saturating_sub(place.found_ns.load(Relaxed)) < FRESH_NS;
    if fresh && place.address.load(Relaxed) == address as u64 {
        return Some(place.device.load(Relaxed)).filter(|&device| device != 0);
    }
    let device = maps::file_at(address).ok()??.device;
    place.address.store(0, Relaxed);
    place.device.store(device, Relaxed);
    place.found_ns.store(now_ns, Relaxed);
    place.address.store(address as u64, Relaxed);
    Some(device)
}
