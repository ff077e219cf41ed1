//! Judge of part `fleet-unix`: whether requests over unix sockets are found, and assigned to those that they were made
//! for. Its page's section `[run]` has the runs.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{missing, read_json_as};
use serde_json::{Value, json};

use crate::answer::{Answer, RequestRow, Rows};
use crate::calls::Calls;

/// Options of `luc-evaluate judge-unix`: files of one run.
#[derive(Debug, Clone, clap::Args)]
pub struct Files {
    /// Output of the program
    said: PathBuf,
    /// Output of `luc fleet explain --json --rows`
    answer: PathBuf,
}

/// Compares the answer with what the program says that it did: its requests, those of them that are found, and others
/// at the front end's process.
///
/// # Errors
/// A file that cannot be read.
pub fn judge(files: &Files) -> Result<Value, EvaluateError> {
    let truth = Truth::read(&files.said)?;
    let answer: Answer = read_json_as(&files.answer)?;
    let seen = Seen::new(truth.front, &answer.rows);
    let row = |request: &Deed| Some((request.number, seen.row(request, false)?));
    let read: HashMap<u64, usize> = truth.requests.iter().filter_map(row).collect();
    let found: HashSet<usize> = read.values().copied().collect();
    let mut calls = Calls::default();
    for call in &truth.calls {
        let row = seen.row(call, true).map(|at| &answer.rows.requests[at]);
        calls.count(row, &answer.rows, |cause| {
            let own = read.get(&call.number).map(|&at| &answer.rows.requests[at]);
            own.is_some_and(|own| std::ptr::eq(own, cause))
        });
    }
    Ok(json!({
        "requests": truth.requests.len(), "found": found.len(), "others": seen.received.saturating_sub(found.len()),
        "calls": calls, "lost_rows": answer.lost_rows(),
    }))
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
    fn read(path: &Path) -> Result<Self, EvaluateError> {
        Self::of(&fs::read_to_string(path).map_err(EvaluateError::file("read", path))?)
    }

    fn of(said: &str) -> Result<Self, EvaluateError> {
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
        let truth = Truth::of("front 7\nread 1 8 10 20\ncall 1 9 21 22\n").expect("it is good");
        assert_eq!(truth.front, 7);
        let [request, call] = [&truth.requests, &truth.calls].map(|deeds| deeds[0]);
        assert_eq!((request.number, request.thread, request.to_ns), (1, 8, 20));
        assert_eq!((call.thread, call.from_ns), (9, 21));
        for wrong in ["front x", "read 1 2 3", "wrote 1 2 3 4"] {
            assert!(Truth::of(wrong).is_err(), "{wrong}");
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
