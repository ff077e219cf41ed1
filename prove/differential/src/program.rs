//! A program: steps that actors take in turn. Its text can be read, changed and replayed.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, bail};

/// Maximum number of a program's actors, threads and processes. Actor 0 is there from the beginning.
pub(crate) const ACTORS: usize = 8;
/// Number of a process' variables, each of which holds the number of a descriptor.
pub(crate) const SLOTS: usize = 16;
/// Maximum number of a program's steps.
pub(crate) const MAX_STEPS: usize = 64;
/// Number of a step's arguments.
pub(crate) const ARGUMENTS: usize = 4;

macro_rules! ops {
    ($($op:ident $name:literal $arguments:expr;)*) => {
        /// Operation of a step, in the interpreter's order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Op {
            $($op,)*
        }

        /// Names of each operation and of its arguments.
        const OPS: &[(Op, &str, &[&str])] = &[$((Op::$op, $name, &$arguments),)*];
    };
}

ops! {
    Open "open" ["slot", "file", "flags"];
    Special "special" ["slot", "kind"];
    Write "write" ["slot", "cells"];
    Pwrite "pwrite" ["slot", "cell", "cells", "dsync"];
    Truncate "truncate" ["slot", "cells"];
    Allocate "allocate" ["slot", "keep", "cells"];
    Rename "rename" ["file", "to"];
    Link "link" ["file", "to"];
    Unlink "unlink" ["file"];
    Fsync "fsync" ["slot", "way"];
    Fdatasync "fdatasync" ["slot", "way"];
    Syncfs "syncfs" ["slot"];
    Range "sync_file_range" ["slot", "flags"];
    FsyncNumber "fsync_number" ["number", "data"];
    Close "close" ["slot"];
    Dup "dup" ["slot", "to"];
    Dup2 "dup2" ["slot", "onto"];
    Map "map" ["slot", "map"];
    Store "store" ["map", "cell"];
    Msync "msync" ["map", "flags"];
    Unmap "unmap" ["map"];
    Spawn "spawn" ["actor"];
    Fork "fork" ["actor"];
    VforkSync "vfork_sync" ["slot"];
    SpawnSync "spawn_sync" ["slot"];
    Wait "wait" ["actor"];
    Exec "exec" [];
    Action "action" ["signal", "flags", "kind", "slot"];
    Stack "stack" ["more"];
    Kill "kill" ["actor", "signal", "times", "gap_us"];
    Timer "timer" ["us"];
    Settle "settle" ["actor", "us"];
    Join "join" ["actor"];
    Cancel "cancel" ["actor"];
    CancelState "cancel_state" ["enabled"];
    CleanUp "clean_up" ["slot"];
    Limit "limit" ["which", "value"];
    End "end" [];
    Exit "exit" ["code", "how"];
    KillProcess "kill_process" ["actor"];
}

impl Op {
    /// Whether the operation may be asynchronous: the next step begins while its call is under way.
    pub(crate) fn is_sync(self) -> bool {
        use Op::{Fdatasync, Fsync, FsyncNumber, Msync, Range, Syncfs};
        matches!(self, Fsync | Fdatasync | Syncfs | Range | FsyncNumber | Msync)
    }

    /// Whether the operation works on names, so that its first argument is no descriptor.
    pub(crate) fn is_name(self) -> bool {
        use Op::{Link, Open, Rename, Unlink};
        matches!(self, Link | Open | Rename | Unlink)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) actor: u8,
    pub(crate) is_async: bool,
    pub(crate) arguments: [i32; ARGUMENTS],
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, arguments) = OPS[self.op as usize];
        write!(f, "{} {name}", self.actor)?;
        for (argument, value) in arguments.iter().zip(self.arguments) {
            write!(f, " {argument}={value}")?;
        }
        if self.is_async {
            f.write_str(" async")?;
        }
        Ok(())
    }
}

impl FromStr for Step {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut words = text.split_whitespace();
        let actor: u8 = words.next().context("no actor")?.parse().context("actor")?;
        let name = words.next().context("no operation")?;
        let found = OPS.iter().find(|(_, other, _)| *other == name);
        let &(op, _, names) = found.with_context(|| format!("no operation is called {name}"))?;
        let mut step = Self { op, actor, is_async: false, arguments: [0; ARGUMENTS] };
        for word in words {
            if word == "async" {
                step.is_async = true;
                continue;
            }
            let (argument, value) = word.split_once('=').context("neither NAME=VALUE nor async")?;
            let at = names.iter().position(|other| *other == argument);
            let at = at.with_context(|| format!("{name} has no {argument}"))?;
            step.arguments[at] = value.parse().with_context(|| argument.to_owned())?;
        }
        if usize::from(actor) >= ACTORS || step.is_async && !op.is_sync() {
            bail!("actors are 0 to {}, and only calls that may be held async", ACTORS - 1);
        }
        if names.first() == Some(&"actor") && !(0..ACTORS as i32).contains(&step.arguments[0]) {
            bail!("actors are 0 to {}", ACTORS - 1);
        }
        Ok(step)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl FromStr for Program {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate();
        let lines = lines.map(|(at, line)| (at, line.split('#').next().unwrap_or_default().trim()));
        let steps = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(at, line)| line.parse().with_context(|| format!("line {}", at + 1)));
        let steps = steps.collect::<Result<Vec<Step>, Error>>()?;
        if steps.len() > MAX_STEPS {
            bail!("a program has {MAX_STEPS} steps at most");
        }
        Ok(Self { steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_its_text() {
        for seed in 0..500 {
            let program = crate::generate::program(seed);
            let read: Program = program.to_string().parse().expect("readable");
            assert_eq!(read, program, "seed {seed}");
            assert_eq!(crate::generate::program(seed), program);
        }
    }

    #[test]
    fn mistakes_are_told() {
        for text in [
            "0 fsnc slot=1",
            "9 fsync slot=1",
            "0 fsync slto=1",
            "0 close slot=1 async",
            "0 spawn actor=8",
        ] {
            assert!(text.parse::<Program>().is_err(), "{text}");
        }
    }
}
