//! The `luc-fleet-store` command line: parse, dispatch, and turn an outcome into an exit status: 0 done, 2 bad input,
//! 130 interrupted.

#[macro_use]
extern crate luc_units;

mod arguments;

use std::env;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arguments::{PushArgs, StoreCli, StoreCommand, StoreWindowArgs, StoredArgs};
use luc_fleet_rings::host_name;
use luc_fleet_rings::time_window::segments;
use luc_fleet_store::{
    ObjectStoreFolder, PushProgress, StoredError, StoredHost, push, stored, window,
};
use luc_units::number_formats::FormattedSize;
use tokio::signal::unix::{SignalKind, signal};

const PROGRAM: &str = "luc-fleet-store";
/// Interval of progress messages during a long push.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let cli: StoreCli = match luc_cli::parse() {
        Ok(cli) => cli,
        Err(refusal) => return refusal.report(),
    };
    match run(cli.command) {
        Ok(()) => luc_cli::finish(PROGRAM, ExitCode::SUCCESS),
        Err(error @ StoredError::Interrupted) => {
            say(&error.to_string());
            ExitCode::from(130)
        }
        Err(error) => luc_cli::fail(PROGRAM, &error),
    }
}

fn say(text: &str) {
    eprintln!("{PROGRAM}: {}", luc_units::plain(text));
}

fn run(command: StoreCommand) -> Result<(), StoredError> {
    match command {
        StoreCommand::Push(args) => until_interrupted(put(&args)),
        StoreCommand::Stored(args) => until_interrupted(list(&args)),
        StoreCommand::Window(args) => until_interrupted(send(&args)),
    }
}

/// Runs a command until it is done, or until Ctrl-C.
fn until_interrupted(
    work: impl Future<Output = Result<(), StoredError>>,
) -> Result<(), StoredError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StoredError::Temporary)?;
    runtime.block_on(async {
        let mut interrupted = signal(SignalKind::interrupt()).map_err(StoredError::Temporary)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(StoredError::Temporary)?;
        tokio::select! {
            done = work => done,
            _ = interrupted.recv() => Err(StoredError::Interrupted),
            _ = terminated.recv() => Err(StoredError::Interrupted),
        }
    })
}

fn open_store(url: &str) -> Result<ObjectStoreFolder, StoredError> {
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    ObjectStoreFolder::open(url, variables)
}

async fn put(args: &PushArgs) -> Result<(), StoredError> {
    let store = open_store(&args.url)?;
    let Some(every_ns) = args.every else {
        return put_once(args, &store).await;
    };
    loop {
        // A store may become reachable, and a ring may get segments.
        if let Err(error) = put_once(args, &store).await {
            say(&error.to_string());
        }
        tokio::time::sleep(Duration::from_nanos(every_ns)).await;
    }
}

async fn put_once(args: &PushArgs, store: &ObjectStoreFolder) -> Result<(), StoredError> {
    let segments = segments(&args.directory, args.span.window())?;
    let own = segments.first().map(|one| one.trace.host.as_str());
    let host = match (&args.host, own) {
        (Some(host), _) => host_name(host),
        (None, Some(host)) if !host.is_empty() => host_name(host),
        (None, _) => return Err(StoredError::NoHost(args.directory.display().to_string())),
    };
    let store = store.of_host(&host);
    let mut due = Instant::now() + PROGRESS_INTERVAL;
    let all = segments.len();
    let look = |pushed: PushProgress| {
        if Instant::now() >= due {
            due = Instant::now() + PROGRESS_INTERVAL;
            let size = FormattedSize(pushed.bytes as f64);
            let number = pushed.segments + pushed.there;
            say(&format!("{store}: {number} of {all} segments, {size} so far"));
        }
    };
    let pushed = push(&store, &segments, look).await?;
    let PushProgress { segments, there, .. } = pushed;
    let size = FormattedSize(pushed.bytes as f64);
    say(&format!("{store}: {segments} segments, {size}; {there} were there"));
    if pushed.gone > 0 {
        let gone = pushed.gone;
        say(&format!("without {gone}, which the recorder removed meanwhile"));
    }
    Ok(())
}

async fn list(args: &StoredArgs) -> Result<(), StoredError> {
    let hosts = stored(&open_store(&args.url)?).await?;
    let mut out = io::stdout().lock();
    let written = match args.json {
        true => luc_cli::write_json(&mut out, &hosts),
        false => hosts.iter().try_for_each(|host| print_host(&mut out, host)),
    };
    written.map_err(StoredError::Output)
}

fn print_host(out: &mut impl io::Write, host: &StoredHost) -> io::Result<()> {
    let name = luc_units::plain(&host.host);
    let (segments, size) = (host.segments, FormattedSize(host.bytes as f64));
    writeln!(out, "{name}: {} to {}, {segments} segments, {size}", host.from, host.to)
}

async fn send(args: &StoreWindowArgs) -> Result<(), StoredError> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(StoredError::Terminal);
    }
    window(&open_store(&args.url)?, args.span.window(), out.lock()).await
}
