//! Promises of a program's acknowledged calls, and whether a disk keeps them after a power cut.
//!
//! Every cell of a file remembers the step that wrote it. A file's history is a list of versions. A call that returned
//! 0 promises the version that the file had when the call was made. Afterwards the disk must have that version of each
//! cell, or a later one.

mod files;

use std::collections::HashMap;

use crate::generate::{FILES, FOLDER, open};
use crate::layout::{Outcome, Progress, StepResult};
use crate::program::{ACTORS, Op, Program, SLOTS, Step};
use crate::races::Races;
pub(crate) use files::Disk;
use files::{Content, FileId, Files, Sync};

/// Target of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    File(FileId),
    Folder,
    /// A target whose contents a cut cannot take.
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Description {
    target: Target,
    offset: i64,
    flags: i32,
}

#[derive(Debug, Clone, Default)]
struct Process {
    slots: [i32; SLOTS],
    /// Description of each number, and whether it is closed on exec.
    table: HashMap<i32, (usize, bool)>,
    maps: [Option<Target>; 2],
}

struct Promises {
    files: Files,
    descriptions: Vec<Description>,
    processes: Vec<Process>,
    /// Process of each actor.
    actors: [usize; ACTORS],
    /// Acknowledgements after this time do not count.
    end_ns: u64,
}

/// Returns the promises that a disk broke, a line each. Only promises before `end_ns` count.
pub(crate) fn broken_promises(
    program: &Program,
    outcome: &Outcome,
    disk: &Disk,
    end_ns: u64,
) -> Vec<String> {
    let first = Process { slots: [-1; SLOTS], ..Process::default() };
    let mut model = Promises {
        files: Files::default(),
        descriptions: Vec::new(),
        processes: vec![first],
        actors: [0; ACTORS],
        end_ns,
    };
    for (at, (step, result)) in program.steps.iter().zip(&outcome.results).enumerate() {
        // A call that never ended, such as fork before a kill, may have had its effect.
        match result.progress {
            // Of what file it was the call depends on who was first.
            Progress::Done if Races::of(program, outcome, at).is_open => {}
            Progress::Done if is_cut(step, result) => match model.description(step) {
                Some(description) if !step.op.is_name() => {
                    if let Target::File(id) = description.target {
                        model.files.forget(id);
                    }
                }
                _ => return Vec::new(),
            },
            Progress::Done => model.apply(at, step, result),
            Progress::Begun if !step.op.is_sync() => break,
            _ => {}
        }
    }
    model.files.broken_promises(disk)
}

/// Whether a change failed because the disk was cut. It may have been made nevertheless.
fn is_cut(step: &Step, result: &StepResult) -> bool {
    let fails = result.value == -1 && [libc::EIO, libc::EROFS].contains(&result.error);
    fails && !step.op.is_sync()
}

impl Promises {
    fn process(&mut self, actor: u8) -> &mut Process {
        let process = self.actors[usize::from(actor)];
        &mut self.processes[process]
    }

    /// Returns the descriptor's number in a slot.
    fn number(&mut self, step: &Step) -> i32 {
        let slot = step.arguments[0] as usize % SLOTS;
        self.process(step.actor).slots[slot]
    }

    fn description(&mut self, step: &Step) -> Option<&mut Description> {
        let number = self.number(step);
        let &(at, _) = self.process(step.actor).table.get(&number)?;
        Some(&mut self.descriptions[at])
    }

    fn target(&mut self, step: &Step) -> Option<Target> {
        self.description(step).map(|one| one.target)
    }

