//! `luc-fleet watch`: keeps what a ring has of the time in which requests became slow.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use luc_events::ring::{self, Name, Segment};
use luc_fleet::watch::Watch;
use luc_fleet::{FleetError, Joined, Moment, Source, Tables, Wanted, Window, explain, pull, read};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;
use crate::arguments;

/// How often it looks for a new segment.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Watches until a signal comes.
pub(crate) fn watch(args: &arguments::Watch) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut watch = Watch::new(args.factor);
    let mut last: Option<Name> = None;
    let mut kept: VecDeque<Instant> = VecDeque::new();
    // What cannot be listed at all is said at once.
    let mut names = ring::names(&args.directory).map_err(FleetError::from)?;
    while !interrupted.load(Ordering::Relaxed) {
        names.retain(|&name| last.is_none_or(|last| name > last));
        last = names.last().copied().or(last);
        for name in names {
            let path = args.directory.join(name.to_string());
            // One that is removed meanwhile says nothing any more.
            let Ok(slow) = look(&path, &mut watch) else {
                continue;
            };
            let Some((slow, segment)) = slow else {
                continue;
            };
            kept.retain(|at| at.elapsed() < DAY);
            eprintln!("luc-fleet: {slow}");
            if kept.len() >= args.most {
                eprintln!("luc-fleet: not kept: {} are kept of a day", args.most);
                continue;
            }
            let end_ns = segment.real_ns()[1];
            // Not those that only touch it.
            let window = Window {
                from: Moment(end_ns.saturating_sub(args.span).saturating_add(1)),
                to: Moment(end_ns.saturating_sub(1)),
            };
            match pull::freeze(&args.directory, window) {
                Ok((path, received)) => {
                    kept.push_back(Instant::now());
                    crate::windows::say(&path.display().to_string(), received);
                }
                Err(error) => eprintln!("luc-fleet: {}", luc_units::plain(&error.to_string())),
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        thread::sleep(LOOK_INTERVAL);
        names = ring::names(&args.directory).map_err(FleetError::from)?;
    }
    Ok(())
}

/// What a segment says of its services.
fn look(
    path: &Path,
    watch: &mut Watch,
) -> Result<Option<(luc_fleet::watch::Slow, Segment)>, FleetError> {
    let source = Source {
        name: None,
        directory: path.to_path_buf(),
    };
    let recorded = read(&[source], Tables::All)?;
    let trace = recorded
        .first()
        .map(|one| one.trace.clone())
        .unwrap_or_default();
    let explanation = explain(&Joined::new(recorded)?, Wanted::default())?;
    let name = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let slow = watch.look(&explanation.services).zip(name);
    Ok(slow.map(|(slow, name)| {
        let segment = Segment {
            name,
            path: path.to_path_buf(),
            trace,
        };
        (slow, segment)
    }))
}
