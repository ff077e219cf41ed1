//! Writer of a personality's text.

use std::fmt::Write as _;
use std::path::Path;

use super::distribution_table::{variable, write_mean};
use super::episodes::{EpisodeLists, ThreadNameGroup};
use super::read_trace::TracedOperations;
use super::{DerivedCallCounts, DerivedPersonality};

/// A set has at least this many files, so that one is free while other threads hold some.
const MIN_FILES: u64 = 64;
/// Most files of a set.
const MAX_FILES: u64 = 200_000;
/// Largest file that is made before the run.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// Files are made of whole blocks of this size.
const BLOCK_BYTES: u64 = 4096;

/// Writes the work of `groups` in the trace at `directory`.
pub(super) fn write(
    directory: &Path,
    traced: &TracedOperations,
    groups: &[ThreadNameGroup],
) -> DerivedPersonality {
    let mut counts = DerivedCallCounts::default();
    for group in groups {
        let DerivedCallCounts { creations, removals, writes, reads, syncs, others } = group.counts;
        counts.creations += creations;
        counts.removals += removals;
        counts.writes += writes;
        counts.reads += reads;
        counts.syncs += syncs;
        counts.others += others;
    }
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut head = format!("# Made of the trace {}", one_line(&directory.display().to_string()));
    if !traced.command.is_empty() {
        let _ = write!(head, " of `{}`", one_line(&traced.command));
    }
    let _ = writeln!(
        head,
        ".\n# {} creations, {} removals, {} writes, {} reads, {} syncs; left out: {} calls that the language has\n\
         # not (rename, mkdir, truncate, fallocate), {} on other file systems.\n\
         # Pauses between calls are kept; --set think=0 leaves them out.\n",
        counts.creations,
        counts.removals,
        counts.writes,
        counts.reads,
        counts.syncs,
        counts.others,
        traced.elsewhere
    );
    let mut parts =
        Parts { variables: "set $dir=/tmp\nset $think=1\n".to_owned(), ..Parts::default() };
    for (number, group) in groups.iter().enumerate() {
        parts.group(number + 1, group);
    }
    let Parts { variables, filesets, composites, processes } = parts;
    DerivedPersonality {
        text: format!("{head}{variables}\n{filesets}\n{composites}{processes}run 60\n"),
        counts,
    }
}

/// The parts of a personality, in their order.
#[derive(Default)]
struct Parts {
    variables: String,
    filesets: String,
    composites: String,
    processes: String,
}

impl Parts {
    fn group(&mut self, number: usize, group: &ThreadNameGroup) {
        let id = format!("g{number}");
        let fresh = group.fresh.count() as u64;
        // As many files are made as removed: else the disk would fill, or no file would be left to remove.
        let turns = fresh.max(group.counts.removals);
        let old = group.old.count() as f64;
        let mut flowops = String::new();
        if turns > 0 {
            self.write_fresh(&id, group);
            let _ = writeln!(flowops, "    flowop {id}make name={id}make");
        }
        if old > 0.0 {
            self.write_old(&id, group);
            let iters = if turns > 0 { write_mean(old / turns as f64) } else { "1".to_owned() };
            self.set(&id, "olditers", &iters);
            let _ = writeln!(flowops, "    flowop {id}use name={id}use,iters=${id}olditers");
        }
        if turns > 0 {
            let _ = writeln!(flowops, "    flowop {id}remove name={id}remove");
        }
        let name = if group.name.is_empty() { "unknown" } else { &group.name };
        let DerivedCallCounts { creations, removals, .. } = group.counts;
        let _ = write!(self.processes, "# Threads called '{}'.", make_plain(name));
        if creations != removals {
            let _ = write!(
                self.processes,
                " They made {creations} files and removed {removals}: here as many are made as removed."
            );
        }
        let _ = writeln!(
            self.processes,
            "\ndefine process name={id},instances=1 {{\n\
             \x20 thread name={id}thread,memsize=10m,instances={} {{\n{flowops}  }}\n}}\n",
            group.threads
        );
    }

