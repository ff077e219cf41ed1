//! One file per subcommand: arguments in, a library call, text or JSON out.

use std::path::PathBuf;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};

#[cfg(feature = "sweep")]
pub(crate) mod advise;
pub(crate) mod bench;
#[cfg(feature = "manual")]
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod disk;
#[cfg(feature = "report")]
pub(crate) mod explain;
pub(crate) mod faults;
pub(crate) mod fleet;
pub(crate) mod kernel;
#[cfg(feature = "top")]
mod live_view;
#[cfg(feature = "manual")]
pub(crate) mod man;
#[cfg(feature = "service")]
pub(crate) mod oci_profile;
pub(crate) mod powercut;
pub(crate) mod record;
pub(crate) mod recording_selection;
#[cfg(feature = "report")]
pub(crate) mod report;
pub(crate) mod run;
#[cfg(feature = "service")]
pub(crate) mod service;
#[cfg(feature = "sweep")]
pub(crate) mod sweep;
mod threads_named;
#[cfg(feature = "throttle")]
pub(crate) mod throttle;
#[cfg(feature = "top")]
pub(crate) mod top;

/// Path of this program, for the processes of it that a command starts.
fn own_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the luc binary: reinstall it")
}

/// A progress bar, drawn on terminals only.
fn progress_bar(length: u64, template: &str) -> ProgressBar {
    styled(ProgressBar::new(length), template)
}

/// Gives a bar the look of a template.
fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Exit status of a command that SIGINT or SIGTERM ended early: 128 + SIGINT, as the shell says it.
pub(crate) const INTERRUPTED: u8 = 130;
