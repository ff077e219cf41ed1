use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use luc_fleet::{FleetError, ProgramSpan as NamedSpan, ThreadName, TraceArgument, read_spans};
use luc_fleet_rings::{LogTime, PullFrom, TimeWindow};

/// The version, in packages with the commit.
const VERSION: &str = match option_env!("LUC_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Put the traces of several hosts together: clocks, messages, requests
#[derive(Debug, Parser)]
#[command(
    name = "luc-fleet",
    bin_name = "luc-fleet",
    version = VERSION,
    max_term_width = 100,
    after_help = "\
Record on each host at the same time, then copy the directories to one place:
  luc record --fleet --duration 30s --out web.trace        # on the first host (root)
  luc record --fleet --duration 30s --out db.trace         # on the second
  luc-fleet explain web.trace db.trace"
)]
pub(crate) struct FleetCli {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    Fit(FitArgs),
    Explain(ExplainArgs),
    Why(WhyArgs),
    Counters(CountersArgs),
    Report(FleetReportArgs),
    Pull(PullArgs),
    Freeze(FreezeArgs),
    Watch(WatchArgs),
    Window(WindowStreamArgs),
    /// Copy a ring's segments to an object store (luc-fleet-store)
    ///
    /// luc-fleet-store is a separate program, which reaches object stores. This command runs the one beside
    /// luc-fleet, else the one on the PATH, with the same arguments. `luc fleet push --help` is its help.
    #[command(disable_help_flag = true, after_help = STORE_EXAMPLES)]
    Push(ForwardedArgs),
    /// List the hosts whose segments are in an object store (luc-fleet-store)
    ///
    /// This command runs luc-fleet-store, as `luc fleet push` does. `luc fleet stored --help` is its help.
    #[command(disable_help_flag = true, after_help = STORE_EXAMPLES)]
    Stored(ForwardedArgs),
    Export(ExportArgs),
    #[cfg(feature = "manual")]
    Completions(crate::manual::CompletionsArgs),
    #[cfg(feature = "manual")]
    Man(crate::manual::ManArgs),
}

const STORE_EXAMPLES: &str = "\
Examples:
  luc-fleet push /var/lib/luc/ring s3://traces/rings --every 5m
  luc-fleet stored s3://traces/rings

Exit status: that of luc-fleet-store; 2 if it is not installed.";

/// Arguments for another program.
#[derive(Debug, Args)]
pub(crate) struct ForwardedArgs {
    /// Arguments of that program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

/// Traces to read, and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Trace of each host, made by luc record --fleet; NAME=DIR gives the host a name
    ///
    /// Without a name the host has the one in its trace. DIR may also be a ring, made by luc record --ring.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) sources: Vec<TraceArgument>,

    #[command(flatten)]
    pub(crate) span: WindowArgs,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Window of time to read from rings.
#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    /// Begin of the window to read from rings, like 2026-01-31T23:59:59.5Z or seconds since 1970
    ///
    /// Rings are made by luc record --ring. Segments that overlap the window are read whole.
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    from: Option<LogTime>,

    /// End of the window to read from rings
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    to: Option<LogTime>,

    /// Middle of the window to read from rings
    #[arg(long, value_name = "TIME")]
    around: Option<LogTime>,

    /// Length of the window, with --around
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "20s", requires = "around")]
    span: u64,
}

impl WindowArgs {
    /// Returns `None` if no option of the window was given.
    pub(crate) fn window(&self) -> Option<TimeWindow> {
        TimeWindow::asked(self.from, self.to, self.around, self.span)
    }

    /// Returns all time if no option of the window was given.
    pub(crate) fn window_or_all(&self) -> TimeWindow {
        self.window().unwrap_or(TimeWindow::ALL)
    }
}

/// Files with the programs' own names of requests.
#[derive(Debug, Args)]
pub(crate) struct SpanFileArgs {
    /// Spans of instrumented programs, which name their requests; may be given several times
    ///
    /// FILE is OTLP in JSON, as the file exporter of an OpenTelemetry collector writes it. It may also be an answer
    /// of Tempo or Jaeger.
    #[arg(long = "spans", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl SpanFileArgs {
    pub(crate) fn read(&self) -> Result<Vec<NamedSpan>, FleetError> {
        let mut spans = Vec::new();
        for file in &self.files {
            let found = read_spans(file)?;
            if let Some(left_out) = found.left_out {
                eprintln!("luc-fleet: {left_out}");
            }
            spans.extend(found.spans);
        }
        Ok(spans)
    }
}

