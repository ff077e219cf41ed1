//! `luc record`: writes what threads, journals and disks do into a trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use luc_host::interrupt_flag;
use luc_launch::{RunCommand, supervise_command};
use luc_probe::{
    CounterList, Recorder, RecorderOptions, RecordingDetail, RecordingFilter, RecordingOutcome,
    StoreSink,
};
use luc_units::parse_duration_ns;

mod ring;

use super::recording_selection::{RecordingSelection, ring_bytes};

/// Interval between two checks for the end of the recording.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Record fsyncs, journal commits, waits and block requests, and who caused them, into a trace (root)
///
/// With a command, luc records that command and everything it starts, until it ends. Without one, it records
/// everything until Ctrl-C or --duration. --pid, --comm, --cgroup and --device narrow this down. Commits, handles,
/// dirty data and block requests are recorded of all processes, because recorded calls may wait for them; --device
/// limits these, too.
///
/// The trace is a directory of Parquet files. It can be read while it is written, and after the recorder was killed.
/// A trace made by root has mode 0700, because it names other users' programs. To hand it on, chown or chmod it, or
/// record into an existing directory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc record -- ./import-mail.sh
  luc record --duration 10s
  luc record --pid 4711 --device /srv/mail --duration 1m --out mail.trace
  luc record --summary --duration 1h
  luc record --fleet --summary --out /var/lib/luc/sums
  luc record --fleet --ring 10m --out /var/lib/luc/ring
  luc record --fleet --tokens --duration 30s --out web.trace
  luc record --fleet --counters --duration 30s --out web.trace
  luc record --counters=page-faults,task-clock -- ./import-mail.sh

Exit status: the command's; without one 0, or 1 if events were lost; 2 if nothing can be recorded here.")]
pub(crate) struct Args {
    /// Directory to write the trace to [default: luc-trace-1, or the next free number]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Count in the kernel and write the counts once a second; waits are counted only if uninterruptible
    ///
    /// With --fleet it also counts how long requests on TCP connections took, by service and peer, each 10 s. System
    /// calls are not traced then, as with --no-calls. So it is cheap enough to run always.
    #[arg(long)]
    summary: bool,

    /// Record messages on TCP connections and unix sockets, packets and the clocks, too
    ///
    /// luc fleet needs these to put the traces of several hosts together. Connections and packets are recorded of all
    /// processes. A brief wait that a thread ended has a row of its own and is in no sum.
    #[arg(long)]
    fleet: bool,

    /// With --fleet, record a hash of each request's name: its traceparent's trace id, or its X-Request-Id
    ///
    /// luc looks for names in the bytes of HTTP/1 messages, not in TLS. They tell best which request a call was made
    /// for.
    #[arg(long, requires = "fleet", conflicts_with = "summary")]
    tokens: bool,

    /// With --fleet, record what goes through pipes and FIFOs, too
    ///
    /// Each system call of the machine is traced for that, which makes all of them slower.
    #[arg(long, requires = "fleet", conflicts_with = "summary")]
    pipes: bool,

