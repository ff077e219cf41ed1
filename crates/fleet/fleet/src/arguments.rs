//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use luc_fleet::{FleetError, Source, Span as NamedSpan, Who, read_spans};
use luc_fleet_rings::{Moment, PullFrom, Window};

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
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(Fit),
    Explain(Explain),
    Why(Why),
    Counters(Counters),
    Report(Report),
    Pull(Pull),
    Freeze(Freeze),
    Watch(Watch),
    Window(Send),
    /// Put what a ring has into an object store (luc-fleet-store)
    ///
    /// luc-fleet-store is a program of its own, which reaches object stores. This command runs the one beside luc-fleet,
    /// else the one on the PATH, with the same words. `luc fleet push --help` is its help.
    #[command(disable_help_flag = true, after_help = STORE_EXAMPLES)]
    Push(Words),
    /// List which hosts an object store has segments of (luc-fleet-store)
    ///
    /// This command runs luc-fleet-store, as `luc fleet push` does. `luc fleet stored --help` is its help.
    #[command(disable_help_flag = true, after_help = STORE_EXAMPLES)]
    Stored(Words),
    Export(Export),
    #[cfg(feature = "manual")]
    Completions(crate::manual::Completions),
    #[cfg(feature = "manual")]
    Man(crate::manual::Man),
}

const STORE_EXAMPLES: &str = "\
Examples:
  luc-fleet push /var/lib/luc/ring s3://traces/rings --every 5m
  luc-fleet stored s3://traces/rings

Exit status: that of luc-fleet-store; 2 if it is not installed.";

/// Words for another program.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The words of that program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

/// Which traces, and how to print.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Directories of traces, as made by luc record --fleet, one of each host. NAME=DIR gives the host a name; else it
    /// has the one in the trace
    #[arg(value_name = "DIR", required = true)]
    pub(crate) sources: Vec<Source>,

    #[command(flatten)]
    pub(crate) span: Span,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of which time a ring is wanted.
#[derive(Debug, Args)]
pub(crate) struct Span {
    /// Of rings (luc record --ring): only what is from this time on, like 2026-01-31T23:59:59.5Z, or seconds since 1970;
    /// whole segments
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    from: Option<Moment>,

    /// Of rings: only what is up to this time
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    to: Option<Moment>,

    /// Of rings: only what is around this time
    #[arg(long, value_name = "TIME")]
    around: Option<Moment>,

    /// With --around: how long the window is
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "20s", requires = "around")]
    span: u64,
}

impl Span {
    /// `None`: none was asked for.
    pub(crate) fn window(&self) -> Option<Window> {
        Window::asked(self.from, self.to, self.around, self.span)
    }

    /// All, if none was asked for.
    pub(crate) fn window_or_all(&self) -> Window {
        self.window().unwrap_or(Window::ALL)
    }
}

/// What programs call their requests.
#[derive(Debug, Args)]
pub(crate) struct Spans {
    /// Spans that instrumented programs wrote of their requests, to name these: OTLP in JSON, as the file exporter of an
    /// OpenTelemetry collector writes it, or answers of Tempo or Jaeger; may be given several times
    #[arg(long = "spans", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Spans {
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

/// Write what was found as Parquet files for DuckDB, Spark and other engines
///
/// The directory has the tables host, clock, edge, request, call, path and finding, schema.md with what their columns mean,
/// and the scripts duckdb.sql and spark.sql. These give names to all files, also to those of the traces (trace_wait,
/// trace_message, ...), which stay where they are, and define views: subtree, blame, and trace_wait_global and the like with
/// times on the first host's clock. views.sql has the views alone.
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
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The directory to make
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// A ring, and of which time.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// The directory of luc record --ring
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) span: Span,
}

