//! Resolution of flowops: task, files and sizes.

use super::super::ast::AstAttributes;
use super::super::diagnostic::{Diagnostic, TextPosition};
use super::super::language_words;
use super::super::plan::{FlowopKind, FlowopTarget, PlannedFlowop, WorkloadPlan};
use super::scope::VariableScope;

/// A file may have this many flowops; a composite counts at each use.
pub(super) const MAX_FLOWOPS: usize = 1 << 16;

impl VariableScope {
    pub(super) fn flowop(
        &self,
        plan: &mut WorkloadPlan,
        at: TextPosition,
        kind: &str,
        given: &AstAttributes,
        around: &str,
    ) -> Result<PlannedFlowop, Diagnostic> {
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
            FlowopKind::Read
                | FlowopKind::Write
                | FlowopKind::Append
                | FlowopKind::AppendRandom
                | FlowopKind::AioWrite
        );
        if sized && iosize.is(0) {
            return Err(Diagnostic::new(
                given.at,
                format!("{kind} without a size"),
                "add iosize=BYTES",
            ));
        }
        let random = self.boolean(given, "random")?;
        if task == FlowopKind::AioWrite && !random {
            return Err(Diagnostic::new(
                given.at,
                "aiowrite writes at random places only",
                "add random, or use write",
            ));
        }
        let target = given
            .get("target")
            .map(|found| Ok(FlowopTarget::Named(found.at, self.text(found)?)))
            .transpose()?;
        // 2. The flowop, with its other attributes.
        plan.memories += 1;
        Ok(PlannedFlowop {
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
            target: target.unwrap_or(FlowopTarget::None),
            point: 0,
            memory: plan.memories - 1,
        })
    }

    /// Returns the fileset that a flowop names, as an index into the plan's.
    fn files_of(
        &self,
        plan: &WorkloadPlan,
        given: &AstAttributes,
    ) -> Result<Option<usize>, Diagnostic> {
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
    fn slot(&self, given: &AstAttributes, name: &str) -> Result<usize, Diagnostic> {
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
fn needs_files(task: FlowopKind, given: &AstAttributes) -> bool {
    match task {
        FlowopKind::Open
        | FlowopKind::Create
        | FlowopKind::FsyncSet
        | FlowopKind::MakeDirectory
        | FlowopKind::RemoveDirectory
        | FlowopKind::ListDirectory => true,
        FlowopKind::Delete | FlowopKind::Stat => given.get("fd").is_none(),
        _ => false,
    }
}

/// Returns the place of a flowop's name among the plan's, where flowops of one name are counted together.
fn operation(plan: &mut WorkloadPlan, name: String) -> usize {
    *plan.name_places.entry(name).or_insert_with_key(|name| {
        plan.names.push(name.clone());
        plan.names.len() - 1
    })
}

fn task(at: TextPosition, kind: &str) -> Result<FlowopKind, Diagnostic> {
    Ok(match kind {
        "openfile" => FlowopKind::Open,
        "createfile" => FlowopKind::Create,
        "closefile" => FlowopKind::Close,
        "deletefile" => FlowopKind::Delete,
        "statfile" => FlowopKind::Stat,
        "fsync" => FlowopKind::Fsync,
        "fsyncset" => FlowopKind::FsyncSet,
        "read" => FlowopKind::Read,
        "write" => FlowopKind::Write,
        "readwholefile" => FlowopKind::ReadWhole,
        "writewholefile" => FlowopKind::WriteWhole,
        "appendfile" => FlowopKind::Append,
        "appendfilerand" => FlowopKind::AppendRandom,
        "makedir" => FlowopKind::MakeDirectory,
        "removedir" => FlowopKind::RemoveDirectory,
        "listdir" => FlowopKind::ListDirectory,
        "aiowrite" => FlowopKind::AioWrite,
        "aiowait" => FlowopKind::AioWait,
        "delay" => FlowopKind::Delay,
        "think" => FlowopKind::Think,
        "hog" => FlowopKind::Hog,
        "block" => FlowopKind::Block,
        "wakeup" => FlowopKind::Wakeup,
        "semblock" => FlowopKind::SemaphoreBlock,
        "sempost" => FlowopKind::SemaphorePost,
        "eventlimit" => FlowopKind::EventLimit,
        "iopslimit" => FlowopKind::TransferLimit,
        "opslimit" => FlowopKind::OperationLimit,
        "bwlimit" => FlowopKind::BandwidthLimit,
        "finishoncount" => FlowopKind::FinishOnCount,
        "finishonbytes" => FlowopKind::FinishOnBytes,
        "print" => FlowopKind::Print,
        "testrandvar" => FlowopKind::TestRandom,
        other => return Err(Diagnostic::unknown(at, "flowop", other, language_words::FLOWOPS)),
    })
}
