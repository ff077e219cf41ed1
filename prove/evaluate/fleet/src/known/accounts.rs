//! Times of threads, by the trace's rows and by the scheduler's own counts (`/proc/PID/task/TID/schedstat`).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use luc_events::tables::{AsleepThread, BriefWait, LostEvents, OffCpuWait};
use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_host::kernel_clocks::now_ns;
use serde::Serialize;

use super::rows;
use crate::cost::servers::{Server, Servers};
use crate::program::{USER, bound};
use crate::recorder::Recorder;
use crate::running::Running;

const COMPARED_TIME: Duration = Duration::from_secs(8);
/// Time between the begin of the load and the comparison.
const LOAD_LEAD_TIME: Duration = Duration::from_secs(1);
/// Number of clients of each server.
const CLIENTS: u32 = 8;
/// Minimum share of time in which a compared thread runs or waits for a processor.
const MIN_ACTIVE_SHARE: f64 = 0.001;

/// Times of a thread by the trace, less the scheduler's counts, as shares of the compared time.
#[derive(Debug, Clone, Serialize)]
struct Difference {
    name: String,
    ran_share: f64,
    ran: f64,
    runnable: f64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Closed {
    commands: Vec<String>,
    threads: Vec<Difference>,
    /// Difference of the time that all threads of the machine ran, as a share of the processors' time.
    machine: f64,
    /// Thread with the largest difference of all. It may be of any program, so its name is not kept.
    #[serde(skip)]
    furthest: Option<Difference>,
    lost_rows: u64,
}

impl Closed {
    pub(super) fn brief(&self) -> String {
        let worst = |of: fn(&Difference) -> f64| {
            let all = self.threads.iter().map(|one| of(one).abs());
            all.fold(0.0, f64::max) * 100.0
        };
        format!(
            "{} threads: ran off by {:.2} %, runnable by {:.2} %; all together by {:.2} %, the most {}; {} rows lost",
            self.threads.len(),
            worst(|one| one.ran),
            worst(|one| one.runnable),
            self.machine * 100.0,
            self.furthest.as_ref().map_or("-", |one| &one.name),
            self.lost_rows
        )
    }
}

/// Counts of the scheduler for a thread.
#[derive(Debug, Clone)]
struct Counted {
    process: u32,
    parent: u32,
    at_ns: u64,
    name: String,
    ran_ns: u64,
    waited_ns: u64,
}

pub(super) fn start(harness: &Harness) -> Result<Servers, EvaluateError> {
    Servers::start(harness, [Server::Redis, Server::Postgresql].into_iter())
}

/// Records servers under load, and compares.
pub(super) fn once(harness: &Harness, servers: &Servers) -> Result<Closed, EvaluateError> {
    // 1. Record servers under load, and read the scheduler's counts meanwhile.
    let trace = harness.path("trace");
    let recorder = Recorder::of_fleet(harness, &trace)?;
    let clients =
        [load(harness, "redis", &redis(servers))?, load(harness, "pgbench", &pgbench(servers))?];
    thread::sleep(LOAD_LEAD_TIME);
    let begin = threads(harness.luc_path());
    thread::sleep(COMPARED_TIME);
    let end = threads(harness.luc_path());
    let mut loaded: Vec<u32> = clients.iter().map(Running::process).collect();
    for server in [Server::Redis, Server::Postgresql] {
        loaded.extend(servers.processes(server));
    }
    let mut commands = vec![recorder.stop()?];
    for client in clients {
        commands.push(client.command.clone());
        client.end()?;
    }
    // 2. Read the trace.
    let recorded = Rows {
        waits: group_by_thread(rows::<OffCpuWait>(&trace)?, |row| row.thread.0),
        brief: group_by_thread(rows::<BriefWait>(&trace)?, |row| row.thread.0),
        asleep: group_by_thread(rows::<AsleepThread>(&trace)?, |row| row.thread.0),
    };
    let lost_rows = rows::<LostEvents>(&trace)?.iter().map(|row| row.count).sum();
    fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
    // 3. Compare the trace's times with the counts.
    let mut furthest: Option<Difference> = None;
    let mut threads = Vec::new();
    let mut all_ns = 0.0;
    for (thread, first) in &begin {
        let Some(last) = end.get(thread) else {
            continue;
        };
        let length_ns = last.at_ns.saturating_sub(first.at_ns) as f64;
        let [ran, runnable] = recorded.times(*thread, [first.at_ns, last.at_ns]);
        let counted = [
            last.ran_ns.saturating_sub(first.ran_ns) as f64,
            last.waited_ns.saturating_sub(first.waited_ns) as f64,
        ];
        all_ns += ran - counted[0];
        let difference = Difference {
            name: first.name.clone(),
            ran_share: counted[0] / length_ns,
            ran: (ran - counted[0]) / length_ns,
            runnable: (runnable - counted[1]) / length_ns,
        };
        let is_further = |one: &Difference| one.ran.abs() < difference.ran.abs();
        if furthest.as_ref().is_none_or(is_further) {
            furthest = Some(difference.clone());
        }
        let is_loaded = loaded.contains(&first.process) || loaded.contains(&first.parent);
        if is_loaded && counted[0] + counted[1] >= length_ns * MIN_ACTIVE_SHARE {
            threads.push(difference);
        }
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Ok(Closed {
        commands,
        threads,
        machine: all_ns / (COMPARED_TIME.as_nanos() as f64 * processors as f64),
        furthest,
        lost_rows,
    })
}

fn load(harness: &Harness, name: &str, words: &[String]) -> Result<Running, EvaluateError> {
    let mut command: Command = bound("KILL", false);
    command.args(words);
    Running::start(command, &harness.path(&format!("{name}.log")))
}

fn redis(servers: &Servers) -> Vec<String> {
    let port = servers.port(Server::Redis);
    let words =
        format!("redis-benchmark -h 127.0.0.1 -p {port} -t set -c {CLIENTS} -n 100000000 --csv");
    words.split(' ').map(str::to_owned).collect()
}

fn pgbench(servers: &Servers) -> Vec<String> {
    let (program, port) = (servers.of_postgresql("pgbench"), servers.port(Server::Postgresql));
    let words =
        format!("{program} -h 127.0.0.1 -p {port} -U {USER} -n -c {CLIENTS} -T 600 -S postgres");
    words.split(' ').map(str::to_owned).collect()
}

/// Returns the scheduler's counts of all threads of programs. The recorder leaves itself and the kernel's threads out,
/// and so does this.
fn threads(recorder: &Path) -> HashMap<u32, Counted> {
    let numbers = |path: &str| -> Vec<u32> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let mut all = HashMap::new();
    for process in numbers("/proc") {
        // The kernel's threads have no program.
        let Ok(program) = fs::read_link(format!("/proc/{process}/exe")) else {
            continue;
        };
        if program == recorder {
            continue;
        }
        for thread in numbers(&format!("/proc/{process}/task")) {
            let counted = read_counts(process, &format!("/proc/{process}/task/{thread}"));
            all.extend(counted.map(|counted| (thread, counted)));
        }
    }
    all
}

/// Returns the counts of one thread; `None` if it has just ended.
fn read_counts(process: u32, path: &str) -> Option<Counted> {
    let read = |name: &str| fs::read_to_string(format!("{path}/{name}")).ok();
    let text = read("schedstat")?;
    let at_ns = now_ns();
    let mut figures = text.split_whitespace().map(str::parse::<u64>);
    let (ran_ns, waited_ns) = (figures.next()?.ok()?, figures.next()?.ok()?);
    let stat = read("stat")?;
    // The name in parentheses is followed by the state, and then the parent.
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
    Some(Counted {
        process,
        parent: parent.parse().ok()?,
        at_ns,
        name: read("comm")?.trim().to_owned(),
        ran_ns,
        waited_ns,
    })
}

/// Rows of a trace, by thread.
struct Rows {
    waits: BTreeMap<u32, Vec<OffCpuWait>>,
    brief: BTreeMap<u32, Vec<BriefWait>>,
    asleep: BTreeMap<u32, Vec<AsleepThread>>,
}

fn group_by_thread<T>(rows: Vec<T>, thread: impl Fn(&T) -> u32) -> BTreeMap<u32, Vec<T>> {
    let mut all: BTreeMap<u32, Vec<T>> = BTreeMap::new();
    for row in rows {
        all.entry(thread(&row)).or_default().push(row);
    }
    all
}

impl Rows {
    /// Returns the times that a thread ran and was runnable between two times, ns.
    fn times(&self, thread: u32, [begin_ns, end_ns]: [u64; 2]) -> [f64; 2] {
        let within = |from_ns: u64, to_ns: u64| {
            to_ns.min(end_ns).saturating_sub(from_ns.max(begin_ns)) as f64
        };
        let (mut away, mut runnable) = (0.0, 0.0);
        let (mut last_ns, mut has_rows) = (0, false);
        for row in self.waits.get(&thread).into_iter().flatten() {
            away += within(row.off_ns, row.on_ns);
            let ready_ns = if row.woken_ns == 0 { row.off_ns } else { row.woken_ns };
            runnable += within(ready_ns, row.on_ns);
            last_ns = last_ns.max(row.on_ns);
            has_rows = true;
        }
        for row in self.brief.get(&thread).into_iter().flatten() {
            let all_ns = row.until_ns.saturating_sub(row.since_ns).max(1) as f64;
            let share = within(row.since_ns, row.until_ns) / all_ns;
            away += share * (row.blocked_ns + row.runnable_ns) as f64;
            runnable += share * row.runnable_ns as f64;
            has_rows = true;
        }
        // A sleep that the trace does not see the end of.
        let asleep = self.asleep.get(&thread).into_iter().flatten();
        if let Some(row) = asleep.last().filter(|row| row.at_ns >= end_ns) {
            away += within(row.since_ns.max(last_ns), end_ns);
        } else if !has_rows {
            // It has no row at all: it slept all along, as far as a trace says.
            return [0.0, 0.0];
        }
        [(end_ns - begin_ns) as f64 - away, runnable]
    }
}

#[cfg(test)]
mod tests {
    use luc_events::Pid;

    use super::*;

    #[test]
    fn times_are_those_between_the_waits() {
        let wait = |off_ns, woken_ns, on_ns| OffCpuWait {
            thread: Pid(7),
            off_ns,
            woken_ns,
            on_ns,
            ..OffCpuWait::default()
        };
        let brief = BriefWait {
            thread: Pid(7),
            since_ns: 400,
            until_ns: 600,
            blocked_ns: 20,
            runnable_ns: 40,
            ..BriefWait::default()
        };
        let asleep =
            AsleepThread { thread: Pid(7), since_ns: 900, at_ns: 1_100, ..AsleepThread::default() };
        let rows = Rows {
            waits: group_by_thread(vec![wait(50, 120, 150), wait(200, 0, 230)], |row| row.thread.0),
            brief: group_by_thread(vec![brief], |row| row.thread.0),
            asleep: group_by_thread(vec![asleep], |row| row.thread.0),
        };
        // Away for 50, 30, half of 60, and 100.
        assert_eq!(rows.times(7, [100, 500]), [290.0, 80.0]);
        assert_eq!(rows.times(7, [700, 1_000]), [200.0, 0.0]);
        assert_eq!(rows.times(8, [100, 500]), [0.0, 0.0]);
        let threads = threads(Path::new("no such program"));
        let own = &threads[&std::process::id()];
        assert_eq!(own.process, std::process::id());
        assert!(own.at_ns <= now_ns());
    }
}
