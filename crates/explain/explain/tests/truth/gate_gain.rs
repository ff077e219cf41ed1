//! Predicted against obtained gain: the same world with and without a gate.

use luc_events::Dev;

use super::trace_simulation::{JournalParameters, SimulatedOp, SimulatedProgram, TraceSimulation};
use super::{END_NS, SECONDS, explained, program};

const DEV: Dev = Dev(8 << 20 | 1);

#[test]
fn the_predicted_gain_is_the_obtained_one() {
    let mut errors = Vec::new();
    for callers in [1, 2, 3, 4, 8, 16, 32, 64] {
        for think_ns in [0, 1_000_000, 4_000_000] {
            let mut ops = vec![SimulatedOp::Compute(100_000)];
            if think_ns > 0 {
                ops.push(SimulatedOp::Think(think_ns));
            }
            ops.push(SimulatedOp::Fsync { data_ns: 700_000 });
            let programs: [SimulatedProgram; 1] = [program(100, callers, &ops)];
            let (report, truth) = explained(JournalParameters::plain(DEV), &programs, None);
            let gated =
                JournalParameters { gate: callers as usize, ..JournalParameters::plain(DEV) };
            let (_, gated_truth) = TraceSimulation::new(gated, &programs, None).play(END_NS);
            let batching = &report.file_systems[0].batching;
            let measured = truth.syncs as f64 / SECONDS as f64;
            let obtained = gated_truth.syncs as f64 / SECONDS as f64;
            assert!(
                (batching.measured_per_s / measured - 1.0).abs() < 0.02,
                "{batching:?} {measured}"
            );
            // The gate steps aside where it would lose.
            let obtained = obtained.max(measured);
            let error = batching.predicted_per_s / obtained - 1.0;
            assert!(error.abs() < 0.25, "{callers} {think_ns}: {obtained} {batching:?}");
            if (obtained / measured - 1.0).abs() > 0.05 {
                assert!(batching.would_help, "{callers} {think_ns}: {obtained} {batching:?}");
            }
            errors.push(error.abs());
        }
    }
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    println!("mean error {mean:.3}, worst {worst:.3}");
    assert!(mean < 0.10, "mean error {mean}: {errors:?}");
}
