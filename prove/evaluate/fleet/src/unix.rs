//! Part `fleet-unix`: whether requests over unix sockets are found, and assigned to those that they were made for.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, missing};
use luc_harness::progress::Progress;
use serde::Serialize;
use serde_json::json;

use crate::answer::{Answer, RequestRow, Rows};
use crate::calls::Calls;
use crate::program::bound;
use crate::recorder::Recorder;

const SOURCE: &str = include_str!("../subjects/unix.c");
/// Number of seeds of each setting.
const SEEDS: usize = 20;
/// Number of the clients' connections, and of the requests of each.
const CLIENTS: usize = 8;
const REQUESTS: usize = 100;

/// Connections of a front end, and its way to hand requests over.
#[derive(Debug, Clone, Copy)]
struct SocketSetting {
    name: &'static str,
    /// Whether connections are over TCP, for comparison.
    is_tcp: bool,
    /// Number of threads that make its calls; 0: the thread that has read the request makes them.
    workers: usize,
}

const SETTINGS: [SocketSetting; 6] = [
    setting("unix, a thread for each connection", false, 0),
    setting("TCP, a thread for each connection", true, 0),
    setting("unix, a pool of 24 threads", false, 24),
    setting("TCP, a pool of 24 threads", true, 24),
    setting("unix, a pool of 4 threads, with a queue", false, 4),
    setting("TCP, a pool of 4 threads, with a queue", true, 4),
];

const fn setting(name: &'static str, is_tcp: bool, workers: usize) -> SocketSetting {
    SocketSetting { name, is_tcp, workers }
}

#[derive(Debug, Clone, Serialize)]
struct UnixRun {
    setting: &'static str,
    seed: u64,
    commands: Vec<String>,
    /// Number of requests that the front end has read.
    requests: u64,
    /// Number of these that the answer has.
    found: u64,
    /// Number of other requests that the answer has at the front end's process.
    others: u64,
    calls: Calls,
    lost_rows: u64,
}

/// Makes part `fleet-unix`.
///
/// # Errors
/// A program that cannot be compiled or fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let seeds = harness.options.repeats.unwrap_or(SEEDS).max(1) as u64;
    let wanted = SETTINGS.iter().filter(|setting| harness.options.wants(setting.name));
    let wanted: Vec<&SocketSetting> = wanted.collect();
    if wanted.is_empty() {
        return Err(harness.options.no_cell());
    }
    let program = harness.compile("unix", SOURCE, &["-pthread"])?;
    let mut progress = Progress::new(harness.part, wanted.len() * seeds as usize);
    for seed in (0..seeds).map(|seed| harness.options.seed + seed) {
        for setting in &wanted {
            let run = run_setting(harness, &program, setting, seed)?;
            progress.step(&format!(
                "{} {seed}: {} of {} requests; {}",
                setting.name,
                run.found,
                run.requests,
                run.calls.brief()
            ));
            harness.keep(json!(run));
        }
    }
    Ok(())
}

fn run_setting(
    harness: &Harness,
    program: &Path,
    setting: &SocketSetting,
    seed: u64,
) -> Result<UnixRun, EvaluateError> {
    let (trace, sockets) = (harness.path("trace"), harness.path("sockets"));
    fs::create_dir_all(&sockets).map_err(EvaluateError::file("make", &sockets))?;
    let recorder = Recorder::of_fleet(harness, &trace)?;
    let mut command = bound("KILL", false);
    command.arg(program);
    command.arg(if setting.is_tcp { Path::new("tcp") } else { &sockets });
    command.arg(seed.to_string());
    command.args([setting.workers, CLIENTS, REQUESTS].map(|count| count.to_string()));
    let said = harness.execute(&mut command, &[0])?.stdout;
    let recorded = recorder.stop()?;
    let truth = Truth::read(&said)?;
    let answer = Answer::of(harness, &[trace.as_path()])?;
    let seen = Seen::new(truth.front, &answer.rows);
    let mut run = UnixRun {
        setting: setting.name,
        seed,
        commands: vec![recorded, line(&command)],
        requests: truth.requests.len() as u64,
        found: 0,
        others: 0,
        calls: Calls::default(),
        lost_rows: answer.lost_rows(),
    };
    let read: HashMap<u64, usize> = truth
        .requests
        .iter()
        .filter_map(|request| Some((request.number, seen.row(request, false)?)))
        .collect();
    let found: HashSet<usize> = read.values().copied().collect();
    run.found = found.len() as u64;
    run.others = seen.received.saturating_sub(found.len()) as u64;
    for call in &truth.calls {
        let row = seen.row(call, true).map(|at| &answer.rows.requests[at]);
        run.calls.count(row, &answer.rows, |cause| {
            let own = read.get(&call.number).map(|&at| &answer.rows.requests[at]);
            own.is_some_and(|own| std::ptr::eq(own, cause))
        });
    }
    for folder in [&trace, &sockets] {
        fs::remove_dir_all(folder).map_err(EvaluateError::file("remove", folder))?;
    }
    Ok(run)
}

