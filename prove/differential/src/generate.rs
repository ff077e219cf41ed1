//! Random programs. The same seed gives the same program.
//!
//! A program is deterministic but for the calls under test. Every step ends before the next begins. An asynchronous
//! step is seen asleep in its call before another actor interferes.

mod actors;

use rand::{Rng, RngExt as _};

use crate::program::{ACTORS, ARGUMENTS, MAX_STEPS, Op, Program, Step};

/// Number of files on the file system under test.
pub(crate) const FILES: i32 = 6;
/// Number that stands for the program's own folder.
pub(crate) const FOLDER: i32 = 6;
/// Number of slots that steps use freely.
const FREE_SLOTS: i32 = 8;
/// Slot of a handler, whose file stays open.
const HANDLER_SLOT: i32 = 15;

/// Bits of open's flags.
pub(crate) mod open {
    pub(crate) const READ_ONLY: i32 = 1;
    pub(crate) const CREATE: i32 = 2;
    pub(crate) const TRUNCATE: i32 = 4;
    pub(crate) const DSYNC: i32 = 8;
    pub(crate) const APPEND: i32 = 16;
    pub(crate) const CLOEXEC: i32 = 32;
    pub(crate) const PATH: i32 = 64;
    pub(crate) const EXCLUSIVE: i32 = 128;
    pub(crate) const SYNC: i32 = 256;
}

pub(crate) mod handler {
    pub(crate) const SYNC: i32 = 1;
    pub(crate) const JUMP: i32 = 2;
}

/// Makes the program of a seed.
pub(crate) fn program(seed: u64) -> Program {
    let mut random = luc_stats::seeded_random::stream(seed, 0);
    let budget = random.random_range(6..34);
    let mut generator = Generator::new(&mut random);
    generator.open();
    while generator.steps.len() < budget {
        generator.step();
    }
    generator.end();
    generator.steps.truncate(MAX_STEPS);
    Program { steps: generator.steps }
}

#[derive(Debug, Clone, Copy)]
struct Actor {
    number: u8,
    process: usize,
    is_thread: bool,
}

struct Generator<'r, R> {
    random: &'r mut R,
    steps: Vec<Step>,
    actors: Vec<Actor>,
    /// Numbers of the next actor and the next process.
    next: (u8, usize),
    /// Actor that takes the next step.
    at: Actor,
    /// Signals that have a handler, for each process.
    handled: [[bool; 2]; ACTORS],
    /// Processes in which a cancel may meet a handler that jumps out of a call or has a small stack.
    spoils_cancel: [bool; ACTORS],
    /// Slots that have been opened, as bits, for each process.
    opened: [u32; ACTORS],
    /// Whether a limit may keep threads or programs from starting.
    is_limited: bool,
    has_timer: bool,
}

impl<'r, R: Rng> Generator<'r, R> {
    fn new(random: &'r mut R) -> Self {
        let first = Actor { number: 0, process: 0, is_thread: false };
        Self {
            random,
            steps: Vec::new(),
            actors: vec![first],
            next: (1, 1),
            at: first,
            handled: [[false; 2]; ACTORS],
            spoils_cancel: [false; ACTORS],
            opened: [0; ACTORS],
            is_limited: false,
            has_timer: false,
        }
    }

    fn below(&mut self, end: i32) -> i32 {
        self.random.random_range(0..end)
    }

    fn chance(&mut self, percent: i32) -> bool {
        self.below(100) < percent
    }

    fn pick(&mut self, among: &[i32]) -> i32 {
        let at = self.random.random_range(0..among.len());
        among[at]
    }

    fn push(&mut self, op: Op, arguments: &[i32]) {
        self.push_as(self.at.number, op, arguments, false);
    }

    fn push_as(&mut self, actor: u8, op: Op, arguments: &[i32], is_async: bool) {
        let mut all = [0; ARGUMENTS];
        all[..arguments.len()].copy_from_slice(arguments);
        self.steps.push(Step { op, actor, is_async, arguments: all });
    }

    /// Returns a slot that has been opened, most of the time.
    fn slot(&mut self) -> i32 {
        let opened = self.opened[self.at.process];
        let slots: Vec<i32> = (0..FREE_SLOTS).filter(|slot| opened & 1 << slot != 0).collect();
        if slots.is_empty() || self.chance(12) {
            return self.below(FREE_SLOTS);
        }
        self.pick(&slots)
    }

    /// Returns any slot, to be opened.
    fn any_slot(&mut self) -> i32 {
        let slot = self.below(FREE_SLOTS);
        self.opened[self.at.process] |= 1 << slot;
        slot
    }

