//! Start, end and truth file of every process of the service.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use luc_twin_truth::{Header, Planted, Role, Row, Truth, VERSION, write};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::error::TwinError;
use crate::log::Log;
use crate::network;

/// Line of a process that has a network namespace of its own, without links.
pub(crate) const SAYS_NETWORK: &str = "network";
/// Line of a process that serves.
pub(crate) const SAYS_READY: &str = "ready";

/// Options of every process.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ProcessOptions {
    /// The name of the host, and of the file of truth
    #[arg(long)]
    pub host: String,
    /// The folder for the file of truth
    #[arg(long, value_name = "DIR")]
    pub truth: PathBuf,
    /// Rows of truth that each thread has room for
    #[arg(long, default_value_t = DEFAULT_ROWS)]
    pub rows: usize,
    /// End when this process has ended
    #[arg(long, hide = true)]
    pub parent: Option<u32>,
    /// Make a network namespace, say so, and go on when a line comes on the standard input
    #[arg(long, hide = true)]
    pub own_network: bool,
}

/// Rows of truth for which each thread has room by default.
pub const DEFAULT_ROWS: usize = 16_384;

impl ProcessOptions {
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            "--host".into(),
            self.host.clone().into(),
            "--truth".into(),
            self.truth.clone().into(),
            "--rows".into(),
            self.rows.to_string().into(),
        ];
        if let Some(parent) = self.parent {
            arguments.extend(["--parent".into(), parent.to_string().into()]);
        }
        if self.own_network {
            arguments.push("--own-network".into());
        }
        arguments
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    options: ProcessOptions,
    role: Role,
    seed: u64,
    pub(crate) log: Arc<Log>,
}

impl Process {
    /// Must be called by the first thread, before there are others.
    pub(crate) fn begin(
        options: &ProcessOptions,
        role: Role,
        seed: u64,
    ) -> Result<Self, TwinError> {
        options.parent.map_or(Ok(()), end_with)?;
        if options.own_network {
            network::enter_new()?;
            say(SAYS_NETWORK)?;
            if !has_line("waiting for the network")? {
                return Err(lost_run());
            }
        }
        Ok(Self { options: options.clone(), role, seed, log: Log::new(options.rows) })
    }

    /// Says that it serves, and returns when a line comes on the standard input.
    ///
    /// Without a run the end of the input ends it, too. When a run is killed, the input ends before this process is
    /// killed. A truth written then would be cut off.
    pub(crate) fn serve(&self) -> Result<(), TwinError> {
        say(SAYS_READY)?;
        let has_line = has_line("reading the standard input")?;
        if has_line || self.options.parent.is_none() {
            return Ok(());
        }
        Err(lost_run())
    }

    pub(crate) fn end(&self, planted: &[Planted]) -> Result<(), TwinError> {
        let (mut rows, dropped_rows) = self.log.take()?;
        rows.extend(planted.iter().copied().map(Row::Planted));
        let namespace = "/proc/self/ns/net";
        let namespace = std::fs::metadata(namespace).map_err(TwinError::file(namespace))?;
        let header = Header {
            version: VERSION,
            role: self.role,
            host: self.options.host.clone(),
            process: std::process::id(),
            namespace: namespace.ino(),
            seed: self.seed,
            options: std::env::args().skip(1).collect(),
            dropped_rows,
        };
        let path = self.options.truth.join(&self.options.host);
        let path = path.with_extension("jsonl");
        write(&path, &Truth { header, rows }).map_err(TwinError::file(&path))?;
        if dropped_rows > 0 {
            return Err(TwinError::Option {
                what: format!("--rows {}", self.options.rows),
                why: format!("{dropped_rows} rows found no place; give more, or ask less"),
            });
        }
        Ok(())
    }
}

/// Makes this process end when its parent does.
pub(crate) fn end_with(parent: u32) -> Result<(), TwinError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(TwinError::system("asking for the parent's end"))?;
    // It may have ended before it could be asked for.
    let now = getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
    if now == Some(parent) {
        return Ok(());
    }
    Err(lost_run())
}

/// Waits for a line on the standard input; `false` if it ends.
fn has_line(what: &str) -> Result<bool, TwinError> {
    let mut line = String::new();
    let bytes = io::stdin().lock().read_line(&mut line);
    Ok(bytes.map_err(TwinError::system(what))? > 0)
}

fn lost_run() -> TwinError {
    TwinError::Ended { name: "the run".into(), status: "a signal".into() }
}

fn say(line: &str) -> Result<(), TwinError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(TwinError::system("writing to the standard output"))
}
