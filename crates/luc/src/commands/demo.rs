//! `luc demo`: what luc does, shown in a minute.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use luc_demo::{DemoError, DemoReport, DemoStep, DemoStorage};
use luc_gate::inspect::filesystem::{FileSystemJournal, of_path};

use super::{INTERRUPTED, own_path};

/// Show what luc does, in about a minute
///
/// As root it makes an emulated disk whose flush takes 6 ms. 16 clients create files on it, without the gate and with
/// it. Then it cuts the power under load three times, and checks every file that was reported durable. This needs 512
/// MiB of memory, FUSE, loop devices and e2fsprogs, and no disk of yours.
///
/// Without root, or with --dir, it creates the files on your own disk, and removes them. The file system must be
/// ext4: on others luc run does nothing, and the demo says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo luc demo                  # on an emulated disk, with power cuts
  luc demo --dir /srv            # on your own disk
  sudo luc demo --json >demo.json

Nothing is left behind, also when it is interrupted or killed. The steps are commands that you can give yourself:
  luc disk create demo --model fixed --flush 6ms --write 20us --size 4G --mkfs ext4 \\
    --mkfs-options '-J size=1024' --mount /mnt
  luc run --compare 3 -- luc bench metarates --dir /mnt --threads 16 --seconds 3 --file-size 1k
  luc powercut --rounds 3 --policy auto

Exit status: 0; 1 if a power cut lost something; 2 if the machine lacks something; 130 interrupted.")]
pub(crate) struct Args {
    /// Create the files in DIR, on your own disk, instead of on an emulated one; no power cuts
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Be the process that clears up after the demo of this process number
    #[arg(long, hide = true, value_name = "PID", conflicts_with_all = ["dir", "json"])]
    clear_up_after: Option<u32>,
}

impl Args {
    /// Whether this process is a helper of another.
    pub(crate) fn is_helper(&self) -> bool {
        self.clear_up_after.is_some()
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(process) = args.clear_up_after {
        let parent = || rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
        return match luc_demo::guardian::serve(process) {
            // The demo says it.
            Err(_) if parent() == i32::try_from(process).ok() => Ok(ExitCode::from(2)),
            cleared => Ok(cleared.map(|()| ExitCode::SUCCESS)?),
        };
    }
    let luc = own_path()?;
    let is_json = args.json;
    let (place, without_disk) = place(args.dir)?;
    if let DemoStorage::Own(dir) = &place {
        check_journal(dir)?;
    }
    let mut tell = |step: DemoStep| {
        let title = title(&step);
        // A reader that has seen enough does not end the demo.
        if is_json {
            eprintln!("{title}");
        } else {
            println!("\n{title}\n");
        }
    };
    let report = match luc_demo::run(&luc, crate::VERSION, &place, &mut tell) {
        Err(error @ DemoError::Interrupted) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        // It has said why.
        Err(DemoError::Step { status, .. }) => return Ok(ExitCode::from(status)),
        report => report?,
    };
    if is_json {
        luc_cli::print_json(&report)?;
    } else {
        println!("\n{}", summary(&report));
        if without_disk {
            println!(
                "As root, luc demo adds an emulated disk with a 6 ms flush, and power cuts on it"
            );
        }
    }
    let is_clean = report.cuts().is_none_or(|cuts| cuts.lost + cuts.torn == 0);
    Ok(ExitCode::from(u8::from(!is_clean)))
}

/// The place of the benchmark, and whether it was chosen for want of root.
fn place(dir: Option<PathBuf>) -> anyhow::Result<(DemoStorage, bool)> {
    match dir {
        Some(dir) => Ok((DemoStorage::Own(dir), false)),
        None if rustix::process::geteuid().is_root() => Ok((DemoStorage::Emulated, false)),
        None => {
            let here = std::env::current_dir().context("the current directory cannot be found")?;
            let is_writable =
                |dir: &Path| rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok();
            let home = std::env::home_dir().filter(|_| !is_writable(&here));
            Ok((DemoStorage::Own(home.unwrap_or(here)), true))
        }
    }
}

/// Refuses a place where `luc run` does nothing: figures from there say nothing of it.
fn check_journal(dir: &Path) -> anyhow::Result<()> {
    // What is not there, or not told, is for the demo to say.
    let Ok(found) = of_path(dir) else {
        return Ok(());
    };
    let is = match found.journal {
        FileSystemJournal::NotExt4(kind) => format!("on {}, not ext4", luc_units::plain(&kind)),
        FileSystemJournal::None => "on ext4 without a journal".to_owned(),
        FileSystemJournal::Jbd2
        | FileSystemJournal::Jbd2FastCommit
        | FileSystemJournal::Unknown => return Ok(()),
    };
    bail!(
        "{} is {is}: luc run does nothing here; give --dir a directory on ext4, or run the demo as root without --dir",
        luc_units::plain(&dir.to_string_lossy())
    );
}

fn title(step: &DemoStep) -> String {
    let DemoStep { number, of, title, about_s } = step;
    format!("== {number} of {of}, about {about_s} s: {title}")
}

/// The results, in two lines.
fn summary(report: &DemoReport) -> String {
    let gain = report.gain().map_or_else(
        || "the files created per second are not known".to_owned(),
        |gain| {
            let ends = gain.range_of.map_or("95 %".to_owned(), |runs| format!("range of {runs}"));
            format!(
                "{:.2} times as many files per second with luc ({:.2} to {:.2}, {ends})",
                gain.ratio, gain.low, gain.high
            )
        },
    );
    let cuts = report.cuts().map_or_else(String::new, |cuts| {
        format!(
            "; in {} power cuts {} of {} files that were reported durable were lost, {} torn",
            cuts.rounds, cuts.lost, cuts.acknowledged, cuts.torn
        )
    });
    format!(
        "== Done in {:.0} s: {gain}{cuts}\nNext: `luc run --compare 5 -- COMMAND` with a program of yours; `luc --help`",
        report.elapsed_s
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_summary_has_the_figures_that_there_are() {
        let mut report = DemoReport {
            version: "1".to_owned(),
            disk: None,
            directory: None,
            comparison: json!({"calls_per_s": {"ratio": {"ratio": 1.84, "low": 1.8, "high": 1.9, "range_of": 3}}}),
            powercut: Some(json!({"rounds": 3, "acknowledged": 700, "lost": 0, "torn": 0})),
            elapsed_s: 41.2,
        };
        let text = summary(&report);
        assert!(text.starts_with("== Done in 41 s: 1.84 times as many"), "{text}");
        assert!(text.contains("(1.80 to 1.90, range of 3)"), "{text}");
        assert!(
            text.contains("in 3 power cuts 0 of 700 files") && text.contains("0 torn"),
            "{text}"
        );
        report.powercut = None;
        report.comparison = json!({});
        let text = summary(&report);
        assert!(text.contains("not known") && !text.contains("cuts"), "{text}");
    }
}