    /// Adds a step of any actor, or several steps that belong together.
    fn step(&mut self) {
        let who = self.random.random_range(0..self.actors.len());
        self.at = self.actors[who];
        match self.below(100) {
            0..14 => self.open(),
            14..30 => self.write(),
            30..35 => self.name(),
            35..49 => self.sync(false),
            49..70 => self.interfere(),
            70..75 => self.descriptor(),
            75..79 => self.map(),
            79..82 => self.odd(),
            82..85 => self.thread(),
            85..87 => self.fork(),
            87..89 => self.child(),
            89..94 => self.handler(),
            94..96 => self.limit(),
            96..97 => self.execute(),
            _ => self.leave(),
        }
    }

    fn open(&mut self) {
        let slot = self.any_slot();
        let (file, flags) = match self.below(20) {
            0 => (FOLDER, open::READ_ONLY),
            1 => (7, open::CREATE),
            2 => (self.pick(&[9, 10]), open::READ_ONLY),
            3 => (self.below(FILES), open::PATH),
            4 => (self.below(FILES), open::READ_ONLY),
            5 => (self.below(FILES), open::CREATE | open::EXCLUSIVE),
            6 => (self.below(FILES), open::CREATE | open::DSYNC),
            7 => (self.below(FILES), open::CREATE | open::SYNC),
            8 => (self.below(FILES), open::CREATE | open::APPEND),
            9 => (self.below(FILES), open::CREATE | open::CLOEXEC),
            10..13 => (self.below(FILES), open::CREATE | open::TRUNCATE),
            _ => (self.below(FILES), open::CREATE),
        };
        self.push(Op::Open, &[slot, file, flags]);
        if self.chance(70) {
            let cells = 1 + self.below(4);
            self.push(Op::Write, &[slot, cells]);
        }
    }

    fn write(&mut self) {
        let slot = self.slot();
        match self.below(10) {
            0..4 => {
                let cells = 1 + self.below(4);
                self.push(Op::Write, &[slot, cells]);
            }
            4..7 => {
                let (cell, cells) = (self.below(12), 1 + self.below(4));
                let dsync = i32::from(self.chance(20));
                self.push(Op::Pwrite, &[slot, cell, cells, dsync]);
            }
            7..9 => {
                let cells = self.below(16);
                self.push(Op::Truncate, &[slot, cells]);
            }
            _ => {
                let (keep, cells) = (self.below(2), 1 + self.below(16));
                self.push(Op::Allocate, &[slot, keep, cells]);
            }
        }
    }

    fn name(&mut self) {
        let (from, to) = (self.below(FILES), self.below(FILES));
        match self.below(5) {
            0..2 => self.push(Op::Rename, &[from, to]),
            2 => self.push(Op::Link, &[from, to]),
            _ => self.push(Op::Unlink, &[from]),
        }
    }

    fn sync(&mut self, is_async: bool) {
        let slot = self.slot();
        if self.chance(60) {
            let cells = 1 + self.below(3);
            self.push(Op::Write, &[slot, cells]);
        }
        self.sync_of(self.at.number, slot, is_async);
    }

    fn sync_of(&mut self, actor: u8, slot: i32, is_async: bool) {
        let way = self.pick(&[0, 0, 0, 0, 0, 1, 2]);
        match self.below(20) {
            0 => self.push_as(actor, Op::Syncfs, &[slot], is_async),
            1 => {
                let flags = self.pick(&[0, 1, 2, 4, 7]);
                self.push_as(actor, Op::Range, &[slot, flags], is_async);
            }
            2..8 => self.push_as(actor, Op::Fdatasync, &[slot, way], is_async),
            _ => self.push_as(actor, Op::Fsync, &[slot, way], is_async),
        }
    }

    /// One actor synchronizes what was just written, and another one interferes.
    fn interfere(&mut self) {
        let mates = |generator: &Self| {
            let others = generator.actors.iter().filter(|other| {
                other.process == generator.at.process && other.number != generator.at.number
            });
            others.map(|other| i32::from(other.number)).collect::<Vec<_>>()
        };
        if mates(self).is_empty() {
            self.thread();
        }
        let mates = mates(self);
        if mates.is_empty() {
            return self.sync(true);
        }
        let other = self.pick(&mates) as u8;
        let mut slot = self.slot();
        if self.chance(50) {
            slot = self.any_slot();
            let file = self.below(FILES);
            self.push(Op::Open, &[slot, file, open::CREATE]);
        }
        if self.chance(20) {
            let map = self.below(2);
            self.push(Op::Map, &[slot, map]);
            let cell = self.below(4);
            self.push(Op::Truncate, &[slot, 4]);
            self.push(Op::Store, &[map, cell]);
            let flags = self.pick(&[libc::MS_SYNC, libc::MS_SYNC | libc::MS_INVALIDATE]);
            self.push_as(other, Op::Msync, &[map, flags], true);
        } else {
            let cells = 1 + self.below(3);
            self.push(Op::Write, &[slot, cells]);
            self.sync_of(other, slot, true);
        }
        for _ in 0..1 + self.below(2) {
            self.interference(other, slot);
        }
        if self.chance(70) {
            self.push(Op::Join, &[i32::from(other)]);
        }
    }

