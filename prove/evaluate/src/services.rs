//! Part `services`: unchanged programs of the distribution, run as their users would: without luc, by `luc run`, and by
//! `luc run --reach notify`; and most of them in a guest, with `luc.ko`.
//!
//! Each has a script beside this file. It makes instances on an emulated disk, starts them, and drives eight clients for
//! a fixed amount of work. Then it reads back what was acknowledged, and stops them. It fails if a log has an error.
//! `catalogue` has the services, `runs` makes a run, and `guest` those in a guest.

mod catalogue;
pub(super) mod guest;
mod runs;

use luc_stats::random;
use rand::seq::SliceRandom as _;
use serde_json::json;

use crate::error::EvaluateError;
use crate::harness::{Harness, elements};
use crate::progress::Progress;
use crate::runs::Runs;

use catalogue::{SERVICES, Service};
use runs::{Stage, Way};

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(10);
    let wanted: Vec<&'static Service> =
        SERVICES.iter().filter(|service| harness.options.wants(service.name)).collect();
    harness.keep_processors_awake()?;
    harness.let_others_pass()?;
    let runs_of = |service: &Service| Way::of(service).len() * repeats + 1;
    let steps = wanted.iter().map(|service| runs_of(service)).sum();
    let mut progress = Progress::new(harness.part, steps);
    let kept = Runs::open(harness);
    for service in wanted {
        compare(harness, &kept, service, repeats, &mut progress)?;
    }
    Ok(())
}

/// Makes the runs of a service, each way once in each repeat in random order, and one recorded run.
fn compare(
    harness: &Harness,
    kept: &Runs<'_>,
    service: &'static Service,
    repeats: usize,
    progress: &mut Progress,
) -> Result<(), EvaluateError> {
    let work = runs::work(harness, service);
    let mut stage = None;
    for repeat in 0..repeats {
        let mut ways = Way::of(service).to_vec();
        ways.shuffle(&mut random::stream(harness.options.seed, repeat as u64));
        for way in ways {
            let key = json!({ "service": service.name, "way": way.name(), "repeat": repeat,
                              "work": work });
            let result = kept.get(&key, || on(&mut stage, harness, service)?.undisturbed(way))?;
            for _ in elements(&result["disturbed"]) {
                harness.count_disturbed();
            }
            progress.step(&format!("{}, {}: {} s", service.name, way.name(), result["seconds"]));
        }
    }
    let key = json!({ "service": service.name, "recorded": true, "work": work });
    kept.get(&key, || on(&mut stage, harness, service)?.recorded())?;
    progress.step(&format!("{}, recorded", service.name));
    Ok(())
}

/// Returns the service on its disk, which is made when the first run needs it. An evaluation that continues an
/// interrupted one may need none.
fn on<'s, 'a>(
    stage: &'s mut Option<Stage<'a>>,
    harness: &'a Harness,
    service: &'static Service,
) -> Result<&'s Stage<'a>, EvaluateError> {
    match stage {
        Some(stage) => Ok(stage),
        None => Ok(stage.insert(Stage::prepare(harness, service)?)),
    }
}