    fn apply(&mut self, at: usize, step: &Step, result: &StepResult) {
        let [a, b, c, _] = step.arguments;
        let is_zero = result.value == 0 && !result.has_jumped;
        match step.op {
            Op::Open if result.value >= 0 => self.open(step, result.value as i32),
            Op::Special if result.value >= 0 => {
                self.insert(step, result.value as i32, Target::Other, 0);
            }
            Op::Write if result.value > 0 => self.write(at, step, None, result),
            Op::Pwrite if result.value > 0 => self.write(at, step, Some(b), result),
            Op::Truncate if is_zero => self.change(step, |content| content.resize(b as usize)),
            Op::Allocate if is_zero && b == 0 => self.change(step, |content| {
                let size = content.size().max(c as usize);
                content.resize(size);
            }),
            Op::Rename if is_zero => self.files.rename(a, b),
            Op::Link if is_zero => self.files.link(a, b),
            Op::Unlink if is_zero => self.files.unlink(a),
            Op::Fsync | Op::Fdatasync | Op::Syncfs if is_zero => {
                let target = self.target(step);
                let sync = match step.op {
                    Op::Fsync => Sync::All,
                    Op::Syncfs => Sync::System,
                    _ => Sync::Data,
                };
                self.acknowledge(target, sync, result);
            }
            Op::FsyncNumber if is_zero => {
                let table = &self.process(step.actor).table;
                let found = table.get(&a).map(|(at, _)| *at);
                let target = found.map(|at| self.descriptions[at].target);
                let sync = if b == 0 { Sync::All } else { Sync::Data };
                self.acknowledge(target, sync, result);
            }
            Op::VforkSync | Op::SpawnSync
                if result.value == 0 && (step.op == Op::SpawnSync || result.second == 0) =>
            {
                let target = self.target(step);
                self.acknowledge(target, Sync::All, result);
            }
            Op::Msync if is_zero && b & libc::MS_SYNC != 0 => {
                let target = self.process(step.actor).maps[a as usize % 2];
                if let Some(Target::File(id)) = target
                    && result.ended_ns < self.end_ns
                {
                    match self.files.size(id) {
                        0..=files::MAP_CELLS => self.files.acknowledge(id, Sync::Data),
                        _ => self.files.acknowledge_cells(id, 0..files::MAP_CELLS),
                    }
                }
            }
            Op::Close if is_zero => {
                let number = self.number(step);
                self.process(step.actor).table.remove(&number);
            }
            Op::Dup if result.value >= 0 => {
                let number = self.number(step);
                let process = self.process(step.actor);
                process.slots[b as usize % SLOTS] = result.value as i32;
                process.copy(number, result.value as i32);
            }
            Op::Dup2 if result.value >= 0 => {
                let number = self.number(step);
                if i64::from(number) != result.value {
                    self.process(step.actor).copy(number, result.value as i32);
                }
            }
            Op::Map if is_zero => {
                let target = self.target(step);
                self.process(step.actor).maps[b as usize % 2] = target;
            }
            Op::Unmap if is_zero => self.process(step.actor).maps[a as usize % 2] = None,
            Op::Store if result.value > 0 => self.store(at, step),
            Op::Spawn if is_zero => {
                self.actors[a as usize] = self.actors[usize::from(step.actor)];
            }
            Op::Fork if result.value != -2 => {
                let copy = self.process(step.actor).clone();
                self.processes.push(copy);
                if is_zero {
                    self.actors[a as usize] = self.processes.len() - 1;
                }
            }
            Op::Exec if is_zero => {
                let process = self.process(step.actor);
                process.table.retain(|_, (_, closes)| !*closes);
                process.maps = [None; 2];
            }
            _ => {}
        }
    }

    fn insert(&mut self, step: &Step, number: i32, target: Target, flags: i32) {
        let at = self.descriptions.len();
        self.descriptions.push(Description { target, offset: 0, flags });
        let process = self.process(step.actor);
        process.slots[step.arguments[0] as usize % SLOTS] = number;
        let closes = flags & open::CLOEXEC != 0;
        process.table.insert(number, (at, closes));
    }

    fn open(&mut self, step: &Step, number: i32) {
        let [_, file, flags, _] = step.arguments;
        let target = match file {
            FOLDER => Target::Folder,
            0..FILES => {
                let id = self.files.open(file);
                if flags & (open::TRUNCATE | open::PATH) == open::TRUNCATE {
                    self.files.change(id, |content| content.resize(0));
                }
                Target::File(id)
            }
            _ => Target::Other,
        };
        let target = if flags & open::PATH != 0 { Target::Other } else { target };
        self.insert(step, number, target, flags);
    }

    fn write(&mut self, at: usize, step: &Step, cell: Option<i32>, result: &StepResult) {
        let cells = result.value / files::CELL_BYTES as i64;
        let Some(&mut Description { target, offset, flags }) = self.description(step) else {
            return;
        };
        let Target::File(id) = target else { return };
        // pwrite appends as well, if the file was opened so.
        let begin = match cell {
            _ if flags & open::APPEND != 0 => self.files.size(id) as i64,
            Some(cell) => i64::from(cell),
            None => offset,
        };
        let range = begin as usize..(begin + cells) as usize;
        if cell.is_none()
            && let Some(description) = self.description(step)
        {
            description.offset = begin + cells;
        }
        let value = at as u16 + 1;
        let written = range.clone();
        self.files.change(id, |content| content.write(written, value));
        let is_dsync = step.op == Op::Pwrite && step.arguments[3] != 0;
        let is_promised = flags & (open::DSYNC | open::SYNC) != 0 || is_dsync;
        if is_promised && result.ended_ns < self.end_ns {
            self.files.acknowledge_cells(id, range);
        }
    }

    fn store(&mut self, at: usize, step: &Step) {
        let [map, cell, ..] = step.arguments;
        if let Some(Target::File(id)) = self.process(step.actor).maps[map as usize % 2] {
            self.files.store(id, cell as usize, at as u16 + 1);
        }
    }

    fn change(&mut self, step: &Step, change: impl FnOnce(&mut Content)) {
        if let Some(Target::File(id)) = self.target(step) {
            self.files.change(id, change);
        }
    }

    fn acknowledge(&mut self, target: Option<Target>, sync: Sync, result: &StepResult) {
        if result.ended_ns >= self.end_ns {
            return;
        }
        match (target, sync) {
            (Some(Target::File(_) | Target::Folder), Sync::System) => self.files.acknowledge_all(),
            (Some(Target::File(id)), _) => self.files.acknowledge(id, sync),
            (Some(Target::Folder), _) => self.files.acknowledge_names(),
            _ => {}
        }
    }
}

impl Process {
    fn copy(&mut self, number: i32, to: i32) {
        if let Some(&(at, _)) = self.table.get(&number) {
            self.table.insert(to, (at, false));
        }
    }
}
