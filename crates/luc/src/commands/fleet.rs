//! `luc fleet`: hands over to `luc-fleet`, which reads the traces of several hosts.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// The program beside `luc` or on the PATH.
const PROGRAM: &str = "luc-fleet";

/// Put the traces of several hosts together: clocks, messages, requests (luc-fleet)
///
/// luc-fleet is a program of its own; this command runs the one beside luc, else the one on the PATH, with the same
/// words. `luc fleet explain --help` is its help.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc record --fleet --duration 30s --out web.trace    # on each host, at the same time (root)
  luc fleet fit web.trace db.trace                     # how their clocks relate, with bounds
  luc fleet explain web.trace db.trace                 # messages, requests, the path of the slowest
  luc fleet why 4711@web --at 2.5s web.trace db.trace  # why a thread does not run, and because of whom
  luc fleet counters web.csv                           # where the cycles go, by a file of perf stat
  luc fleet report --html fleet.html web.trace db.trace  # a page; also a Perfetto trace, and OpenTelemetry spans
  luc fleet pull web:/var/lib/luc/ring db:/var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --out slow  # from rings

Exit status: that of luc-fleet; 2 if it is not installed.")]
pub(crate) struct Args {
    /// The words of luc-fleet: fit, explain, why, counters, report, pull, freeze or watch, and what follows
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "WORDS"
    )]
    words: Vec<OsString>,
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let luc = std::env::current_exe().context("cannot find the luc binary: reinstall it")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = find(&luc, std::env::split_paths(&path)) else {
        bail!(
            "{PROGRAM} is neither beside {} nor on the PATH; `make product install` in luc's sources builds and installs \
             it",
            luc.display()
        );
    };
    // It returns only where the program cannot be run.
    let error = Command::new(&program).args(args.words).exec();
    bail!("{}: {error}; reinstall it", program.display())
}

/// The program beside `luc`, else the first on the path.
fn find(luc: &Path, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let beside = luc.with_file_name(PROGRAM);
    let on_path = path
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PROGRAM));
    std::iter::once(beside)
        .chain(on_path)
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_luc_comes_first() {
        let [beside, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let luc = beside.path().join("luc");
        let path = || [PathBuf::from("relative"), other.path().to_owned()].into_iter();
        assert_eq!(find(&luc, path()), None);
        let on_path = other.path().join(PROGRAM);
        std::fs::write(&on_path, "").unwrap();
        assert_eq!(find(&luc, path()), Some(on_path));
        let own = beside.path().join(PROGRAM);
        std::fs::write(&own, "").unwrap();
        assert_eq!(find(&luc, path()), Some(own));
    }
}