    /// Adds something that happens to an actor whose call is under way, or beside it.
    fn interference(&mut self, other: u8, slot: i32) {
        let target = i32::from(other);
        let process = self.at.process;
        let kind = self.below(16);
        if self.chance(80) {
            // A supervisor looks at a descriptor as soon as it is told of the call, which is a moment after it began.
            let closes = matches!(kind, 0..4 | 14);
            let us =
                self.pick(if closes { &[2000, 4000, 8000] } else { &[0, 300, 1000, 3000, 8000] });
            self.push(Op::Settle, &[target, us]);
        }
        match kind {
            0 => self.push(Op::Close, &[slot]),
            1 | 2 => {
                self.push(Op::Close, &[slot]);
                let (slot, file) = (self.any_slot(), self.pick(&[0, 1, 2, 3, 4, 5, 7]));
                self.push(Op::Open, &[slot, file, open::CREATE]);
            }
            3 => {
                let from = self.slot();
                self.push(Op::Dup2, &[from, slot]);
            }
            4..8 if self.handled[process] != [false; 2] => {
                let signal = i32::from(!self.handled[process][0] || self.handled[process][1]);
                let (times, gap) = (self.pick(&[1, 1, 3, 10]), self.pick(&[0, 50, 200, 1000]));
                self.push(Op::Kill, &[target, signal, times, gap]);
            }
            4..8 => {
                self.handler();
                self.interference(other, slot);
            }
            8 => {
                // A thread that jumps out of a call stays cancelable at any instruction.
                let is_thread = self.actors.iter().any(|one| one.number == other && one.is_thread);
                if is_thread && !self.spoils_cancel[process] {
                    self.push(Op::Cancel, &[target]);
                    self.actors.retain(|one| one.number != other);
                }
            }
            9 | 10 => self.fork(),
            11 => self.child(),
            12 => self.write(),
            13 => self.name(),
            14 => {
                let map = self.below(2);
                self.push(Op::Unmap, &[map]);
            }
            _ if self.chance(30) => self.execute(),
            _ => self.sync(false),
        }
    }

    fn descriptor(&mut self) {
        let (slot, other) = (self.slot(), self.any_slot());
        match self.below(6) {
            0 | 1 => self.push(Op::Dup, &[slot, other]),
            2 => self.push(Op::Dup2, &[slot, other]),
            _ => self.push(Op::Close, &[slot]),
        }
    }

    fn map(&mut self) {
        let (slot, map, cell) = (self.slot(), self.below(2), self.below(16));
        match self.below(5) {
            0 => self.push(Op::Map, &[slot, map]),
            1 | 2 => self.push(Op::Store, &[map, cell]),
            3 => {
                let flags = self.pick(&[
                    libc::MS_SYNC,
                    libc::MS_ASYNC,
                    libc::MS_INVALIDATE,
                    libc::MS_SYNC | libc::MS_ASYNC,
                    64,
                ]);
                self.push(Op::Msync, &[map, flags]);
            }
            _ => self.push(Op::Unmap, &[map]),
        }
    }

    /// Synchronizes descriptors that are no files, and numbers that are no descriptors.
    fn odd(&mut self) {
        if self.chance(50) {
            let (slot, kind) = (self.any_slot(), self.below(6));
            self.push(Op::Special, &[slot, kind]);
            self.sync_of(self.at.number, slot, false);
        } else {
            let number = self.pick(&[-1, 0, 2, 60, 1000, i32::MAX]);
            let data = self.below(2);
            self.push(Op::FsyncNumber, &[number, data]);
        }
    }

    fn end(&mut self) {
        if self.chance(50) {
            let (code, how) = (self.below(100), self.pick(&[0, 0, 1, 1, 2, 3]));
            self.push_as(0, Op::Exit, &[code, how], false);
        }
    }
}
