//! The shared memory of a batch. subject/subject.h has the same layout in C.

use crate::program::{ACTORS, ARGUMENTS, MAX_STEPS, Program, SLOTS};

const MAGIC: u32 = 0x4c55_4344;
const NAME_BYTES: usize = 512;
const NAMES_AT: usize = 40;
const HEADER_BYTES: usize = NAMES_AT + 2 * NAME_BYTES;
const STEP_BYTES: usize = 20;
const RESULT_BYTES: usize = 40;
const ACTORS_AT: usize = 32;
const PROCESSES_AT: usize = ACTORS_AT + ACTORS * 24;
const STEPS_AT: usize = PROCESSES_AT + ACTORS * (SLOTS * 4 + 8);
const RESULTS_AT: usize = STEPS_AT + MAX_STEPS * STEP_BYTES;
const PROGRAM_BYTES: usize = RESULTS_AT + MAX_STEPS * RESULT_BYTES;

/// Offset of the word that tells a batch to begin (1) and to end (2).
pub(crate) const GO_AT: u64 = 12;
/// Offset of the word by which a batch says that its programs are over.
pub(crate) const OVER_AT: u64 = 32;

#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) width: u32,
    /// Whether the batch begins at once.
    pub(crate) goes: bool,
    /// Number that marks the cells of this batch.
    pub(crate) stamp: u32,
    /// Number of calls that the first process makes before it has others.
    pub(crate) warm: u32,
    /// Every `lie`th program's fsync does nothing, for tests of the checks; 0 for none.
    pub(crate) lie: u32,
    /// Whether syncfs is left out, since it would keep the promises of all programs.
    pub(crate) without_syncfs: bool,
    /// Number of processes that synchronize all the time, so that others are waited for.
    pub(crate) companions: u32,
    pub(crate) folder: String,
    /// A folder on another file system.
    pub(crate) other: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The step was not reached.
    None,
    Begun,
    Done,
    /// The step's actor was not there.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepResult {
    pub(crate) value: i64,
    pub(crate) error: i32,
    pub(crate) progress: Progress,
    pub(crate) ended_ns: u64,
    /// Second answer, of a child or the kernel.
    pub(crate) second: i32,
    /// Whether a handler jumped out of the call.
    pub(crate) has_jumped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) results: Vec<StepResult>,
    /// Status in the encoding of waitpid(2).
    pub(crate) status: i32,
    pub(crate) is_hung: bool,
    /// Last errno of a handler's call; 0 for none.
    pub(crate) handler_error: i32,
}

/// Returns the file's bytes before the batch.
pub(crate) fn encode(header: &Header, programs: &[&Program]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES + programs.len() * PROGRAM_BYTES];
    let numbers = [
        MAGIC,
        programs.len() as u32,
        header.width,
        u32::from(header.goes),
        header.stamp,
        header.warm,
        header.lie,
        u32::from(header.without_syncfs),
        0,
        header.companions,
    ];
    for (at, number) in numbers.iter().enumerate() {
        put(&mut bytes, 4 * at, &number.to_ne_bytes());
    }
    put(&mut bytes, NAMES_AT, header.folder.as_bytes());
    put(&mut bytes, NAMES_AT + NAME_BYTES, header.other.as_bytes());
    for (index, program) in programs.iter().enumerate() {
        let at = HEADER_BYTES + index * PROGRAM_BYTES;
        let count = program.steps.len() as u32;
        put(&mut bytes, at, &count.to_ne_bytes());
        for (number, step) in program.steps.iter().enumerate() {
            let at = at + STEPS_AT + number * STEP_BYTES;
            let is_async = u8::from(step.is_async);
            put(&mut bytes, at, &[step.op as u8, step.actor, is_async]);
            for (number, argument) in step.arguments.iter().enumerate() {
                put(&mut bytes, at + 4 + 4 * number, &argument.to_ne_bytes());
            }
        }
    }
    const { assert!(4 + 4 * ARGUMENTS == STEP_BYTES) };
    bytes
}

/// Returns the programs' outcomes; `None` if the bytes are not those of a batch of these programs.
pub(crate) fn decode(bytes: &[u8], programs: &[&Program]) -> Option<Vec<Outcome>> {
    let outcomes = programs.iter().enumerate().map(|(index, program)| {
        let at = HEADER_BYTES + index * PROGRAM_BYTES;
        let results = (0..program.steps.len())
            .map(|number| result(bytes, at + RESULTS_AT + number * RESULT_BYTES));
        Some(Outcome {
            results: results.collect::<Option<_>>()?,
            is_hung: number(bytes, at + 12)? != 0,
            status: number(bytes, at + 16)? as i32,
            handler_error: number(bytes, at + 28)? as i32,
        })
    });
    outcomes.collect()
}

fn result(bytes: &[u8], at: usize) -> Option<StepResult> {
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(StepResult {
        value: long(at)? as i64,
        error: number(bytes, at + 8)? as i32,
        progress: match number(bytes, at + 12)? {
            0 => Progress::None,
            1 => Progress::Begun,
            2 => Progress::Done,
            _ => Progress::Skipped,
        },
        ended_ns: long(at + 24)?,
        second: number(bytes, at + 32)? as i32,
        has_jumped: number(bytes, at + 36)? != 0,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}
