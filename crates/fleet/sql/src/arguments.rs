//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use luc_fleet::Source;

/// Ask the traces of several hosts in SQL, in one process or on a cluster
#[derive(Debug, Parser)]
#[command(
    name = "luc-fleet-sql",
    bin_name = "luc-fleet-sql",
    version,
    max_term_width = 100,
    after_help = "\
luc fleet sql and luc fleet serve run this program.

Examples:
  luc fleet sql --tables
  luc fleet sql \"select host, count(*) from wait group by host\" web.trace db.trace"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Sql(Sql),
    #[cfg(feature = "cluster")]
    Serve(crate::serve::Serve),
    #[cfg(feature = "manual")]
    Completions(crate::manual::Completions),
    #[cfg(feature = "manual")]
    Man(crate::manual::Man),
}

/// Ask the tables of all hosts in SQL
///
/// Each table of a trace is one table over all hosts, with a column host. Tables in the schema fleet have what was found
/// in all traces together: fleet.edge, fleet.request and fleet.path. subtree(ID) has the request of this id and all that
/// were made for it, critical_path(ID) the parts of its critical path, and blame(ID) who had how much of it; blame() adds up
/// all requests. global_ns(host, ns) is a time of a host on the clock of the first one. Queries only ask: nothing is
/// changed. Needs no privileges.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("format").args(["json", "csv"])),
    after_long_help = "\
Examples:
  luc fleet sql --tables
  luc fleet sql \"select host, cause, count(*) as waits, sum(on_ns - off_ns) / 1000000 as ms
      from wait group by host, cause order by ms desc, host, cause limit 10\" web.trace db.trace
  luc fleet sql \"select * from fleet.request where number <= 5 order by number\" web.trace db.trace
  luc fleet sql \"select * from subtree(4711) order by pre\" web.trace db.trace      # all that was made for this request
  luc fleet sql \"select host, name, part, cause, time_ns from blame(4711) order by time_ns desc\" web.trace db.trace
  luc fleet sql \"select b.* from fleet.request a join fleet.request b on a.root = b.root
      and b.pre between a.pre and a.last where a.number = 1 order by b.pre\" web.trace db.trace      # of the slowest one
  luc fleet sql --csv \"select global_ns(host, at_ns) as ns, host, bytes from message order by ns, host, bytes\" \\
      web.trace db.trace > messages.csv
  luc fleet sql --cluster df://head:50050 --shared /nfs/tmp \"select count(*) from packet\" /nfs/traces/*

Sums of whole numbers are the same however they are added up; sums of floating-point numbers are not. Rows have no
order without ORDER BY.

Exit status: 0; 2 if the query or a trace is wrong; 130 after Ctrl-C."
)]
pub(crate) struct Sql {
    /// The query: one SELECT, in the SQL of Apache DataFusion
    #[arg(value_name = "QUERY", required_unless_present = "tables")]
    pub(crate) query: Option<String>,

    /// Directories of traces, one of each host. NAME=DIR gives the host a name; else it has the one in the trace
    #[arg(value_name = "DIR", required_unless_present = "tables")]
    pub(crate) sources: Vec<Source>,

    /// Only list all tables and columns, with what they mean
    #[arg(long, conflicts_with_all = ["query", "sources", "csv"])]
    pub(crate) tables: bool,

    /// Print an array of objects
    #[arg(long)]
    pub(crate) json: bool,

    /// Print comma-separated values
    #[arg(long)]
    pub(crate) csv: bool,

    /// How much memory sorts, joins and groups may use, like 2GiB; beyond that they use files where temporary files are.
    /// Executors of a cluster have their own limit [default: half of what is available]
    #[arg(long, value_name = "SIZE", value_parser = luc_units::parse_size_bytes)]
    pub(crate) memory: Option<u64>,

    /// Have a cluster answer, whose scheduler is there, like df://head:50050 (luc fleet serve). Its executors read the
    /// traces under the same paths
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "URL")]
    pub(crate) cluster: Option<luc_fleet_sql::cluster::Address>,

    /// Where tables in the schema fleet are written for a cluster's executors [default: where temporary files are]
    #[arg(long, value_name = "DIR")]
    pub(crate) shared: Option<PathBuf>,
}
