//! Functions of threads and holders of locks, for a program that states them itself.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use luc_events::tables::{AsleepThread, ThreadStart};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, missing};
use serde::Serialize;

use super::rows;
use crate::program::bound;
use crate::recorder::Recorder;

pub(crate) const SOURCE: &str = include_str!("../../../../subjects/fleet/known.c");
/// Number of threads that run one of five functions, before the trace and in it.
const THREADS: usize = 500;
/// Number of locks with a holder and a waiter.
const LOCKS: usize = 200;

/// Numbers of things of a kind: all, and those that the trace has right and wrong.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct NameCounts {
    pub(crate) all: usize,
    pub(crate) right: usize,
    pub(crate) wrong: usize,
}

impl NameCounts {
    fn count(&mut self, found: Option<bool>) {
        self.all += 1;
        match found {
            Some(true) => self.right += 1,
            Some(false) => self.wrong += 1,
            None => {}
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Known {
    pub(super) commands: Vec<String>,
    /// Functions of threads that began before the trace.
    pub(crate) old: NameCounts,
    /// Functions of threads that began in the trace.
    pub(crate) new: NameCounts,
    /// Holders of locks, as the waiters' rows at the trace's begin name them.
    pub(crate) holders: NameCounts,
}

impl Known {
    /// Compares the program's output before the trace and in it with the trace.
    pub(crate) fn of(old: &Said, new: &Said, trace: &Path) -> Result<Self, EvaluateError> {
        let mut functions: HashMap<u32, String> = HashMap::new();
        for row in rows::<ThreadStart>(trace)? {
            functions.insert(row.thread.0, row.routine);
        }
        let mut holders: HashMap<u32, u32> = HashMap::new();
        for row in rows::<AsleepThread>(trace)? {
            // The first row is that of the trace's begin.
            holders.entry(row.thread.0).or_insert(row.holder.0);
        }
        let of_functions = |said: &Said| {
            let mut counts = NameCounts::default();
            for (thread, function) in &said.functions {
                let found = functions.get(thread).filter(|found| !found.is_empty());
                counts.count(found.map(|found| found == function));
            }
            counts
        };
        let mut of_holders = NameCounts::default();
        for (waiter, holder) in &old.holders {
            let found = holders.get(waiter).filter(|found| **found != 0);
            of_holders.count(found.map(|found| found == holder));
        }
        Ok(Self {
            commands: Vec::new(),
            old: of_functions(old),
            new: of_functions(new),
            holders: of_holders,
        })
    }

    pub(crate) fn brief(&self) -> String {
        let share = |counts: &NameCounts| format!("{} of {}", counts.right, counts.all);
        format!(
            "start routines {} before the trace, {} in it; holders {}",
            share(&self.old),
            share(&self.new),
            share(&self.holders)
        )
    }
}

/// Output of the program about itself.
#[derive(Debug, Default)]
pub(crate) struct Said {
    functions: HashMap<u32, String>,
    holders: HashMap<u32, u32>,
}

impl Said {
    /// Reads the output up to a word.
    pub(crate) fn read_to(word: &str, output: &mut impl BufRead) -> Result<Self, EvaluateError> {
        let mut said = Self::default();
        let mut text = String::new();
        loop {
            text.clear();
            let read = output.read_line(&mut text);
            let bytes = read.map_err(EvaluateError::file("read", "what the program says"))?;
            if bytes == 0 {
                return Err(missing(&format!("`{word}` of the program")));
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            let number = |word: &str| word.parse::<u32>().ok();
            match words[..] {
                ["start", thread, function] => {
                    let thread = number(thread).ok_or_else(|| missing("a thread's number"))?;
                    said.functions.insert(thread, function.to_owned());
                }
                ["wait", waiter, holder] => {
                    let both = number(waiter).zip(number(holder));
                    let (waiter, holder) = both.ok_or_else(|| missing("a thread's number"))?;
                    said.holders.insert(waiter, holder);
                }
                [one] if one == word => return Ok(said),
                _ => return Err(missing(&format!("a line of the program, not {text:?}"))),
            }
        }
    }
}

/// The program, which ends with its input.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(harness: &Harness) -> Result<(Self, String), EvaluateError> {
        let path = harness.compile("known", SOURCE, &["-pthread"])?;
        let mut command = bound("KILL", false);
        command.arg(&path);
        command.args([THREADS, LOCKS].map(|count| count.to_string()));
        let text = line(&command);
        let (child, output) = spawn(command, &path)?;
        Ok((Self { child, output }, text))
    }

    fn go_on(&mut self) -> Result<(), EvaluateError> {
        let input = self.child.stdin.as_mut();
        let input = input.ok_or_else(|| missing("the program's input"))?;
        input.write_all(b"\n").map_err(EvaluateError::file("write to", "the program"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn spawn(
    mut command: Command,
    path: &Path,
) -> Result<(Child, BufReader<ChildStdout>), EvaluateError> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(EvaluateError::file("run", path))?;
    let output = child.stdout.take();
    let output = output.ok_or_else(|| missing("the program's output"))?;
    Ok((child, BufReader::new(output)))
}

/// Records the program, and compares the trace with its output.
pub(super) fn once(harness: &Harness) -> Result<Known, EvaluateError> {
    let trace = harness.path("trace");
    let (mut program, text) = Program::start(harness)?;
    let old = Said::read_to("ready", &mut program.output)?;
    let recorder = Recorder::of_fleet(harness, &trace)?;
    program.go_on()?;
    let new = Said::read_to("done", &mut program.output)?;
    let commands = vec![text, recorder.stop()?];
    drop(program);
    let known = Known::of(&old, &new, &trace)?;
    std::fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
    Ok(Known { commands, ..known })
}