    /// Writes the set of files that the group makes and removes.
    fn write_fresh(&mut self, id: &str, group: &ThreadNameGroup) {
        let files = (2 * group.live).clamp(MIN_FILES.max(8 * group.threads), MAX_FILES);
        let sizes: Vec<u64> =
            group.fresh_sizes.iter().map(|&size| size.clamp(1, MAX_FILE_BYTES)).collect();
        let size = if sizes.is_empty() { BLOCK_BYTES.to_string() } else { variable(&sizes) };
        self.set(id, "newsize", &size);
        let _ = writeln!(
            self.filesets,
            "define fileset name={id}new,path=$dir,size=${id}newsize,entries={files},dirwidth=1000,prealloc=50"
        );
        // A group that only removes files makes a whole new one for each.
        let body = if group.fresh.count() > 0 {
            self.body(id, "new", &group.fresh, true)
        } else {
            format!("  flowop writewholefile name={id}fill,filesetname={id}new,fd=1,iosize=1m\n")
        };
        let _ = writeln!(
            self.composites,
            "define flowop name={id}make {{\n\
             \x20 flowop createfile name={id}create,filesetname={id}new,fd=1\n\
             {body}  flowop closefile name={id}newclose,fd=1\n}}\n"
        );
        self.set(id, "removepause", &variable(&group.removal_pauses));
        let _ = writeln!(
            self.composites,
            "define flowop name={id}remove {{\n  flowop deletefile name={id}delete,filesetname={id}new\n  flowop think \
             name={id}removethink,value=${id}removepause,iters=$think\n}}\n"
        );
    }

    /// Writes the set of files that exist before the run.
    fn write_old(&mut self, id: &str, group: &ThreadNameGroup) {
        let largest = group.old.write_bytes.iter().chain(&group.old.read_bytes).max();
        let least = largest.copied().unwrap_or(1).next_multiple_of(BLOCK_BYTES);
        let whole = |&size: &u64| {
            size.next_multiple_of(BLOCK_BYTES).clamp(least, MAX_FILE_BYTES.max(least))
        };
        let sizes: Vec<u64> = group.old_sizes.iter().map(whole).collect();
        self.set(id, "oldsize", &variable(&sizes));
        let files = (sizes.len() as u64).clamp(1, MAX_FILES);
        let _ = writeln!(
            self.filesets,
            "define fileset name={id}old,path=$dir,size=${id}oldsize,entries={files},dirwidth=1000,prealloc"
        );
        let body = self.body(id, "old", &group.old, group.appends);
        let _ = writeln!(
            self.composites,
            "define flowop name={id}use {{\n  flowop openfile name={id}open,filesetname={id}old,fd=1\n{body}  flowop \
             closefile name={id}oldclose,fd=1\n}}\n"
        );
    }

    /// Writes the operations on an open file, and the pause.
    fn body(&mut self, id: &str, kind: &str, episodes: &EpisodeLists, grows: bool) -> String {
        let mut body = String::new();
        let random = if grows { "" } else { ",random" };
        // A new file grows from its beginning, one that exists from its end.
        let write = if grows && kind == "old" { "appendfile" } else { "write" };
        if !episodes.write_bytes.is_empty() {
            self.set(id, &format!("{kind}writes"), &variable(&episodes.writes));
            self.set(id, &format!("{kind}writesize"), &variable(&episodes.write_bytes));
            let _ = writeln!(
                body,
                "  flowop {write} name={id}{kind}write,fd=1,iosize=${id}{kind}writesize{random},iters=${id}{kind}writes"
            );
        }
        if !episodes.read_bytes.is_empty() {
            self.set(id, &format!("{kind}reads"), &variable(&episodes.reads));
            self.set(id, &format!("{kind}readsize"), &variable(&episodes.read_bytes));
            let _ = writeln!(
                body,
                "  flowop read name={id}{kind}read,fd=1,iosize=${id}{kind}readsize{random},iters=${id}{kind}reads"
            );
        }
        if episodes.syncs.iter().any(|&syncs| syncs > 0) {
            self.set(id, &format!("{kind}syncs"), &variable(&episodes.syncs));
            let _ =
                writeln!(body, "  flowop fsync name={id}{kind}sync,fd=1,iters=${id}{kind}syncs");
        }
        self.set(id, &format!("{kind}pause"), &variable(&episodes.pauses));
        let _ = writeln!(
            body,
            "  flowop think name={id}{kind}think,value=${id}{kind}pause,iters=$think"
        );
        body
    }

    fn set(&mut self, id: &str, name: &str, value: &str) {
        let _ = writeln!(self.variables, "set ${id}{name}={value}");
    }
}

/// Makes a name fit for a comment.
fn make_plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}
