//! `luc oci-profile`: a profile of system calls, by which containers get the gate.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use luc_service::containers::profile_file::{self, WrittenProfile};

/// Make a seccomp profile that brings the fsyncs of containers into common journal commits
///
/// The profile has the rules of the runtime's default one, or of FILE, but fsync and fdatasync are notified. The
/// container's runtime hands the filter to lucd at /run/luc/oci.sock. lucd lets each call continue, on an ext4
/// journal together with those of other containers and services. Parts of FILE that luc does not know are kept.
///
/// That profile has to allow the calls, and must notify of none yet. The runtime has to know the flag
/// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV. Without the flag, a signal restarts a held call. luc checks both first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc oci-profile -o /etc/containers/luc.json       # of what Podman has by default
  systemctl enable --now lucd.socket                # first: without it no container starts
  podman run --security-opt seccomp=/etc/containers/luc.json ...
  luc status                                        # which containers are reached

  luc oci-profile --runtime runc default.json -o luc.json   # of a file, for a runtime
  luc oci-profile -o /var/lib/kubelet/seccomp/luc.json      # Kubernetes: localhostProfile

Exit status: 0, or 2 if there is no profile, with the reason; then no file is written.")]
pub(crate) struct Args {
    /// Profile to change; without, /etc/containers/seccomp.json or /usr/share/containers/seccomp.json
    #[arg(value_name = "FILE")]
    profile: Option<PathBuf>,

    /// Container runtime to check: podman, crun, runc, or a path [default: those that are installed]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,

    /// Write the profile to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print as JSON which profile was made, and from which profile
    #[arg(long, requires = "output")]
    json: bool,
}

pub(crate) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let made = profile_file::make(args.profile.as_deref(), args.runtime.as_deref())?;
    let Some(path) = &args.output else {
        println!("{:#}", made.profile);
        return Ok(ExitCode::SUCCESS);
    };
    profile_file::write(&made.profile, path)?;
    if args.json {
        luc_cli::print_json(&made)?;
    } else {
        print!("{}", text(&made, path));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(made: &WrittenProfile, path: &Path) -> String {
    let mut text = String::new();
    // Writes to a String cannot fail.
    let _ = writeln!(
        text,
        "{}: as {}, but {} are notified to lucd at {}",
        path.display(),
        made.of.display(),
        made.calls.join(" and "),
        made.socket
    );
    for runtime in &made.runtimes {
        let _ = match &runtime.lacks {
            None => writeln!(text, "  {} can", runtime.version),
            Some(what) => {
                writeln!(text, "  note: {} cannot: it does not know {what}", runtime.version)
            }
        };
    }
    if made.runtimes.is_empty() {
        text.push_str(
            "  note: neither crun nor runc is here, so no runtime was asked whether it can\n",
        );
    }
    let _ = writeln!(text, "  note: {}", luc_notify::INTERRUPTS);
    text.push_str(
        "  a container with it starts only while lucd.socket listens: `systemctl enable --now lucd.socket`\n",
    );
    text
}