/// Write the results as Parquet files for DuckDB, Spark and other engines
///
/// The directory has the tables host, clock, edge, request, call, path and finding. schema.md says what their columns
/// mean. The scripts duckdb.sql and spark.sql give names to these files. They also name the files of the traces
/// (trace_wait, trace_message, ...), which stay where they are. The scripts define the views subtree and blame. Views
/// like trace_wait_global have times on the first host's clock. views.sql has the views alone.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet export --out tables web.trace db.trace
  duckdb -init tables/duckdb.sql -c \"select host, cause, count(*) as waits, sum(on_ns - off_ns) / 1e6 as ms
      from trace_wait group by host, cause order by ms desc limit 10\"
  duckdb -init tables/duckdb.sql -c \"select * from blame where request = (select id from request where number = 1)
      order by time_ns desc\"                          # who had how much of the slowest request
  duckdb -init tables/duckdb.sql -c \"select * from subtree where top = 4711 order by pre\"  # all that was made for it
  spark-sql -i tables/spark.sql -e 'select count(*) from trace_packet'

Exit status: 0; 2 if a trace cannot be read or the directory is there already. Then nothing is left.")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) common: TraceArgs,

    /// Directory to make
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// A ring, and the window to take from it.
#[derive(Debug, Args)]
pub(crate) struct RingWindowArgs {
    /// Directory of the ring, made by luc record --ring
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) span: WindowArgs,
}

