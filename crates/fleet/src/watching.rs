//! `luc-fleet watch`: keeps what a ring has of the time in which requests became slow.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use luc_events::ring::{self, Name, Segment};
use luc_fleet::watch::{Slow, Watch};
use luc_fleet::{FleetError, Joined, Moment, Source, Tables, Wanted, Window, explain, pull, read};
use luc_host::interrupt;

use crate::Failure;
use crate::arguments;

/// How often it looks for a new segment.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Watches until a signal comes.
pub(crate) fn watch(args: &arguments::Watch) -> Result<(), Failure> {
    interrupt::install()?;
    let mut watch = Watch::new(args.factor);
    let mut last: Option<Name> = None;
    let mut kept: VecDeque<Instant> = VecDeque::new();
    // What cannot be listed at all is said at once.
    let mut names = ring::names(&args.directory).map_err(FleetError::from)?;
    while !interrupt::interrupted() {
        // A ring that was begun anew has lower names.
        last = last.filter(|last| names.last().is_none_or(|name| name >= last));
        names.retain(|&name| last.is_none_or(|last| name > last));
        last = names.last().copied().or(last);
        for name in names {
            if interrupt::interrupted() {
                return Ok(());
            }
            let path = args.directory.join(name.to_string());
            let (slow, segment) = match look(name, path.clone(), &mut watch) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) => {
                    // One that is removed meanwhile says nothing any more.
                    if path.exists() {
                        eprintln!("luc-fleet: {}", luc_units::plain(&error.to_string()));
                    }
                    continue;
                }
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
        }
        thread::sleep(LOOK_INTERVAL);
        names = ring::names(&args.directory).map_err(FleetError::from)?;
    }
    Ok(())
}

/// The service that became slow in a segment, if any, and the segment.
fn look(
    name: Name,
    path: PathBuf,
    watch: &mut Watch,
) -> Result<Option<(Slow, Segment)>, FleetError> {
    let source = Source {
        name: None,
        directory: path.clone(),
    };
    let recorded = read(&[source], Tables::All)?;
    let trace = recorded
        .first()
        .map(|one| one.trace.clone())
        .unwrap_or_default();
    let explanation = explain(&Joined::new(recorded)?, Wanted::default())?;
    let slow = watch.look(&explanation.services);
    Ok(slow.map(|slow| (slow, Segment { name, path, trace })))
}
