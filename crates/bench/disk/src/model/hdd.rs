//! A 7200 rpm hard disk: arm, rotation, zones, read-ahead, and a write-back cache that is destaged in elevator order.
//!
//! Defaults are a 250 GB Seagate Barracuda of the 7200.10 to 7200.12 generations by Seagate's product manuals:
//! - 7200 rpm, 16 MB cache, 3 Gb/s link
//! - average seek: 8.5 ms for reads and 9.5 ms for writes; 1.0 ms from track to track
//! - 125 MB/s sustained at the outer diameter
//!
//! The manuals do not give the full stroke, the inner rate, and the idle time before the cache is destaged. The model
//! assumes 15.9 ms, about half the outer rate, and 10 ms.
//!
//! Simplified: mechanical work is done in order of arrival, so queued reads are not reordered. Tracks have no head
//! switches and no skew.

use serde::{Deserialize, Serialize};

use super::dirty_ranges::DirtyRanges;
use super::seek_curve::SeekCurve;
use super::{DiskRequest, DiskRequestKind, LatencyModel};

/// Zones of constant track length from the outer to the inner edge.
const ZONES: u64 = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HddParameters {
    /// Size of the whole drive. An emulated disk that is smaller is a partition at its outer
    /// edge, with short seeks; give its own size here to spread it over the whole stroke.
    pub capacity_bytes: u64,
    pub rpm: u64,
    /// Seek to the next track, nanoseconds.
    pub track_to_track_ns: u64,
    /// Seek between random positions on average, for reads, nanoseconds.
    pub average_seek_ns: u64,
    /// Seek from edge to edge, nanoseconds.
    pub full_stroke_ns: u64,
    /// Additional settle time of the arm before a write, nanoseconds.
    pub write_settle_ns: u64,
    /// Bytes per second under the head at the outer edge.
    pub outer_bytes_per_second: u64,
    /// Bytes per second under the head at the inner edge.
    pub inner_bytes_per_second: u64,
    pub link_bytes_per_second: u64,
    /// Time of each command in the drive's electronics, nanoseconds.
    pub overhead_ns: u64,
    /// Size of the volatile write cache; 0 turns it off.
    pub cache_bytes: u64,
    /// Idle time after which the drive starts to destage the cache, nanoseconds.
    pub destage_after_ns: u64,
}

impl Default for HddParameters {
    fn default() -> Self {
        Self {
            capacity_bytes: 250_000_000_000,
            rpm: 7_200,
            track_to_track_ns: 1_000_000,
            average_seek_ns: 8_500_000,
            full_stroke_ns: 15_900_000,
            write_settle_ns: 1_000_000,
            outer_bytes_per_second: 125_000_000,
            inner_bytes_per_second: 60_000_000,
            link_bytes_per_second: 300_000_000,
            overhead_ns: 100_000,
            cache_bytes: 16 << 20,
            destage_after_ns: 10_000_000,
        }
    }
}

impl HddParameters {
    /// Checks the parameters. The error names an invalid one and a valid value.
    pub(super) fn check(&self) -> Result<(), String> {
        let rates = [
            ("rpm", self.rpm),
            ("outer_bytes_per_second", self.outer_bytes_per_second),
            ("inner_bytes_per_second", self.inner_bytes_per_second),
            ("link_bytes_per_second", self.link_bytes_per_second),
        ];
        if let Some((name, _)) = rates.iter().find(|(_, rate)| !(1..1 << 40).contains(rate)) {
            return Err(format!("{name} is out of range: choose from 1 to 2^40"));
        }
        if self.track_bytes(ZONES - 1).min(self.track_bytes(0)) < 4096 {
            return Err("a track is shorter than 4096 bytes: raise the rates or lower rpm".into());
        }
        match self.curve() {
            Some(_) => Ok(()),
            None => Err("average_seek_ns must lie between 1/3 and 8/15 of the way from \
                         track_to_track_ns to full_stroke_ns: correct one of them"
                .into()),
        }
    }

    fn curve(&self) -> Option<SeekCurve> {
        SeekCurve::fit(self.track_to_track_ns, self.average_seek_ns, self.full_stroke_ns)
    }

    fn revolution_ns(&self) -> u64 {
        60_000_000_000 / self.rpm
    }

