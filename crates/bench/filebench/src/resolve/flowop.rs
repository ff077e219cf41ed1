//! Resolution of flowops: task, files and sizes.

use super::super::ast::Attributes;
use super::super::diagnostic::{Diagnostic, Position};
use super::super::plan::{Flowop, Plan, Target, Task};
use super::super::words;
use super::scope::Scope;

/// A file may have this many flowops; a composite counts at each use.
pub(super) const MAX_FLOWOPS: usize = 1 << 16;

impl Scope {
    pub(super) fn flowop(
        &self,
        plan: &mut Plan,
        at: Position,
        kind: &str,
        given: &Attributes,
        around: &str,
    ) -> Result<Flowop, Diagnostic> {
        // 1. Task, files and sizes, which must fit each other.
        let task = task(at, kind)?;
        let name = self.required(given, "name")?;
        let files = self.files_of(plan, given)?;
        if plan.memories >= MAX_FLOWOPS {
            let advice = format!("use at most {MAX_FLOWOPS}, fewer composites in each other");
            return Err(Diagnostic::new(at, "too many flowops", advice));
        }
        if needs_files(task, given) && files.is_none() {
            return Err(Diagnostic::new(
                given.at,
                format!("{kind} without a fileset"),
                "add filesetname=NAME",
            ));
        }
        let (fd, srcfd) = (self.slot(given, "fd")?, self.slot(given, "srcfd")?);
        let iosize = self.number_or(given, "iosize", 0)?;
        let sized = matches!(
            task,
            Task::Read | Task::Write | Task::Append | Task::AppendRandom | Task::AioWrite
        );
        if sized && iosize.is(0) {
            return Err(Diagnostic::new(
                given.at,
                format!("{kind} without a size"),
                "add iosize=BYTES",
            ));
        }
        let random = self.boolean(given, "random")?;
        if task == Task::AioWrite && !random {
            return Err(Diagnostic::new(
                given.at,
                "aiowrite writes at random places only",
                "add random, or use write",
            ));
        }
        let target = given
            .get("target")
            .map(|found| Ok(Target::Named(found.at, self.text(found)?)))
            .transpose()?;
        // 2. The flowop, with its other attributes.
        plan.memories += 1;
        Ok(Flowop {
            task,
            at,
            operation: operation(plan, format!("{around}{name}")),
            name,
            files,
            fd,
            srcfd,
            iosize,
            iters: self.number_or(given, "iters", 1)?,
            value: self.number_or(given, "value", 0)?,
            workingset: self.integer_or(given, "workingset", 0)?,
            random,
            direct: self.boolean(given, "directio")?,
            dsync: self.boolean(given, "dsync")?,
            indexed: given
                .get("indexed")
                .map(|found| self.number(found.at, &found.value))
                .transpose()?,
            opennext: self.boolean(given, "opennext")?,
            no_readahead: self.boolean(given, "noreadahead")?,
            blocking: self.boolean(given, "blocking")?,
            highwater: self.integer_or(given, "highwater", 1)?,
            target: target.unwrap_or(Target::None),
            point: 0,
            memory: plan.memories - 1,
        })
    }

    /// Returns the fileset that a flowop names, as an index into the plan's.
    fn files_of(&self, plan: &Plan, given: &Attributes) -> Result<Option<usize>, Diagnostic> {
        let Some(found) = given.get("filename").or_else(|| given.get("filesetname")) else {
            return Ok(None);
        };
        let wanted = self.text(found)?;
        let mut names = plan.filesets.iter().map(|files| &*files.name);
        let place = names.position(|name| name == wanted);
        place.map(Some).ok_or_else(|| {
            let known: Vec<&str> = plan.filesets.iter().map(|files| &*files.name).collect();
            Diagnostic::unknown(found.at, "file or fileset", &wanted, &known)
        })
    }

    /// Returns the open file of this number.
    fn slot(&self, given: &Attributes, name: &str) -> Result<usize, Diagnostic> {
        match self.integer_or(given, name, 0)? {
            fd @ 0..=127 => Ok(fd as usize),
            fd => Err(Diagnostic::new(
                given.at,
                format!("{name}={fd} is out of range"),
                "use 0 to 127",
            )),
        }
    }
}

/// Returns whether a flowop must name its fileset, since it picks a file there and has none open.
fn needs_files(task: Task, given: &Attributes) -> bool {
    match task {
        Task::Open
        | Task::Create
        | Task::FsyncSet
        | Task::MakeDirectory
        | Task::RemoveDirectory
        | Task::ListDirectory => true,
        Task::Delete | Task::Stat => given.get("fd").is_none(),
        _ => false,
    }
}

/// Returns the place of a flowop's name among the plan's, where flowops of one name are counted together.
fn operation(plan: &mut Plan, name: String) -> usize {
    *plan.name_places.entry(name).or_insert_with_key(|name| {
        plan.names.push(name.clone());
        plan.names.len() - 1
    })
}

fn task(at: Position, kind: &str) -> Result<Task, Diagnostic> {
    Ok(match kind {
        "openfile" => Task::Open,
        "createfile" => Task::Create,
        "closefile" => Task::Close,
        "deletefile" => Task::Delete,
        "statfile" => Task::Stat,
        "fsync" => Task::Fsync,
        "fsyncset" => Task::FsyncSet,
        "read" => Task::Read,
        "write" => Task::Write,
        "readwholefile" => Task::ReadWhole,
        "writewholefile" => Task::WriteWhole,
        "appendfile" => Task::Append,
        "appendfilerand" => Task::AppendRandom,
        "makedir" => Task::MakeDirectory,
        "removedir" => Task::RemoveDirectory,
        "listdir" => Task::ListDirectory,
        "aiowrite" => Task::AioWrite,
        "aiowait" => Task::AioWait,
        "delay" => Task::Delay,
        "think" => Task::Think,
        "hog" => Task::Hog,
        "block" => Task::Block,
        "wakeup" => Task::Wakeup,
        "semblock" => Task::SemaphoreBlock,
        "sempost" => Task::SemaphorePost,
        "eventlimit" => Task::EventLimit,
        "iopslimit" => Task::TransferLimit,
        "opslimit" => Task::OperationLimit,
        "bwlimit" => Task::BandwidthLimit,
        "finishoncount" => Task::FinishOnCount,
        "finishonbytes" => Task::FinishOnBytes,
        "print" => Task::Print,
        "testrandvar" => Task::TestRandom,
        other => return Err(Diagnostic::unknown(at, "flowop", other, words::FLOWOPS)),
    })
}
