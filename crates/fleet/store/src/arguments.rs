//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use luc_fleet_rings::{Moment, Window};

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
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Push(Push),
    Stored(Stored),
    Window(Send),
}

/// Put what a ring has into an object store, as far as it is not there
///
/// URL is s3://BUCKET/FOLDER or file:///FOLDER. Each segment is one object, FOLDER/HOST/SEGMENT.BEGIN-END.tar, which
/// appears when it is complete. How long objects stay is for the store to say, by a rule for the bucket.
///
/// Of S3 the key, the secret, the region and a server other than Amazon's are in the variables AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL; AWS_ALLOW_HTTP=true allows http. On Amazon's own machines their
/// role is taken.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc fleet push /var/lib/luc/ring s3://traces/rings                # what is there now
  luc fleet push /var/lib/luc/ring s3://traces/rings --every 5m     # until Ctrl-C
  luc fleet push /var/lib/luc/ring/kept/20260131T235950Z file:///mnt/traces

Exit status: 0; 2 if the ring or the store cannot be used; 130 after Ctrl-C. What is there then stays.")]
pub(crate) struct Push {
    /// The directory of luc record --ring, or of luc fleet freeze
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Where it goes
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) span: Span,

    /// The folder's name [default: that of the host in the ring]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,

    /// Look again so often what is new, and go on when the store cannot be reached for a while
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns)]
    pub(crate) every: Option<u64>,
}

/// List which hosts an object store has segments of, and of which time
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc fleet stored s3://traces/rings
  luc fleet stored s3://traces/rings --json | jq '.[].host'

Exit status: 0; 2 if the store cannot be used.")]
pub(crate) struct Stored {
    /// Where luc fleet push put them
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Print an array of objects
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write what an object store has of a host and a time to standard output, as a tar stream: the other end of pull
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc-fleet-store window s3://traces/rings/web --around 2026-01-31T23:59:59.5Z --span 1m > web.tar

Exit status: 0; 2 if the store cannot be used or has nothing of the window.")]
pub(crate) struct Send {
    /// The folder of a host
    #[arg(value_name = "URL/HOST")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) span: Span,
}

/// Of which time segments are wanted.
#[derive(Debug, Args)]
pub(crate) struct Span {
    /// Only what is from this time on, like 2026-01-31T23:59:59.5Z, or seconds since 1970; whole segments
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    from: Option<Moment>,

    /// Only what is up to this time
    #[arg(long, value_name = "TIME", conflicts_with = "around")]
    to: Option<Moment>,

    /// Only what is around this time
    #[arg(long, value_name = "TIME")]
    around: Option<Moment>,

    /// With --around: how long the window is
    #[arg(long, value_name = "TIME", value_parser = luc_units::parse_duration_ns, default_value = "20s", requires = "around")]
    span: u64,
}

impl Span {
    /// All, if none was asked for.
    pub(crate) fn window(&self) -> Window {
        Window::asked(self.from, self.to, self.around, self.span).unwrap_or(Window::ALL)
    }
}
