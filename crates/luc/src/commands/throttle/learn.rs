//! `luc throttle learn`: what a disk costs to share.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use luc_throttle::learn_disk::disk_profile::{DIRECTORY, DiskProfile};
use luc_throttle::learn_disk::measure_sharing::measure;
use luc_throttle::learn_disk::measurement_plan::MeasurementPlan;
use luc_throttle::{CgroupHierarchy, ThrottleError};
use luc_units::number_formats::{FormattedSize, FormattedTime};
use luc_units::{format_size, parse_duration_ns, plain};

use crate::commands::{INTERRUPTED, own_path, progress_bar};

/// Measure what a disk costs to share, for run, daemon and advise (root)
///
/// 1 to 8 probes of `luc bench ranking` read together, each a cold file of its own. One probe alone reads at random.
/// Their losses give the costs of a switch and of a random read. They also give the number of streams worth running
/// together, and the paper's Vector Points.
///
/// The files are made on the file system of the path, which needs four times their space free. They are removed
/// afterwards.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle learn --dry-run /dev/sda
  luc throttle learn /srv
  luc throttle learn --for 2m --json /srv

Exit status: 0; 2 if it cannot be measured; 130 after Ctrl-C.")]
pub(super) struct Args {
    /// A disk with a mounted file system, such as /dev/sda, or a folder on it
    #[arg(value_name = "DEVICE_OR_PATH")]
    target: PathBuf,

    /// Measure for TIME; making the files takes more
    #[arg(long = "for", value_name = "TIME", default_value = "40s", value_parser = parse_duration_ns)]
    measuring: u64,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Print what was learned as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    CgroupHierarchy::find()?;
    let plan = MeasurementPlan::new(&args.target, args.measuring)?;
    let said = format!(
        "luc throttle: {} by files in {}: writes {}, reads at most {}, for {} and the time to write",
        plan.disk,
        plain(&plan.folder.to_string_lossy()),
        format_size(plan.written_bytes()),
        format_size(plan.read_bytes()),
        FormattedTime(plan.measuring_ns as f64)
    );
    if args.dry_run {
        println!("{said}");
        return Ok(ExitCode::SUCCESS);
    }
    plan.check()?;
    eprintln!("{said}");
    luc_host::interrupt_flag::install()?;
    let luc = own_path()?;
    let bar = progress_bar(100, "measuring {bar:32} {eta} left");
    let learned = measure(&luc, &plan, &mut |part| {
        bar.set_position((100.0 * part) as u64);
    });
    bar.finish_and_clear();
    let learned = match learned {
        Err(error @ ThrottleError::Interrupted) => {
            eprintln!("luc: interrupted: {} was not learned ({error})", plan.disk);
            return Ok(ExitCode::from(INTERRUPTED));
        }
        other => other?,
    };
    let path = learned
        .write()
        .with_context(|| format!("{DIRECTORY} cannot be written: what was learned is lost"))?;
    if args.json {
        luc_cli::print_json(&learned)?;
    } else {
        print(&learned);
        println!("     kept in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn print(learned: &DiskProfile) {
    println!(
        "{}: {}/s, a switch {}, a random read in one file {}",
        plain(&learned.disk.name),
        FormattedSize(learned.peak_bytes_per_s),
        FormattedTime(learned.switch_ns as f64),
        FormattedTime(learned.random_ns as f64)
    );
    println!("{:>8} {:>10} {:>12} {:>6}", "together", "block", "alone", "loss");
    for curve in &learned.curves {
        println!(
            "{:>8} {:>10} {:>10}/s {:>4.0} %",
            curve.tasks,
            FormattedSize(curve.block_bytes as f64).to_string(),
            FormattedSize(curve.demand_bytes_per_s).to_string(),
            100.0 * curve.loss
        );
    }
    for (tasks, worth) in &learned.speed_ups {
        println!("     {tasks} streams together move {worth:.2} of what one does");
    }
    for (tasks, demand) in &learned.vector_points {
        if *demand > 0.0 {
            println!("     {tasks} tasks bear {}/s each (Vector Point)", FormattedSize(*demand));
        } else {
            println!("     {tasks} tasks bear none of these demands (Vector Point)");
        }
    }
}
