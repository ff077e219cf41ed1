//! Flowops: what each does, on which files, and how much.

use super::super::ast::Attributes;
use super::super::mistake::{Mistake, Position};
use super::super::plan::{Flowop, Plan, Task};
use super::missing;
use super::scope::Scope;

impl Scope {
    pub(super) fn flowop(
        &self,
        plan: &mut Plan,
        at: Position,
        kind: &str,
        given: &Attributes,
    ) -> Result<Flowop, Mistake> {
        let task = task(at, kind)?;
        for name in ["indexed", "opennext", "target", "noreadahead"] {
            if let Some(found) = given.get(name) {
                return Err(missing(found.at, name, "remove it"));
            }
        }
        let name = self.required(given, "name")?;
        let files = ["filename", "filesetname"]
            .into_iter()
            .find_map(|name| given.get(name));
        let files = files
            .map(|found| {
                let wanted = self.text(found)?;
                plan.filesets
                    .iter()
                    .position(|files| files.name == wanted)
                    .ok_or_else(|| {
                        let known: Vec<&str> =
                            plan.filesets.iter().map(|files| &*files.name).collect();
                        Mistake::unknown(found.at, "file or fileset", &wanted, &known)
                    })
            })
            .transpose()?;
        let slot = |name: &str| match self.integer_or(given, name, 0)? {
            fd @ 0..=127 => Ok(fd as usize),
            fd => Err(Mistake::new(
                given.at,
                format!("{name}={fd} is out of range"),
                "use 0 to 127",
            )),
        };
        let needs_files = matches!(task, Task::Open | Task::Create | Task::Delete | Task::Stat);
        if needs_files && files.is_none() {
            return Err(Mistake::new(
                given.at,
                format!("{kind} without a fileset"),
                "add filesetname=NAME",
            ));
        }
        let (fd, srcfd) = (slot("fd")?, slot("srcfd")?);
        let iosize = self.number_or(given, "iosize", 0)?;
        let sized = matches!(
            task,
            Task::Read | Task::Write | Task::Append | Task::AppendRandom
        );
        if sized && iosize.is(0) {
            return Err(Mistake::new(
                given.at,
                format!("{kind} without a size"),
                "add iosize=BYTES",
            ));
        }
        let operation = plan
            .names
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                plan.names.push(name);
                plan.names.len() - 1
            });
        Ok(Flowop {
            task,
            operation,
            files,
            fd,
            srcfd,
            iosize,
            iters: self.number_or(given, "iters", 1)?,
            value: self.number_or(given, "value", 0)?,
            workingset: self.integer_or(given, "workingset", 0)?,
            random: self.boolean(given, "random")?,
            direct: self.boolean(given, "directio")?,
            dsync: self.boolean(given, "dsync")?,
        })
    }
}

fn task(at: Position, kind: &str) -> Result<Task, Mistake> {
    Ok(match kind {
        "openfile" => Task::Open,
        "createfile" => Task::Create,
        "closefile" => Task::Close,
        "deletefile" => Task::Delete,
        "statfile" => Task::Stat,
        "fsync" => Task::Fsync,
        "read" => Task::Read,
        "write" => Task::Write,
        "readwholefile" => Task::ReadWhole,
        "writewholefile" => Task::WriteWhole,
        "appendfile" => Task::Append,
        "appendfilerand" => Task::AppendRandom,
        "delay" => Task::Delay,
        "hog" => Task::Hog,
        "eventlimit" | "opslimit" | "iopslimit" | "bwlimit" => Task::Free,
        other => {
            return Err(missing(
                at,
                &format!("flowop {other}"),
                "remove it, or use another flowop",
            ));
        }
    })
}
