//! Runs a program on one processor, with a memory limit if wanted, and measures its time and memory.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Instant;

use luc_host::resource_usage::ResourceUsage;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use crate::error::EvaluateError;
use crate::harness::{line, missing};

/// Options of `luc-evaluate measured`.
#[derive(Debug, Clone, clap::Args)]
pub struct MeasuredArguments {
    /// Limit its own memory to this many bytes (`RLIMIT_DATA`)
    #[arg(long)]
    pub memory: Option<u64>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Measured {
    pub seconds: f64,
    pub processor_s: f64,
    pub peak_bytes: u64,
}

/// Runs the program, discards its output, and measures.
///
/// # Errors
/// [`EvaluateError`]: it cannot be run, or it failed.
pub fn run(arguments: &MeasuredArguments) -> Result<Measured, EvaluateError> {
    let Some((program, words)) = arguments.command.split_first() else {
        return Err(missing("a program"));
    };
    let limited = |error: rustix::io::Errno| EvaluateError::file("limit", program)(error.into());
    sched_setaffinity(None, &last_processor().map_err(limited)?).map_err(limited)?;
    if let Some(bytes) = arguments.memory {
        let (current, maximum) = (Some(bytes), Some(bytes));
        setrlimit(Resource::Data, Rlimit { current, maximum }).map_err(limited)?;
    }
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    let status = command.status().map_err(EvaluateError::file("run", program))?;
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        return Err(EvaluateError::Command {
            command: line(&command),
            how: status.to_string(),
            said: "see above".to_owned(),
        });
    }
    let usage = ResourceUsage::of_children();
    Ok(Measured { seconds, processor_s: usage.processor_s(), peak_bytes: usage.peak_bytes })
}

/// Returns the last processor that this thread may use, since the first has most of a machine's interrupts.
fn last_processor() -> rustix::io::Result<CpuSet> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)) {
        one.set(last);
    }
    Ok(one)
}
