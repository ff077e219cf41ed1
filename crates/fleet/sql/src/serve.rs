//! `serve`: the servers of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use luc_fleet_sql::SqlError;
use luc_fleet_sql::cluster::{Address, Executor, Scheduler};

/// Serve queries on many machines: one scheduler and any number of executors
///
/// They are Ballista's, with the tables and functions of luc-fleet. They ask nobody for a password and encrypt nothing:
/// whoever reaches them reads what their user may read. So they listen on the loopback address unless told otherwise; use
/// them in a network of your own.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  luc fleet serve scheduler                                          # on the loopback address
  luc fleet serve executor --scheduler df://127.0.0.1:50050
  luc fleet serve scheduler --bind 10.0.0.1:50050                    # for other machines
  luc fleet serve executor --scheduler df://10.0.0.1:50050 --bind 10.0.0.2:50051

Exit status: 0 after a signal; 2 if it cannot serve.")]
pub(crate) struct Serve {
    #[command(subcommand)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum Server {
    Scheduler(SchedulerArgs),
    Executor(ExecutorArgs),
}

/// Plan queries and give their parts to executors
#[derive(Debug, Args)]
struct SchedulerArgs {
    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,

    /// The name by which executors and clients reach it [default: the address where it listens]
    #[arg(long, value_name = "NAME")]
    external_host: Option<String>,
}

/// Read traces and compute parts of queries
#[derive(Debug, Args)]
struct ExecutorArgs {
    /// Its scheduler
    #[arg(long, value_name = "URL", default_value = "df://127.0.0.1:50050")]
    scheduler: Address,

    /// Where it listens, for others that ask for rows. It gets its tasks on the next port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50051")]
    bind: SocketAddr,

    /// The port on which it gets its tasks [default: the one after that of --bind]
    #[arg(long, value_name = "PORT")]
    task_port: Option<u16>,

    /// The name by which others reach it [default: the address where it listens]
    #[arg(long, value_name = "NAME")]
    external_host: Option<String>,

    /// How many tasks it does at once [default: one on each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    tasks: Option<u16>,

    /// How much memory its tasks may use, like 2GiB [default: half of what is available]
    #[arg(long, value_name = "SIZE", value_parser = luc_units::parse_size_bytes)]
    memory: Option<u64>,

    /// Where it keeps rows that others ask for, in a directory of its own [default: where temporary files are]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Serves until a signal or an error ends it.
pub(crate) async fn run(serve: Serve) -> Result<(), SqlError> {
    match serve.server {
        Server::Scheduler(args) => {
            let scheduler = Scheduler { bind: args.bind, external_host: args.external_host };
            // An executor sees to signals itself, and first ends its tasks.
            tokio::select! {
                served = scheduler.run() => served,
                ended = crate::ended() => ended,
            }
        }
        Server::Executor(args) => {
            let next = args.bind.port().checked_add(1);
            let executor = Executor {
                scheduler: args.scheduler,
                bind: args.bind,
                task_port: args.task_port.or(next).unwrap_or_default(),
                external_host: args.external_host,
                tasks: args.tasks.map(usize::from),
                memory_bytes: crate::memory(args.memory),
                directory: args.directory,
            };
            executor.run().await
        }
    }
}