/// Collect what the rings of several hosts have of one time, into one directory with a directory for each host
///
/// Each host finds the window by its own clock, as logs show it (CLOCK_REALTIME); a second more on either side is taken,
/// since clocks differ. Segments of a ring are taken whole. From HOST:DIR they come by ssh, where luc-fleet must be on the
/// PATH. From a directory of the same file system they come as hard links. From the folder of a host in an object store
/// luc-fleet-store gets them. The rings go on meanwhile.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet pull web:/var/lib/luc/ring db:/var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --out slow
  luc-fleet pull web=/mnt/web/ring db=/mnt/db/ring --around 1769903999.5 --span 1m --out slow
  luc-fleet pull s3://traces/rings/web s3://traces/rings/db --around 2026-01-31T23:59:59.5Z --out slow
  luc-fleet explain slow/*

Exit status: 0; 2 if a source cannot be read or has nothing of the window; 130 after Ctrl-C. Then nothing is left.")]
pub(crate) struct Pull {
    /// DIR, HOST:DIR or USER@HOST:DIR: the directory of luc record --ring. s3://BUCKET/FOLDER/HOST: where luc fleet push put
    /// it. NAME= before it names its directory
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<PullFrom>,

    #[command(flatten)]
    pub(crate) span: Span,

    /// The directory to make
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Keep what a ring has of a time, however long it goes on
///
/// The segments get a second name (a hard link) below the ring's directory kept, in a directory that is named by their
/// begin. Remove that when it is not needed any more. A segment is there some 3 s after its end.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet freeze /var/lib/luc/ring                    # all of it
  luc-fleet freeze /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --span 1m
  luc-fleet freeze /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --called-by 8080

Exit status: 0; 2 if nothing can be kept.")]
pub(crate) struct Freeze {
    #[command(flatten)]
    pub(crate) part: Part,

    /// Also print the addresses on other hosts that the processes which answer at this port sent requests to, one on a
    /// line. What is kept already is then no error
    #[arg(long, value_name = "PORT")]
    pub(crate) called_by: Vec<u16>,
}

/// Keep what a ring has of the time in which requests became slow, by itself
///
/// Of each segment that the recorder completes, the 99th percentile of the requests of each service is compared with the
/// median of those of up to 60 segments before. When it is FACTOR times that, the segments up to there are kept, as by
/// freeze. Services with fewer than 50 answered requests in a segment are left out, and so is each until 6 segments are
/// known. It ends with Ctrl-C.
///
/// With --host, other hosts keep the same time of their rings, if the slow service asked them, or others that it asked:
/// from host to host, and nobody else. This host's luc-fleet runs luc-fleet there by ssh, which must ask for no password.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet watch /var/lib/luc/ring
  luc-fleet watch /var/lib/luc/ring --factor 5 --span 2m --most 5
  luc-fleet watch /var/lib/luc/ring --host db:/var/lib/luc/ring --host luc@cache:/var/lib/luc/ring

Exit status: 0; 2 if the ring cannot be listed, or a host has no address.")]
pub(crate) struct Watch {
    /// The directory of luc record --ring
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// By how much requests must be slower
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0)]
    pub(crate) factor: f64,

    /// How much is kept, up to the end of the segment in which they are
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "1m")]
    pub(crate) span: u64,

    /// How often at most in 24 hours
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) most: usize,

    /// The ring of another host, which keeps the same time if it was asked: HOST:DIR or USER@HOST:DIR. HOST is what
    /// others ask it as: its address, or a name for it
    #[arg(long = "host", value_name = "SOURCE")]
    pub(crate) hosts: Vec<PullFrom>,
}

/// Write what a ring has of a time to standard output, as a tar stream: the other end of pull
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet window /var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --span 1m > web.tar

Exit status: 0; 2 if the ring cannot be read or has nothing of the window.")]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) part: Part,
}

/// Say how the hosts' clocks relate, with guaranteed bounds
///
/// Packets that two hosts exchange bound the offset of their clocks from both sides. The bounds hold if a clock's rate
/// changes by at most 5 us/s each second, which is ample for a crystal. Needs no privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet fit web.trace db.trace
  luc-fleet fit web-1=a/trace web-2=b/trace db=c/trace
  luc-fleet fit web.trace db.trace --json | jq '.pairs[0].offset'

Exit status: 0; 2 if a trace cannot be read.")]
pub(crate) struct Fit {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Say why the slowest requests are slow, and what connects the hosts: connections, messages, requests
///
/// What the slowest requests' time went into is compared with that of usual ones: who computed, what held whom up, on
/// whatever host.
///
/// Requests are found by direction and order, without instrumentation. What a host sends is put to the request that it
/// was made for, with the evidence; what is not known is said. Times between hosts have bounds. One trace is enough
/// for what happens on one host. Needs no privileges.
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
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) spans: Spans,

    /// Show the request of this number: 1 is the slowest
    #[arg(long, value_name = "N")]
    pub(crate) request: Option<usize>,

    /// With --json, also print each edge, each request and each wait for others
    #[arg(long, requires = "json")]
    pub(crate) rows: bool,
}

/// Say why a thread does not run at a time, and whom that depends on, from thread to thread and host to host
///
/// A wait that ends in the trace depends on whoever ended it: on the sender of what the thread then read, or on the
/// thread that woke it. One that does not end depends on who has the lock, also where it was taken before the trace, or on
/// who used the other end of the connection last. Threads that sleep for the whole trace are known as well. Needs no
/// privileges.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet why 4711 web.trace                          # when the trace ends
  luc-fleet why 4711@web --at 2.5s web.trace db.trace
  luc-fleet why pool-1@web --at 2.5s web=a/trace db=b/trace --json

Exit status: 0; 2 if a trace cannot be read, or has no such thread.")]
pub(crate) struct Why {
    /// The thread's number or name, and its host, which may be left out where there is one trace
    #[arg(value_name = "THREAD@HOST")]
    pub(crate) who: Who,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The time after the trace of that host began, like 2.5s or 300ms [default: its end]
    #[arg(long, value_name = "T", value_parser = luc_units::parse_duration_ns)]
    pub(crate) at: Option<u64>,
}

/// Say where a processor's cycles go, and how far its counters are off, by a trace or a file of perf stat
///
/// Where more events are counted than a processor has counters, they take turns, and what is printed is scaled. This
/// command says how far it may be off. Where all events of a known processor were counted, it splits the cycles by what
/// they were lost to, in user space and in the kernel. Of a trace (luc record --counters) it lists processes, too. Needs
/// no privileges.
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
pub(crate) struct Counters {
    /// A trace of `luc record --counters`, or what `perf stat -x,` or `perf stat -j` wrote; with -I, so that there are
    /// intervals
    #[arg(value_name = "TRACE|FILE", required_unless_present = "events")]
    pub(crate) file: Option<PathBuf>,

    /// Of a trace, only what this process counted: its name or id
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) process: Option<String>,

    /// The processor whose formulas to use: intel-icelake, amd-zen4 or arm-neoverse-v1 [default: by the events]
    #[arg(long, value_name = "NAME")]
    pub(crate) processor: Option<String>,

    /// Only print the events that a processor's split needs, for perf stat -e
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "process", "processor", "every", "json"])]
    pub(crate) events: Option<String>,

    /// Also split the cycles of each part of the time, like 1s
    #[arg(long, value_name = "T", value_parser = luc_units::parse_duration_ns)]
    pub(crate) every: Option<u64>,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write what was found as a page for a browser, a Perfetto trace, or spans for OpenTelemetry
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
pub(crate) struct Report {
    /// Directories of traces, as made by luc record --fleet, one of each host. NAME=DIR gives the host a name; else it
    /// has the one in the trace
    #[arg(value_name = "DIR", required = true)]
    pub(crate) sources: Vec<Source>,

    #[command(flatten)]
    pub(crate) span: Span,

    /// Write one page with the findings, the slowest request across hosts, who calls whom, hosts and clocks
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write all requests, messages and waits, and a request's critical path, as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write the slowest requests, all that was made for them and their critical paths as spans, in the JSON of OTLP
    #[arg(long, value_name = "FILE")]
    pub(crate) otlp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) spans: Spans,

    /// Show the request of this number, and write spans of it alone: 1 is the slowest
    #[arg(long, value_name = "N")]
    pub(crate) request: Option<usize>,

    /// How many of the slowest requests have spans
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) slowest: usize,
}