    /// Returns bytes under the head in a revolution, in whole sectors.
    fn track_bytes(&self, zone: u64) -> u64 {
        let (outer, inner) = (self.outer_bytes_per_second, self.inner_bytes_per_second);
        let rate = (outer * (ZONES - 1 - zone) + inner * zone) / (ZONES - 1);
        let bytes = u128::from(rate) * u128::from(self.revolution_ns()) / 1_000_000_000;
        bytes as u64 / 512 * 512
    }
}

/// Data that the head reads ahead into its buffer after a read.
#[derive(Debug, Clone, Copy)]
struct ReadAhead {
    from_bytes: u64,
    since_ns: u64,
}

/// State of the model of a hard disk.
#[derive(Debug)]
pub(super) struct HddModel {
    parameters: HddParameters,
    curve: SeekCurve,
    capacity_bytes: u64,
    revolution_ns: u64,
    /// Position of the head: the byte it read or wrote last.
    head_bytes: u64,
    /// Time at which the mechanics are free.
    free_ns: u64,
    /// Time at which the link is free.
    link_free_ns: u64,
    read_ahead: Option<ReadAhead>,
    dirty: DirtyRanges,
    /// Arrival time of the last request.
    last_ns: u64,
}

impl HddModel {
    /// Returns a drive whose parameters have been checked, at least `size_bytes` large.
    pub(super) fn new(parameters: HddParameters, size_bytes: u64) -> Self {
        let curve = parameters.curve().or_else(|| HddParameters::default().curve());
        Self {
            // The default's curve exists, as a test shows; an arm that does not move is no less
            // than the truth for parameters that `check` refuses.
            curve: curve.unwrap_or_else(SeekCurve::still),
            capacity_bytes: parameters.capacity_bytes.max(size_bytes).max(1),
            revolution_ns: parameters.revolution_ns(),
            parameters,
            head_bytes: 0,
            free_ns: 0,
            link_free_ns: 0,
            read_ahead: None,
            dirty: DirtyRanges::default(),
            last_ns: 0,
        }
    }

    fn zone(&self, offset: u64) -> u64 {
        (u128::from(offset) * u128::from(ZONES) / u128::from(self.capacity_bytes))
            .min(u128::from(ZONES - 1)) as u64
    }

    /// Returns bytes per track around `offset`, and how far into its track that is.
    fn track(&self, offset: u64) -> (u64, u64) {
        let zone = self.zone(offset);
        let start = zone * (self.capacity_bytes / ZONES);
        let bytes = self.parameters.track_bytes(zone).max(512);
        (bytes, offset.saturating_sub(start) % bytes)
    }

    fn media_ns(&self, offset: u64, len: u64) -> u64 {
        let (track_bytes, _) = self.track(offset);
        (u128::from(len) * u128::from(self.revolution_ns) / u128::from(track_bytes)) as u64
    }

    /// Moves, waits for the sector to come round, transfers. When that is done.
    fn access(&mut self, start_ns: u64, offset: u64, len: u64, is_write: bool) -> u64 {
        self.read_ahead = None;
        let (track_bytes, into_track) = self.track(offset);
        let same_track = self.head_bytes.abs_diff(offset) < track_bytes;
        let distance = self.head_bytes.abs_diff(offset) as f64 / self.capacity_bytes as f64;
        let mut at_ns = start_ns.max(self.free_ns);
        if !same_track {
            at_ns += self.curve.time_ns(distance);
            at_ns += if is_write { self.parameters.write_settle_ns } else { 0 };
        }
        let angle_ns = (u128::from(into_track) * u128::from(self.revolution_ns)
            / u128::from(track_bytes)) as u64;
        let wait_ns =
            (angle_ns + self.revolution_ns - at_ns % self.revolution_ns) % self.revolution_ns;
        // The next sector is still under the head; rounding must not cost a revolution.
        let is_next = offset == self.head_bytes && at_ns == self.free_ns;
        at_ns += if is_next { 0 } else { wait_ns };
        at_ns += self.media_ns(offset, len);
        self.head_bytes = offset + len;
        self.free_ns = at_ns;
        at_ns
    }

