//! Steps that begin and end actors, and what may happen to them.

use rand::Rng;

use super::{Actor, FILES, Generator, HANDLER_SLOT, handler, open};
use crate::program::{ACTORS, Op};

impl<R: Rng> Generator<'_, R> {
    /// Returns the next actor's number, if there may be one.
    pub(super) fn another(&mut self) -> Option<u8> {
        let number = self.next.0;
        if usize::from(number) >= ACTORS {
            return None;
        }
        self.next.0 += 1;
        Some(number)
    }

    pub(super) fn thread(&mut self) {
        if self.is_limited {
            return;
        }
        let Some(number) = self.another() else {
            return;
        };
        self.push(Op::Spawn, &[i32::from(number)]);
        self.actors.push(Actor { number, process: self.at.process, is_thread: true });
        if self.chance(15) {
            let enabled = self.below(2);
            self.push_as(number, Op::CancelState, &[enabled], false);
        }
        if self.chance(15) {
            let slot = self.slot();
            self.push_as(number, Op::CleanUp, &[slot], false);
        }
    }

    pub(super) fn fork(&mut self) {
        let Some(number) = self.another() else {
            return;
        };
        self.push(Op::Fork, &[i32::from(number)]);
        let process = self.next.1;
        self.next.1 += 1;
        self.handled[process] = self.handled[self.at.process];
        self.opened[process] = self.opened[self.at.process];
        self.spoils_cancel[process] = self.spoils_cancel[self.at.process];
        self.actors.push(Actor { number, process, is_thread: false });
    }

    /// Adds a child process that only synchronizes.
    pub(super) fn child(&mut self) {
        let slot = self.slot();
        let op = if self.is_limited || self.chance(60) { Op::VforkSync } else { Op::SpawnSync };
        self.push(op, &[slot]);
    }

    pub(super) fn handler(&mut self) {
        let signal = self.below(2);
        let flags = self.below(4);
        let mut kind = self.pick(&[0, 0, 0, handler::SYNC, handler::JUMP]);
        if signal == 1 && self.has_timer {
            // A call takes longer than the timer, whose handler would never end.
            kind = 0;
        }
        if flags & 2 != 0 {
            let more = self.pick(&[0, 1024, 8192]);
            self.push(Op::Stack, &[more]);
        }
        if kind == handler::SYNC {
            let file = self.below(FILES);
            self.push(Op::Open, &[HANDLER_SLOT, file, open::CREATE]);
        }
        self.push(Op::Action, &[signal, flags, kind, HANDLER_SLOT]);
        self.handled[self.at.process][signal as usize] = true;
        // A thread that is canceled in a handler unwinds on its stack.
        self.spoils_cancel[self.at.process] |= kind == handler::JUMP || flags & 2 != 0;
        if signal == 1 && kind == 0 && !self.has_timer && self.chance(15) {
            let us = self.pick(&[500, 1500, 5000]);
            self.push(Op::Timer, &[us]);
            self.has_timer = true;
        }
    }

    pub(super) fn limit(&mut self) {
        let (which, value) = match self.below(3) {
            0 => (0, 3 + self.below(6)),
            1 => (1, self.below(12)),
            _ => (2, self.pick(&[0, 1 << 20])),
        };
        self.push(Op::Limit, &[which, value]);
        self.is_limited = true;
    }

    pub(super) fn execute(&mut self) {
        if self.is_limited {
            return;
        }
        self.push(Op::Exec, &[]);
        let at = self.at;
        self.handled[at.process] = [false; 2];
        self.spoils_cancel[at.process] = false;
        self.actors.retain(|one| one.process != at.process || one.number == at.number);
        let own = self.actors.iter_mut().find(|one| one.number == at.number);
        if let Some(own) = own {
            // It is its process' only thread then.
            own.is_thread = false;
        }
    }

    pub(super) fn leave(&mut self) {
        let at = self.at;
        if at.process == 0 && !at.is_thread {
            return;
        }
        if at.is_thread {
            self.push(Op::End, &[]);
            self.actors.retain(|one| one.number != at.number);
            return;
        }
        let (code, how) = (self.below(100), self.below(4));
        let others = self.actors.iter().filter(|one| one.process != at.process);
        let killer = others.map(|one| one.number).next().unwrap_or(0);
        if self.chance(30) {
            self.push_as(killer, Op::KillProcess, &[i32::from(at.number)], false);
        } else {
            self.push(Op::Exit, &[code, how]);
        }
        self.actors.retain(|one| one.process != at.process);
        if self.chance(50) {
            self.push_as(0, Op::Wait, &[i32::from(at.number)], false);
        }
    }
}
