//! The `luc-fleet-sql` command line: parse, dispatch, and turn an outcome into an exit status: 0 done, 2 bad input, 130
//! interrupted.

#[macro_use]
extern crate luc_units;

mod answer;
mod arguments;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "cluster")]
mod serve;

use std::io::{self, BufWriter, Write};
use std::panic;
use std::process::ExitCode;

use arguments::{Cli, Command, Sql};
use luc_fleet_sql::output::Format;
use luc_fleet_sql::{Directory, Options, Session, SqlError, listing};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinError;

/// Where the kernel does not say how much memory is available.
const LITTLE_MEMORY_BYTES: u64 = 1 << 30;
/// The engine takes long queries apart by recursion. Memory is only used where the stack is.
const STACK_BYTES: usize = 1 << 27;

fn main() -> ExitCode {
    let cli: Cli = match luc_cli::parse() {
        Ok(cli) => cli,
        Err(refusal) => return refusal.report(),
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`luc fleet sql ... | head`) is no error.
        Err(SqlError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("luc-fleet-sql: {}", luc_units::plain(&error.to_string()));
            match error {
                SqlError::Interrupted => ExitCode::from(130),
                _ => ExitCode::from(2),
            }
        }
    }
}

fn run(command: Command) -> Result<(), SqlError> {
    match command {
        Command::Sql(args) if args.tables => list(args.json),
        Command::Sql(args) => ask(args),
        #[cfg(feature = "cluster")]
        Command::Serve(args) => serve(args),
        #[cfg(feature = "manual")]
        Command::Completions(args) => Ok(manual::completions(&args)?),
        #[cfg(feature = "manual")]
        Command::Man(args) => Ok(manual::man(&args)?),
    }
}

fn list(is_json: bool) -> Result<(), SqlError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let tables = listing::tables();
    if is_json {
        serde_json::to_writer_pretty(&mut out, &tables).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        for table in tables {
            writeln!(out, "{}: {}", table.table, table.meaning)?;
            for column in table.columns {
                let (name, kind) = (column.name, column.kind);
                writeln!(out, "  {name:<20} {kind:<15} {}", column.meaning)?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Bytes that were asked for, else half of what is available.
fn memory(wanted: Option<u64>) -> u64 {
    let half = || luc_host::memory::available_bytes().map(|bytes| bytes / 2);
    wanted.or_else(half).unwrap_or(LITTLE_MEMORY_BYTES)
}

#[cfg(feature = "cluster")]
fn serve(args: serve::Serve) -> Result<(), SqlError> {
    tokio::runtime::Runtime::new()?.block_on(serve::run(args))
}

/// Waits for Ctrl-C, or for somebody who ends the process.
async fn ended() -> Result<(), SqlError> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}

fn ask(args: Sql) -> Result<(), SqlError> {
    let format = match (args.json, args.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let directory = Directory::new(args.shared.as_deref())?;
    let options = Options {
        memory_bytes: memory(args.memory),
        #[cfg(feature = "cluster")]
        cluster: args.cluster.map(|address| address.to_string()),
        #[cfg(not(feature = "cluster"))]
        cluster: None,
        directory: directory.path().to_owned(),
    };
    let query = args.query.unwrap_or_default();
    // What panics is told in one line below.
    panic::set_hook(Box::new(|_| {}));
    let engine = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    let answer = engine.spawn(answered(query, args.sources, options, format));
    // Threads that compute do not look at signals, so this one has a runtime of its own.
    let waits = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = waits.block_on(async {
        tokio::select! {
            done = answer => done.unwrap_or_else(|error| Err(panicked(error))),
            ended = ended() => ended.and(Err(SqlError::Interrupted)),
        }
    });
    // What still computes ends with the process.
    engine.shutdown_background();
    done
}

async fn answered(
    query: String,
    sources: Vec<luc_fleet::Source>,
    options: Options,
    format: Format,
) -> Result<(), SqlError> {
    let asked = query.clone();
    let session = tokio::task::spawn_blocking(move || Session::open(&sources, &asked, &options));
    let session = session.await.map_err(panicked)??;
    answer::write(&session, &query, format).await
}

/// On files that were forged, with checksums that are right, the Parquet library's own assertions can fail.
fn panicked(error: JoinError) -> SqlError {
    let Ok(payload) = error.try_into_panic() else {
        return SqlError::Interrupted;
    };
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    SqlError::Engine(format!("the engine failed: {}", text.unwrap_or("no reason")))
}