    /// Count events of the processors in recorded threads [default:
    /// {cycles:u,instructions:u},{cycles:k,instructions:k}]
    ///
    /// Events have names of `perf list`, separated by commas. Add :u or :k for user space or the kernel. Events in
    /// braces are counted at the same time.
    #[arg(
        long,
        value_name = "EVENTS",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "summary"
    )]
    counters: Option<Option<CounterList>>,

    #[command(flatten)]
    ring: ring::Args,

    /// With a command: record all processes, not only the command's
    #[arg(long, short, requires = "command")]
    all: bool,

    #[command(flatten)]
    selection: RecordingSelection,

    /// Stop after TIME, such as 10s or 5m
    #[arg(long, value_name = "TIME", conflicts_with = "command")]
    duration: Option<String>,

    /// Do not trace system calls: cheaper, but the table `call` stays empty, and syncs are recorded on ext4 only
    #[arg(long)]
    no_calls: bool,

    /// Size of the buffer between kernel and recorder: a power of two from 64k to 2G
    #[arg(long, value_name = "SIZE", default_value = "32M")]
    buffer: String,

    /// Print no report
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let duration_ns = args.duration.as_deref().map(parse_duration_ns).transpose()?;
    let options = options(&args)?;
    let ring = args.ring.options()?;
    let command = resolve(&args.command)?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => free_name()?,
    };
    // What cannot be listed is no ring.
    if ring.is_none() && luc_events::ring::names(&out).is_ok_and(|names| !names.is_empty()) {
        bail!("{}: it is a ring; give --ring, or another directory", out.display());
    }
    let guard = interrupt_flag::SignalGuard::install()?;
    let recorder = match ring {
        Some(ring) => ring::start(options, &out, ring, args.quiet)?,
        None => Recorder::start(options, |trace| StoreSink::create(&out, trace))?,
    };
    // It took a while to load.
    let began = Instant::now();
    if !args.quiet {
        // A command's threads are still to come.
        let without_thread = args.selection.without_thread().filter(|_| command.is_none());
        let notes = args.selection.without_journal().into_iter().chain(without_thread);
        for line in recorder.missing.iter().cloned().chain(notes) {
            eprintln!("luc: {line}");
        }
    }
    let ending = match &command {
        Some(command) => Some(
            supervise_command::start(command, supervise_command::StartConditions::default())
                .and_then(|started| started.wait(None)),
        ),
        None => {
            let deadline = duration_ns.map(|ns| began + Duration::from_nanos(ns));
            wait(&recorder, deadline);
            None
        }
    };
    let recorded = began.elapsed();
    let outcome = recorder.stop()?;
    drop(guard);
    if !args.quiet {
        report(&out, recorded, &outcome);
        eprintln!(
            "luc: next: luc {}explain {}",
            if args.fleet { "fleet " } else { "" },
            out.display()
        );
    }
    Ok(match ending {
        Some(ending) => ExitCode::from(ending?.ending.exit_status()),
        None if outcome.lost.is_empty() => ExitCode::SUCCESS,
        None => ExitCode::from(1),
    })
}

fn options(args: &Args) -> anyhow::Result<RecorderOptions> {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(RecorderOptions {
        mode: if args.summary { RecordingDetail::Summary } else { RecordingDetail::Events },
        filter: RecordingFilter {
            children: !args.command.is_empty() && !args.all,
            ..args.selection.filter()?
        },
        calls: !args.no_calls,
        network: args.fleet,
        tokens: args.tokens,
        pipes: args.pipes,
        counters: args.counters.clone().map(Option::unwrap_or_default),
        ring_bytes: ring_bytes(&args.buffer)?,
        command: command.join(" "),
    })
}

fn resolve(command: &[OsString]) -> anyhow::Result<Option<RunCommand>> {
    if command.is_empty() {
        return Ok(None);
    }
    Ok(Some(RunCommand::resolve(command, false)?))
}

/// The first of luc-trace-1, luc-trace-2, ... that does not exist.
fn free_name() -> anyhow::Result<PathBuf> {
    let free = (1..10_000)
        .map(|number| PathBuf::from(format!("luc-trace-{number}")))
        .find(|path| !path.exists());
    match free {
        Some(path) => Ok(path),
        None => bail!("there are 9999 traces here: remove some, or give --out"),
    }
}

/// Waits for a signal, the deadline, or the recorder's failure.
fn wait(recorder: &Recorder, deadline: Option<Instant>) {
    while !interrupt_flag::interrupted() && !recorder.has_failed() {
        let left = deadline
            .map_or(CHECK_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(CHECK_INTERVAL));
    }
}

fn report(out: &Path, elapsed: Duration, outcome: &RecordingOutcome) {
    let rows: Vec<String> =
        outcome.rows.iter().map(|(table, count)| format!("{count} {table}")).collect();
    eprintln!(
        "luc: {:.1} s recorded in {}: {}",
        elapsed.as_secs_f64(),
        out.display(),
        rows.join(", ")
    );
    if !outcome.lost.is_empty() {
        let lost: Vec<String> =
            outcome.lost.iter().map(|(place, count)| format!("{count} {place}")).collect();
        let missed: u64 = outcome.missed.values().sum();
        let lost_rows: u64 = outcome.lost.values().sum();
        let advice = match missed {
            0 => "a larger --buffer or a filter would keep them".to_owned(),
            _ if missed == lost_rows => {
                "the kernel skipped a program that was active already".to_owned()
            }
            _ => format!(
                "a larger --buffer or a filter would keep them but for {missed}, where the kernel skipped a program"
            ),
        };
        eprintln!("luc: lost: {}; {advice}", lost.join(", "));
    }
}
