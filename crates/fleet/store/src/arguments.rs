use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use luc_fleet_rings::{LogTime, TimeWindow};

/// Keep segments of rings in an object store, and get windows of them back
#[derive(Debug, Parser)]
#[command(
    name = "luc-fleet-store",
    bin_name = "luc-fleet-store",
    version,
    max_term_width = 100,
    after_help = "\
luc fleet push, stored and pull run this program.

Examples:
  luc fleet push /var/lib/luc/ring s3://traces/rings --every 5m
  luc fleet stored s3://traces/rings
  luc fleet pull s3://traces/rings/web s3://traces/rings/db --around 2026-01-31T23:59:59.5Z --out slow"
)]
pub(crate) struct StoreCli {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Push(PushArgs),
    Stored(StoredArgs),
    Window(StoreWindowArgs),
}

/// Copy the segments of a ring to an object store, except those that it has already
///
/// URL is s3://BUCKET/FOLDER or file:///FOLDER. Each segment is one object, FOLDER/HOST/SEGMENT.BEGIN-END.tar, which
/// appears when it is complete. This command removes no objects. A rule of the store for the bucket can.
///
/// For S3, set the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION. AWS_ENDPOINT_URL names a server
/// other than Amazon's. AWS_ALLOW_HTTP=true allows http. On Amazon's own machines their role is taken.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc fleet push /var/lib/luc/ring s3://traces/rings                # what is there now
  luc fleet push /var/lib/luc/ring s3://traces/rings --every 5m     # until Ctrl-C
  luc fleet push /var/lib/luc/ring/kept/20260131T235950Z file:///mnt/traces

Exit status: 0; 2 if the ring or the store cannot be used; 130 after Ctrl-C. What is there then stays.")]
pub(crate) struct PushArgs {
    /// Directory of luc record --ring, or of luc fleet freeze
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Folder in the store: s3://BUCKET/FOLDER or file:///FOLDER
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) span: StoreSpanArgs,

    /// Name of the host's folder [default: that of the host in the ring]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,

    /// Time between two copies of what is new, like 5m [default: copy once]
    ///
    /// A store that cannot be reached is tried again at the next time.
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns)]
    pub(crate) every: Option<u64>,
}

/// List the hosts whose segments are in an object store, and their times
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc fleet stored s3://traces/rings
  luc fleet stored s3://traces/rings --json | jq '.[].host'

Exit status: 0; 2 if the store cannot be used.")]
pub(crate) struct StoredArgs {
    /// Folder in the store, as given to luc fleet push
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Print a JSON array of objects
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a window of a host's segments to standard output, as a tar stream; luc-fleet pull runs this
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet-store window s3://traces/rings/web --around 2026-01-31T23:59:59.5Z --span 1m > web.tar

Exit status: 0; 2 if the store cannot be used or has nothing of the window.")]
pub(crate) struct StoreWindowArgs {
    /// Folder of a host in the store
    #[arg(value_name = "URL/HOST")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) span: StoreSpanArgs,
}

/// Window of time whose segments to take.
#[derive(Debug, Args)]
pub(crate) struct StoreSpanArgs {
    /// Begin of the window, like 2026-01-31T23:59:59.5Z or seconds since 1970
    ///
    /// Segments that overlap the window are taken whole.
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    from: Option<LogTime>,

    /// End of the window
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    to: Option<LogTime>,

    /// Middle of the window
    #[arg(long, value_name = "TIME")]
    around: Option<LogTime>,

    /// Length of the window, with --around
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "20s", requires = "around")]
    span: u64,
}

impl StoreSpanArgs {
    /// Returns all time if no option of the window was given.
    pub(crate) fn window(&self) -> TimeWindow {
        TimeWindow::asked(self.from, self.to, self.around, self.span).unwrap_or(TimeWindow::ALL)
    }
}