/// A piece of work of a thread for a numbered request, and its times.
#[derive(Debug, Clone, Copy)]
struct Deed {
    number: u64,
    thread: u32,
    from_ns: u64,
    to_ns: u64,
}

/// Output of the program about itself.
#[derive(Debug, Default)]
struct Truth {
    front: u32,
    requests: Vec<Deed>,
    calls: Vec<Deed>,
}

impl Truth {
    fn read(said: &str) -> Result<Self, EvaluateError> {
        let mut truth = Self::default();
        for text in said.lines() {
            let words: Vec<&str> = text.split_whitespace().collect();
            let numbers = words.iter().skip(1).map(|word| word.parse::<u64>());
            let numbers: Result<Vec<u64>, _> = numbers.collect();
            let wrong = || missing(&format!("what the program did (it said {text:?})"));
            match (words.first(), &numbers.map_err(|_| wrong())?[..]) {
                (Some(&"front"), &[process]) => {
                    truth.front = u32::try_from(process).map_err(|_| wrong())?;
                }
                (Some(&what @ ("read" | "call")), &[number, thread, from_ns, to_ns]) => {
                    let deed = Deed {
                        number,
                        thread: u32::try_from(thread).map_err(|_| wrong())?,
                        from_ns,
                        to_ns,
                    };
                    match what {
                        "read" => truth.requests.push(deed),
                        _ => truth.calls.push(deed),
                    }
                }
                _ => return Err(wrong()),
            }
        }
        Ok(truth)
    }
}

/// Requests of a process in an answer, by kind and thread.
#[derive(Debug)]
struct Seen {
    by_thread: HashMap<(bool, u32), Vec<(u64, usize)>>,
    received: usize,
}

impl Seen {
    fn new(process: u32, rows: &Rows) -> Self {
        let mut seen = Self { by_thread: HashMap::new(), received: 0 };
        let own = |row: &RequestRow| row.asked.process == process;
        for (at, row) in rows.requests.iter().enumerate().filter(|(_, row)| own(row)) {
            seen.received += usize::from(!row.is_sent);
            let of_thread = seen.by_thread.entry((row.is_sent, row.asked.thread));
            of_thread.or_default().push((row.asked.at_ns, at));
        }
        seen
    }

    /// Returns the index of the row of a deed, if there is exactly one.
    fn row(&self, deed: &Deed, is_sent: bool) -> Option<usize> {
        let of_thread = self.by_thread.get(&(is_sent, deed.thread))?;
        let within = |at_ns: u64| (deed.from_ns..=deed.to_ns).contains(&at_ns);
        let mut rows = of_thread.iter().filter(|(at_ns, _)| within(*at_ns));
        let (_, row) = rows.next()?;
        rows.next().is_none().then_some(*row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_is_read() {
        let truth = Truth::read("front 7\nread 1 8 10 20\ncall 1 9 21 22\n").expect("it is good");
        assert_eq!(truth.front, 7);
        let [request, call] = [&truth.requests, &truth.calls].map(|deeds| deeds[0]);
        assert_eq!((request.number, request.thread, request.to_ns), (1, 8, 20));
        assert_eq!((call.thread, call.from_ns), (9, 21));
        for wrong in ["front x", "read 1 2 3", "wrote 1 2 3 4"] {
            assert!(Truth::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_rows_of_one_time_are_none() {
        let seen = Seen {
            by_thread: HashMap::from([((true, 8), vec![(15, 0), (30, 1), (31, 2)])]),
            received: 0,
        };
        let deed = |from_ns, to_ns| Deed { number: 1, thread: 8, from_ns, to_ns };
        assert_eq!(seen.row(&deed(10, 20), true), Some(0));
        assert_eq!(seen.row(&deed(25, 35), true), None);
        assert_eq!(seen.row(&deed(10, 20), false), None);
    }
}
