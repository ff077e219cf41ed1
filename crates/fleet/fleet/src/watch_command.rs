//! Runs `luc-fleet watch`, which keeps what a ring has of the time in which requests became slow.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use luc_events::ring::{self, RingSegment, SegmentName};
use luc_fleet::slow_service_detector::{SlowService, SlowServiceDetector};
use luc_fleet::{
    ExplanationOptions, FleetError, JoinedTraces, TablesToRead, TraceArgument, called, explain,
    read,
};
use luc_fleet_rings::pass_trigger::{OtherRing, travel};
use luc_fleet_rings::{CLOCK_ERROR_NS, LogTime, TimeWindow, freeze, freeze_there};
use luc_host::interrupt_flag;

use crate::Failure;
use crate::arguments;

/// Interval at which the ring is checked for new segments.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum time from a segment's end until it is complete on disk.
const SEGMENT_DELAY: Duration = Duration::from_secs(3);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Segment in which requests became slow.
struct Trigger {
    slow: SlowService,
    segment: RingSegment,
    /// Addresses on other hosts that the slow service asked.
    called: BTreeSet<SocketAddr>,
}

/// Watches until a signal comes.
pub(crate) fn watch(args: &arguments::WatchArgs) -> Result<(), Failure> {
    interrupt_flag::install()?;
    let others: Vec<OtherRing> = args.hosts.iter().map(OtherRing::new).collect::<Result<_, _>>()?;
    let mut watch = SlowServiceDetector::new(args.factor);
    let mut last: Option<SegmentName> = None;
    let mut kept: VecDeque<Instant> = VecDeque::new();
    // A ring that cannot be listed fails at once.
    let mut names = ring::names(&args.directory).map_err(FleetError::from)?;
    while !interrupt_flag::interrupted() {
        // A restarted ring has lower names.
        last = last.filter(|last| names.last().is_none_or(|name| name >= last));
        names.retain(|&name| last.is_none_or(|last| name > last));
        last = names.last().copied().or(last);
        for name in names {
            if interrupt_flag::interrupted() {
                return Ok(());
            }
            let path = args.directory.join(name.to_string());
            let trigger = match check_segment(name, path.clone(), &mut watch) {
                Ok(Some(trigger)) => trigger,
                Ok(None) => continue,
                Err(error) => {
                    // A segment that was removed meanwhile is no error.
                    if path.exists() {
                        say(&error.to_string());
                    }
                    continue;
                }
            };
            kept.retain(|at| at.elapsed() < DAY);
            eprintln!("luc-fleet: {}", trigger.slow);
            if kept.len() >= args.most {
                eprintln!("luc-fleet: not kept: {} are kept of a day", args.most);
                continue;
            }
            let end_ns = trigger.segment.real_ns()[1];
            // Segments that only touch the window are left out.
            let window = TimeWindow {
                from: LogTime(end_ns.saturating_sub(args.span).saturating_add(1)),
                to: LogTime(end_ns.saturating_sub(1)),
            };
            match freeze(&args.directory, window) {
                Ok((path, received)) => {
                    kept.push_back(Instant::now());
                    crate::window_commands::say(&path.display().to_string(), received);
                }
                Err(error) => say(&error.to_string()),
            }
            if !others.is_empty() {
                notify_hosts(&others, trigger, window);
            }
        }
        thread::sleep(POLL_INTERVAL);
        names = ring::names(&args.directory).map_err(FleetError::from)?;
    }
    Ok(())
}

/// Finds the service that became slow in a segment, if any.
fn check_segment(
    name: SegmentName,
    path: PathBuf,
    watch: &mut SlowServiceDetector,
) -> Result<Option<Trigger>, FleetError> {
    let source = TraceArgument { name: None, directory: path.clone() };
    let recorded = read(&[source], TablesToRead::All)?;
    let trace = recorded.first().map(|one| one.trace.clone()).unwrap_or_default();
    let joined = JoinedTraces::new(recorded)?;
    let explanation = explain(&joined, ExplanationOptions::default())?;
    let slow = watch.look(&explanation.services);
    Ok(slow.map(|slow| Trigger {
        called: called(&joined, std::slice::from_ref(&slow.endpoint)),
        slow,
        segment: RingSegment { name, path, trace },
    }))
}

/// Has the hosts that were asked keep the same time of their rings.
fn notify_hosts(others: &[OtherRing], trigger: Trigger, window: TimeWindow) {
    let trace = &trigger.segment.trace;
    let segment = Duration::from_nanos(trace.end_ns.saturating_sub(trace.start_ns));
    // Their segments may begin when this one ends, and be as long.
    wait(segment + SEGMENT_DELAY);
    let window = window.wider(CLOCK_ERROR_NS);
    let strange = travel(others, trigger.called, |other, ports| {
        let mut look = |_| match interrupt_flag::interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        if look(0).is_break() {
            return BTreeSet::new();
        }
        match freeze_there(other, window, ports, &mut look) {
            Ok(there) => {
                say(&format!("{} says: {}", other.host, there.said));
                there.called
            }
            Err(error) => {
                say(&error.to_string());
                BTreeSet::new()
            }
        }
    });
    for address in strange {
        eprintln!("luc-fleet: {address} was asked, too, and is no --host");
    }
}

fn wait(for_: Duration) {
    let began = Instant::now();
    while began.elapsed() < for_ && !interrupt_flag::interrupted() {
        thread::sleep(POLL_INTERVAL);
    }
}

fn say(line: &str) {
    eprintln!("luc-fleet: {}", luc_units::plain(line));
}
