//! The runs of a part: each service with stock and the other settings, in guests that are booted one after another.

use std::path::Path;
use std::time::Duration;

use luc_vm::GuestTime;
use serde_json::{Value, json};

use super::super::catalogue::Way;
use super::inside::{Comparison, GuestSetting, Inside};
use super::system::System;
use crate::error::EvaluateError;
use crate::guests::{self, Guests, succeed};
use crate::harness::{Harness, missing};
use crate::progress::Progress;
use crate::reports::summary;
use crate::runs::Runs;

/// Name of the disk in the guest.
const DEVICE: &str = "lagdisk0";
/// Memory of the guest, which for a moment holds the system twice, and the disk.
const MEMORY_MIB: u32 = 6144;
/// Timeout of a boot and a run.
const BOOT_TIMEOUT: Duration = Duration::from_secs(1200);
/// Delay of a run's begin relative to that of the seed before, µs. It is no multiple of a tick.
const START_SHIFT_US: usize = 1300;
/// Folder of `luc run` in the guest, where the packages' system sees it, too.
const LUC_FOLDER: &str = "/root/luc";
const LUC_FILES: [&str; 2] = ["luc", "libluc_gate_preload.so"];

/// Makes all runs of a part.
pub(super) fn measure(
    harness: &Harness,
    guests: &Guests,
    comparison: &Comparison,
) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let kept = Runs::open(harness);
    let wanted = comparison
        .services
        .iter()
        .filter(|inside| harness.options.wants(&inside.title()))
        .map(|inside| Ok((inside, comparison.settings(inside)?)))
        .collect::<Result<Vec<_>, EvaluateError>>()?;
    let boots: usize = wanted.iter().map(|(_, settings)| settings.len()).sum();
    let mut progress = Progress::new(harness.part, boots * repeats);
    for (inside, settings) in wanted {
        compare(
            harness,
            guests,
            &kept,
            (inside, &settings, &inside.packages(comparison.more)?),
            repeats,
            &mut progress,
        )?;
    }
    Ok(())
}

/// Makes the runs of a service that needs these packages, with each of these settings.
fn compare(
    harness: &Harness,
    guests: &Guests,
    kept: &Runs<'_>,
    (inside, settings, packages): (&Inside, &[GuestSetting], &[&str]),
    repeats: usize,
    progress: &mut Progress,
) -> Result<(), EvaluateError> {
    // They are made when the first run needs them.
    let mut system: Option<System<'_>> = None;
    for repeat in 0..repeats {
        let mut image = None;
        for setting in settings {
            let key = json!({
                "service": inside.title(), "setting": setting.name(), "repeat": repeat, "work": inside.work()?,
            });
            let result = kept.get(&key, || {
                let system = match &mut system {
                    Some(system) => system,
                    None => system.insert(System::of(harness, packages)?),
                };
                let image = match &mut image {
                    Some(image) => image,
                    None => image.insert(system.image(repeat)?),
                };
                boot(harness, guests, image, inside, *setting, repeat)
            })?;
            progress.step(&format!(
                "{}, {}: {} s",
                inside.title(),
                setting.name(),
                result["seconds"]
            ));
        }
    }
    Ok(())
}

/// Boots a guest with this system and runs the service once.
fn boot(
    harness: &Harness,
    guests: &Guests,
    system: &Path,
    inside: &Inside,
    setting: GuestSetting,
    repeat: usize,
) -> Result<Value, EvaluateError> {
    let service = inside.service()?;
    let (script, text) = service.script;
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .mode(GuestTime::VirtualTime { shift: 0, processors: 1 })
        .memory_mib(MEMORY_MIB)
        .file("/root/system.img", system);
    let vm = service
        .shared
        .iter()
        .fold(vm, |vm, (name, text)| vm.content(format!("/root/{name}"), *text))
        .content(format!("/root/{script}"), text)
        .variable("SCRIPT", script)
        .variable("MODULE", setting.module())
        .variable("REACH", setting.way().map_or("", Way::name))
        .variable("NAP_US", &(1 + repeat * START_SHIFT_US).to_string())
        .variable("SERVICE_WORK", &inside.work()?.to_string())
        .variable("SERVICE_INSTANCES", &service.instances.to_string())
        .variable("SERVICE_SEED", &harness.options.seed.to_string());
    let vm = if service.think_ms > 0 {
        vm.variable("SERVICE_THINK_MS", &service.think_ms.to_string())
    } else {
        vm
    };
    // The others' guests lack them, so that their runs are the same whatever is built.
    let vm = match setting.way() {
        Some(_) => LUC_FILES.iter().fold(vm, |vm, name| {
            let path = harness.luc_path().with_file_name(name);
            vm.file(format!("{LUC_FOLDER}/{name}"), path)
        }),
        None => vm,
    }
    .script(include_str!("../guest.sh"));
    let outcome = succeed(&vm, &inside.title())?;
    let figure = |name: &str| -> Result<f64, EvaluateError> {
        guests::file(&outcome, name)?.trim().parse().map_err(|_| missing(name))
    };
    let reports = outcome
        .files
        .iter()
        .filter(|(name, _)| name.starts_with("luc-") && name.ends_with(".json"))
        .map(|(name, bytes)| serde_json::from_slice(bytes).map_err(|_| missing(name)))
        .collect::<Result<Vec<Value>, _>>()?;
    Ok(json!({
        "seconds": figure("phase")? / 1e6, "flushes": figure("flushes")?,
        "journal": guests::file(&outcome, "journal")?.lines().next(),
        "holds": if setting == GuestSetting::Kernel { Some(figure("holds")?) } else { None },
        "state": outcome.file("state").map(|state| state.trim().to_owned()),
        "luc": setting.way().map(|_| summary(&reports, DEVICE)), "release": guests.release(),
        "wall_s": outcome.wall.as_secs(),
    }))
}