    /// Simulates what the drive did by itself until now. It destages after some idle time, and at once while more than
    /// half of the cache is dirty.
    fn catch_up(&mut self, now_ns: u64) {
        let idle_ns = self.last_ns.max(self.free_ns) + self.parameters.destage_after_ns;
        loop {
            let hurries = self.dirty.bytes() > self.parameters.cache_bytes / 2;
            let begin_ns = if hurries { self.last_ns } else { idle_ns };
            if self.dirty.is_empty() || self.free_ns.max(begin_ns) >= now_ns {
                break;
            }
            self.destage_one(begin_ns);
        }
        self.last_ns = now_ns;
    }

    /// Destages the next dirty range, at most one track of it.
    fn destage_one(&mut self, start_ns: u64) {
        let (track_bytes, _) = self.track(self.head_bytes);
        if let Some((offset, len)) = self.dirty.pop_next(self.head_bytes, track_bytes) {
            self.access(start_ns, offset, len, true);
        }
    }

    /// Returns when `len` bytes have crossed the link, starting at `start_ns`.
    fn link(&mut self, start_ns: u64, len: u64) -> u64 {
        let rate = self.parameters.link_bytes_per_second;
        let transfer_ns = (u128::from(len) * 1_000_000_000 / u128::from(rate)) as u64;
        let start_ns = start_ns.max(self.link_free_ns);
        self.link_free_ns = start_ns + self.parameters.overhead_ns + transfer_ns;
        self.link_free_ns
    }

    fn read(&mut self, now_ns: u64, offset: u64, len: u64) -> u64 {
        let linked_ns = self.link(now_ns, len);
        if self.dirty.covers(offset, len) {
            return linked_ns;
        }
        if let Some(ahead) = self.read_ahead {
            // Further ahead than it has got by now plus a track, a new seek is quicker.
            let (track_bytes, _) = self.track(offset);
            let got_ns =
                self.media_ns(ahead.from_bytes, (offset + len).saturating_sub(ahead.from_bytes));
            let in_reach = offset >= ahead.from_bytes
                && ahead.since_ns + got_ns <= now_ns + self.revolution_ns
                && offset - ahead.from_bytes <= self.read_ahead_bytes().max(track_bytes);
            if in_reach {
                let buffered_ns = ahead.since_ns + got_ns;
                let from_bytes = offset + len;
                self.head_bytes = from_bytes;
                self.free_ns = self.free_ns.max(buffered_ns);
                self.read_ahead = Some(ReadAhead { from_bytes, since_ns: buffered_ns });
                return linked_ns.max(buffered_ns);
            }
        }
        let done_ns = self.access(now_ns, offset, len, false);
        self.read_ahead = Some(ReadAhead { from_bytes: offset + len, since_ns: done_ns });
        linked_ns.max(done_ns + self.parameters.overhead_ns)
    }

    fn write(&mut self, now_ns: u64, offset: u64, len: u64) -> u64 {
        let linked_ns = self.link(now_ns, len);
        if len > self.parameters.cache_bytes {
            return linked_ns.max(self.access(now_ns, offset, len, true));
        }
        let mut room_ns = now_ns;
        while self.dirty.bytes() + len > self.parameters.cache_bytes {
            self.destage_one(now_ns);
            room_ns = self.free_ns;
        }
        self.dirty.insert(offset, len);
        linked_ns.max(room_ns)
    }

    fn flush(&mut self, now_ns: u64) -> u64 {
        while !self.dirty.is_empty() {
            self.destage_one(now_ns);
        }
        now_ns.max(self.free_ns) + self.parameters.overhead_ns
    }

    /// Returns a buffer's segment for one stream of reads.
    fn read_ahead_bytes(&self) -> u64 {
        self.parameters.cache_bytes / 8
    }
}

impl LatencyModel for HddModel {
    fn complete_at_ns(&mut self, now_ns: u64, request: DiskRequest) -> u64 {
        self.catch_up(now_ns);
        match request.kind {
            DiskRequestKind::Read => self.read(now_ns, request.offset_bytes, request.len_bytes),
            DiskRequestKind::Write => self.write(now_ns, request.offset_bytes, request.len_bytes),
            DiskRequestKind::Flush => self.flush(now_ns),
            // Hard disks of this age have no TRIM: only a command is spent.
            DiskRequestKind::Discard => self.link(now_ns, 0),
        }
    }
}

#[cfg(test)]
mod tests;