/// Collect a window of time from the rings of several hosts into one directory
///
/// The directory has one for each host. Each host finds the window by its own clock, as logs show it
/// (CLOCK_REALTIME). A second more on either side is taken, since clocks differ. Segments of a ring are taken whole.
/// From HOST:DIR they come by ssh; luc-fleet must be on the PATH there. From a directory of the same file system they
/// come as hard links. From a host's folder in an object store, luc-fleet-store gets them. The rings are recorded
/// further meanwhile.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet pull web:/var/lib/luc/ring db:/var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --out slow
  luc-fleet pull web=/mnt/web/ring db=/mnt/db/ring --around 1769903999.5 --span 1m --out slow
  luc-fleet pull s3://traces/rings/web s3://traces/rings/db --around 2026-01-31T23:59:59.5Z --out slow
  luc-fleet explain slow/*

Exit status: 0; 2 if a source cannot be read or has nothing of the window; 130 after Ctrl-C. Then nothing is left.")]
pub(crate) struct PullArgs {
    /// Ring to collect from: DIR here, [USER@]HOST:DIR by ssh, or s3://BUCKET/FOLDER/HOST in a store
    ///
    /// DIR is the directory of luc record --ring. An s3:// address is the host's folder that luc fleet push made.
    /// NAME= before SOURCE names its directory in the output.
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<PullFrom>,

    #[command(flatten)]
    pub(crate) span: WindowArgs,

    /// Directory to make
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Keep a window of a ring when the recorder removes its old segments
///
/// The segments get a second name (a hard link) in a directory below DIR/kept. It is named by their begin. Remove it
/// when it is not needed any more. A segment exists some 3 s after its end.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet freeze /var/lib/luc/ring                    # all of it
  luc-fleet freeze /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --span 1m
  luc-fleet freeze /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --called-by 8080

Exit status: 0; 2 if nothing can be kept.")]
pub(crate) struct FreezeArgs {
    #[command(flatten)]
    pub(crate) part: RingWindowArgs,

    /// Also print the addresses on other hosts that the service at this port sent requests to
    ///
    /// Prints one address a line. If the window is kept already, that is then no error. The option may be given
    /// several times.
    #[arg(long, value_name = "PORT")]
    pub(crate) called_by: Vec<u16>,
}

/// Keep a ring's last minute whenever a service becomes slow
///
/// A ring consists of segments of some seconds. For each finished segment, the 99th percentile of each service's
/// request times is compared with earlier ones. If it is more than FACTOR times their median over the last 60
/// segments, the service is slow. The last minute (--span) up to the end of the segment is then kept, as by luc-fleet
/// freeze.
///
/// A segment counts for a service only if at least 50 requests were answered in it. A service is not judged before 6
/// of its segments are known. The command runs until Ctrl-C.
///
/// With --host, other hosts keep the same time of their rings. They are the hosts to which the slow service sent
/// requests, those to which these sent requests, and so on. luc-fleet is run there by ssh, which must ask for no
/// password.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet watch /var/lib/luc/ring
  luc-fleet watch /var/lib/luc/ring --factor 5 --span 2m --most 5
  luc-fleet watch /var/lib/luc/ring --host db:/var/lib/luc/ring --host luc@cache:/var/lib/luc/ring

Exit status: 0; 2 if the ring cannot be listed, or a host has no address.")]
pub(crate) struct WatchArgs {
    /// Directory of the ring, made by luc record --ring
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Ratio of a service's 99th percentile to its usual one above which it is slow
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0)]
    pub(crate) factor: f64,

    /// Length of the window to keep, up to the end of the segment
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "1m")]
    pub(crate) span: u64,

    /// Maximum number of windows to keep in 24 hours
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) most: usize,

    /// Ring of another host, HOST:DIR or USER@HOST:DIR; may be given several times
    ///
    /// The host keeps the same time if the slow service sent it requests. HOST is the address to which other hosts
    /// send them, or a name for it.
    #[arg(long = "host", value_name = "SOURCE")]
    pub(crate) hosts: Vec<PullFrom>,
}

/// Write a window of a ring to standard output, as a tar stream; pull runs this on other hosts
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet window /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --span 1m > web.tar

Exit status: 0; 2 if the ring cannot be read or has nothing of the window.")]
pub(crate) struct WindowStreamArgs {
    #[command(flatten)]
    pub(crate) part: RingWindowArgs,
}

/// Say how the hosts' clocks relate, with guaranteed bounds
///
/// Packets that two hosts exchange bound the offset of their clocks from both sides. The bounds hold if a clock's
/// rate changes by at most 5 us/s each second. That is ample for a crystal. Needs no privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet fit web.trace db.trace
  luc-fleet fit web-1=a/trace web-2=b/trace db=c/trace
  luc-fleet fit web.trace db.trace --json | jq '.pairs[0].offset'

Exit status: 0; 2 if a trace cannot be read.")]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) common: TraceArgs,
}

/// Say why the slowest requests are slow, and what connects the hosts: connections, messages, requests
///
/// Compares the time of the slowest requests with that of usual ones: who computed, and what held whom up, on any
/// host.
///
/// Requests are found by direction and order, without instrumentation. Each call is assigned to the request that it
/// was made for, with the evidence, or counted as not known. Times between hosts have bounds. One trace is enough for
/// what happens on one host. Needs no privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet explain web.trace db.trace
  luc-fleet explain web.trace db.trace --request 2
  luc-fleet explain web.ring db.ring --around 2026-01-31T23:59:59.5Z --span 1m
  luc-fleet explain web.trace db.trace --spans collector.json
  luc-fleet explain web.trace db.trace --json | jq -r '.findings[].findings[0].text'
  luc-fleet explain web.trace db.trace --json | jq '.requests.hand_over'
  luc-fleet explain web.trace db.trace --json | jq '.request.path[] | select(.is_between_hosts)'

Exit status: 0; 2 if a trace cannot be read.")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) common: TraceArgs,

    #[command(flatten)]
    pub(crate) spans: SpanFileArgs,

    /// Number of the request to show; 1 is the slowest
    #[arg(long, value_name = "N")]
    pub(crate) request: Option<usize>,

    /// With --json, also print each edge, each request and each wait for others
    #[arg(long, requires = "json")]
    pub(crate) rows: bool,
}

/// Say why a thread does not run at a time, and on which threads and hosts that depends
///
/// A wait that ends in the trace depends on whoever ended it: on the sender of what the thread then read, or on the
/// thread that woke it. A wait that does not end depends on the thread that has the lock, even if taken before the
/// trace. On a connection, it depends on the thread that used the other end last. Threads that sleep for the whole
/// trace are known as well. Needs no privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet why 4711 web.trace                          # when the trace ends
  luc-fleet why 4711@web --at 2.5s web.trace db.trace
  luc-fleet why pool-1@web --at 2.5s web=a/trace db=b/trace --json

Exit status: 0; 2 if a trace cannot be read, or has no such thread.")]
pub(crate) struct WhyArgs {
    /// Number or name of the thread, and its host; with one trace, the host may be left out
    #[arg(value_name = "THREAD@HOST")]
    pub(crate) who: ThreadName,

    #[command(flatten)]
    pub(crate) common: TraceArgs,

    /// Time since the trace of that host began, like 2.5s or 300ms [default: its end]
    #[arg(long, value_name = "T", value_parser = luc_units::parse_duration_ns)]
    pub(crate) at: Option<u64>,
}

/// Say where a processor's cycles go, and how far its counters may be off
///
/// Reads a trace of luc record --counters, or a file of perf stat. If more events are counted than a processor has
/// counters, they take turns, and their counts are scaled. This command says how far these may be off. If all events
/// of a known processor were counted, it splits the cycles by what they were lost to. The split is for user space and
/// for the kernel. Of a trace it lists processes, too. Needs no privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perf stat -I 100 -x, -o web.csv -a -e $(luc-fleet counters --events amd-zen4) sleep 60
  luc-fleet counters web.csv
  luc record --counters --duration 30s --out web.trace && luc-fleet counters web.trace
  luc-fleet counters web.trace --process nginx
  luc-fleet counters web.csv --every 1s
  luc-fleet counters web.csv --json | jq '.stacks[] | {mode, missing}'

Exit status: 0; 2 if the trace or file cannot be read.")]
pub(crate) struct CountersArgs {
    /// Trace of `luc record --counters`, or output of `perf stat -I` with `-x,` or `-j`
    ///
    /// Without -I, perf writes one reading, and figures have no intervals.
    #[arg(value_name = "TRACE|FILE", required_unless_present = "events")]
    pub(crate) file: Option<PathBuf>,

    /// Name or id of the process of a trace whose counts to show
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) process: Option<String>,

    /// Processor whose formulas to use: intel-icelake, amd-zen4 or arm-neoverse-v1 [default: by the events]
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,

    /// Only print the events that a processor's split needs, for perf stat -e
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "process", "processor", "every", "json"])]
    pub(crate) events: Option<String>,

    /// Also split the cycles of each stretch of this length, like 1s
    #[arg(long, value_name = "T", value_parser = luc_units::parse_duration_ns)]
    pub(crate) every: Option<u64>,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the results as a page for a browser, a Perfetto trace, or spans for OpenTelemetry
///
/// Each FILE appears only when it is complete; `-` is standard output. Needs no privileges.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("format").args(["html", "perfetto", "otlp"]).multiple(true).required(true)),
    after_long_help = "\
Examples:
  luc-fleet report --html fleet.html web.trace db.trace
  luc-fleet report --html slow.html --request 3 web.trace db.trace
  luc-fleet report --perfetto fleet.pftrace web.trace db.trace      # for https://ui.perfetto.dev
  luc-fleet report --otlp slow.json web.trace db.trace
  luc-fleet report --otlp slow.json --spans collector.json web.trace db.trace   # below the programs' own spans
  luc-fleet report --otlp - --request 3 web.trace db.trace | \\
    curl --json @- http://localhost:4318/v1/traces      # to Jaeger, Tempo or a collector

Exit status: 0; 2 if a trace cannot be read or a file not written; 130 after Ctrl-C, with nothing written."
)]
pub(crate) struct FleetReportArgs {
    /// Trace of each host, made by luc record --fleet; NAME=DIR gives the host a name
    ///
    /// Without a name the host has the one in its trace. DIR may also be a ring, made by luc record --ring.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) sources: Vec<TraceArgument>,

    #[command(flatten)]
    pub(crate) span: WindowArgs,

    /// Write one page with the findings, the slowest request across hosts, who calls whom, hosts and clocks
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write all requests, messages and waits, and what a request waited for, as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write the slowest requests with their calls and what they waited for as spans, in the JSON of OTLP
    #[arg(long, value_name = "FILE")]
    pub(crate) otlp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) spans: SpanFileArgs,

    /// Number of the request to show, and to write spans of alone; 1 is the slowest
    #[arg(long, value_name = "N")]
    pub(crate) request: Option<usize>,

    /// Number of the slowest requests that have spans
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) slowest: usize,
}
