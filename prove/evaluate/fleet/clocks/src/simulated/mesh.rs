//! A mesh of hosts that all talk with each other, which averages out the asymmetry of each pair's ways.

use luc_fleet_clocks::{ClockError, FitOptions, FleetClocks, HostEvent, HostId, HostPair, fit};
use luc_stats::seeded_random;
use rand::RngExt as _;
use serde::Serialize;

use super::clock::{Clock, MAX_CURVATURE};
use super::network::{Delays, Ways, record, thinned};

pub(super) const NAME: &str = "mesh of 20 hosts";
const HOSTS: usize = 20;
const SECONDS: f64 = 20.0;
const PER_S: f64 = 200.0;
/// Range of each way's minimum delay, ns: half the difference of two has an rms of 1.4 us.
const LEAST: std::ops::Range<f64> = 10_000.0..16_860.0;
/// Number of moments looked at in each run.
const MOMENTS: usize = 400;

#[derive(Serialize)]
pub(super) struct MeshRun {
    /// The rms error of a pair's own fit, over all pairs and moments, ns.
    pub(super) pair_rms_ns: f64,
    /// The rms error of the difference of two hosts placed in the mesh, ns.
    pub(super) mesh_rms_ns: f64,
    /// Mean half-widths of a host's bounds: by its pair with the reference alone, and in the mesh.
    pub(super) pair_half_width_ns: f64,
    pub(super) mesh_half_width_ns: f64,
    pub(super) inside: usize,
    pub(super) events: usize,
}

pub(super) fn run(seed: u64) -> Result<MeshRun, ClockError> {
    // 1. Relate each two hosts' clocks by messages between them.
    let mut random = seeded_random::stream(seed, 1);
    let mut clocks = Vec::with_capacity(HOSTS);
    for _ in 0..HOSTS {
        let rate = random.random_range(-30_000.0..30_000.0);
        clocks.push(Clock::new(&mut random, SECONDS, rate));
    }
    let options = FitOptions {
        // Both clocks of a pair bend, and by one's time a little more than by the other's.
        kappa_ns_per_s2: 2.1 * MAX_CURVATURE,
        timestamp_error_ns: 1.0,
        ..FitOptions::default()
    };
    let mut pairs = Vec::new();
    for (a, clock_a) in clocks.iter().enumerate() {
        for (b, clock_b) in clocks.iter().enumerate().skip(a + 1) {
            let [there, back] = [(); 2].map(|()| Delays {
                least: random.random_range(LEAST),
                queue: 5e3,
                slow_share: 0.1,
                slow: 10e3,
            });
            let read: [&dyn Fn(f64) -> i64; 2] = [&|at| clock_a.read(at), &|at| clock_b.read(at)];
            let points = record(&mut random, (SECONDS, PER_S), Ways { there, back }, read)?;
            let fit = fit(&thinned(&points), &options)?;
            pairs.push(HostPair { a: id(a), b: id(b), fit });
        }
    }
    // 2. Compare the mesh, and each pair alone, with the truth.
    let fleet = FleetClocks::new(id(0), pairs.clone())?;
    let (mut of_pairs, mut of_mesh) = (Squares::default(), Squares::default());
    let (mut pair_width, mut mesh_width) = (0.0, 0.0);
    let mut inside = 0;
    for _ in 0..MOMENTS {
        // Without the ends, where a fit has messages on one side only.
        let at = random.random_range(0.5e9..(SECONDS - 0.5) * 1e9);
        let mut wrong = Vec::with_capacity(HOSTS);
        for (host, clock) in clocks.iter().enumerate() {
            let event = HostEvent { host: id(host), at_ns: clock.read(at) };
            let (placed, truth) = (fleet.global_ns(event)?, clocks[0].read(at));
            // Both clocks show whole ns.
            let mut near = [-1, 0, 1].into_iter();
            inside += usize::from(near.any(|off| placed.bounds.contains(truth + off)));
            wrong.push(placed.at_ns.map_or(f64::INFINITY, |placed| (placed - truth) as f64));
            if host > 0 {
                mesh_width += placed.bounds.half_width_ns().unwrap_or(f64::INFINITY);
            }
        }
        for pair in &pairs {
            let (a, b) = (pair.a.0 as usize, pair.b.0 as usize);
            let known = pair.fit.at(clocks[a].read(at));
            let truth = clocks[a].until(&clocks[b], at);
            let origin = clocks[a].origin_until(&clocks[b]);
            let offset = known.offset_ns;
            let offset = offset.map_or(f64::INFINITY, |offset| (offset - origin) as f64);
            of_pairs.add(offset - truth);
            of_mesh.add(wrong[b] - wrong[a]);
            if a == 0 {
                pair_width += known.bounds.half_width_ns().unwrap_or(f64::INFINITY);
            }
        }
    }
    let widths = (MOMENTS * (HOSTS - 1)) as f64;
    Ok(MeshRun {
        pair_rms_ns: of_pairs.root_mean(),
        mesh_rms_ns: of_mesh.root_mean(),
        pair_half_width_ns: pair_width / widths,
        mesh_half_width_ns: mesh_width / widths,
        inside,
        events: MOMENTS * HOSTS,
    })
}

fn id(host: usize) -> HostId {
    HostId(host as u32)
}

#[derive(Default)]
struct Squares {
    sum: f64,
    count: f64,
}

impl Squares {
    fn add(&mut self, value: f64) {
        self.sum += value * value;
        self.count += 1.0;
    }

    fn root_mean(&self) -> f64 {
        (self.sum / self.count).sqrt()
    }
}
