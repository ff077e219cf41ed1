//! `luc record --ring`: keeps the last minutes only.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use luc_events::ring::RingLimits;
use luc_probe::{Recorder, RecorderOptions, RingOptions, RingSink};
use luc_units::{parse_duration_ns, parse_size_bytes};

/// Minimum length of a segment: segments end some seconds after their time.
const MIN_SEGMENT_NS: u64 = 5_000_000_000;
/// Maximum number of segments: the files of a table can then be open all at once.
const MAX_SEGMENTS: u64 = 720;
/// Minimum size of a ring: all segments of a small machine fit in.
const MIN_RING_BYTES: u64 = 16 << 20;

/// Options of a ring.
#[derive(Debug, clap::Args)]
// By itself a group has the name of its structure, and two of a command may not have the same.
#[group(id = "Ring")]
pub(crate) struct Args {
    /// Keep only the last TIME, such as 10m
    ///
    /// The directory then has a trace for every 10 s. Traces older than TIME are removed. After the recorder was killed,
    /// the same command goes on with it.
    #[arg(long, value_name = "TIME", requires = "fleet", requires = "out")]
    ring: Option<String>,

    /// Maximum size of a ring; beyond it the oldest traces are removed before their time
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "ring")]
    ring_size: String,

    /// Length of each trace of a ring
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "ring")]
    segment: String,
}

impl Args {
    /// `None`: no ring is wanted.
    pub(crate) fn options(&self) -> anyhow::Result<Option<RingOptions>> {
        let Some(ring) = &self.ring else {
            return Ok(None);
        };
        let keep_ns = parse_duration_ns(ring)?;
        let segment_ns = parse_duration_ns(&self.segment)?;
        let keep_bytes = parse_size_bytes(&self.ring_size)?;
        if segment_ns < MIN_SEGMENT_NS {
            bail!("--segment {}: give 5s or more", self.segment);
        }
        if keep_ns < segment_ns {
            bail!(
                "--ring {ring}: it is shorter than a segment of {}; give a longer one",
                self.segment
            );
        }
        if keep_ns / segment_ns > MAX_SEGMENTS {
            bail!(
                "--ring {ring}: these are more than {MAX_SEGMENTS} segments; give a longer --segment"
            );
        }
        if keep_bytes < MIN_RING_BYTES {
            bail!("--ring-size {}: give 16M or more", self.ring_size);
        }
        Ok(Some(RingOptions {
            limits: RingLimits { keep_ns, keep_bytes },
            segment: Duration::from_nanos(segment_ns),
        }))
    }
}

/// Begins to record into a ring, and reports files that a killed recorder had left.
pub(crate) fn start(
    options: RecorderOptions,
    out: &Path,
    ring: RingOptions,
    quiet: bool,
) -> anyhow::Result<Recorder> {
    let mut torn = Vec::new();
    let recorder = Recorder::start(options, |trace| {
        let (sink, names) = RingSink::create(out, ring, trace)?;
        torn = names;
        Ok(sink)
    })?;
    if !quiet {
        for name in torn {
            eprintln!(
                "luc: {}: {name} is removed: it is not complete, as after a kill or a power cut",
                out.display()
            );
        }
    }
    Ok(recorder)
}
