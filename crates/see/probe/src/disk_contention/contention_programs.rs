//! Loads the programs that this kernel can run, and attaches them.

use std::ffi::OsStr;

use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder};

use crate::load_programs::{misses_of, no_map};
use crate::recording_capability::KernelTypes;
use crate::{ProbeError, libbpf_messages};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contention.bpf.o"));

/// A program on a tracepoint, and how many arguments of it the program reads.
struct Hook {
    program: &'static str,
    tracepoint: &'static str,
    arguments: u32,
}

const fn hook(tracepoint: &'static str, arguments: u32) -> Hook {
    Hook { program: tracepoint, tracepoint, arguments }
}

/// Nothing works without these.
const ALWAYS: &[Hook] = &[hook("block_rq_issue", 1), hook("block_rq_complete", 3)];
/// Submitter of a request, and its end once more: since Linux 6.3.
const ENDS: &[Hook] = &[hook("block_io_start", 1), hook("block_io_done", 1)];
/// Replacements for these on older kernels.
const NO_ENDS: &[Hook] = &[
    hook("block_getrq", 1),
    hook("block_rq_insert", 1),
    Hook { program: "block_rq_complete_2", tracepoint: "block_rq_complete", arguments: 3 },
];
/// Requests that come back, or are merged.
const RETURN: &[Hook] = &[hook("block_rq_requeue", 1), hook("block_rq_merge", 1)];
/// Dirtying of data: since Linux 5.18, and before.
const DIRTY_FOLIO: &[Hook] = &[hook("writeback_dirty_folio", 2)];
const DIRTY_PAGE: &[Hook] = &[hook("writeback_dirty_page", 2)];
/// Owner of the data that a flusher writes.
const FLUSHER: &[Hook] =
    &[hook("writeback_single_inode_start", 1), hook("writeback_single_inode", 0)];
/// Waits for file locks, and refusals.
const LOCKS: &[Hook] =
    &[hook("posix_lock_inode", 3), hook("flock_lock_inode", 3), hook("break_lease_block", 0)];
const EXT4_SYNC: &[Hook] = &[hook("ext4_sync_file_enter", 1), hook("ext4_sync_file_exit", 0)];
/// fsyncs on all file systems: on the kernel function `vfs_fsync_range`.
const ANY_SYNC: [&str; 3] = ["fsync_enter", "fsync_exit", "fsync_exit_2"];

/// Loaded and attached programs.
#[derive(Debug)]
pub(super) struct ContentionPrograms {
    /// Before the object: dropped first.
    _links: Vec<Link>,
    object: Object,
    /// Whether waits for file locks are visible.
    pub(super) sees_locks: bool,
    /// Events that cannot be seen here, one line each.
    pub(super) missing: Vec<String>,
}

impl ContentionPrograms {
    /// Loads and attaches all that this kernel has and does not refuse.
    pub(super) fn start() -> Result<Self, ProbeError> {
        let types = KernelTypes::if_allowed()?;
        let mut refused: Vec<String> = Vec::new();
        loop {
            let chosen = Chosen::of(&types, &refused)?;
            match load(&chosen.names) {
                Ok((object, links)) => {
                    return Ok(Self {
                        _links: links,
                        object,
                        sees_locks: chosen.sees_locks,
                        missing: chosen.missing,
                    });
                }
                // Not every kernel has fentry, and not everyone may use it: that shows when it is loaded or attached.
                Err(error) => {
                    let name = libbpf_messages::refused_program()
                        .or_else(|| chosen.any_sync().map(str::to_owned));
                    let is_needed =
                        |name: &String| ALWAYS.iter().any(|hook| hook.program == name.as_str());
                    let known = name
                        .filter(|name| !refused.contains(name) && !is_needed(name))
                        .ok_or(error)?;
                    refused.push(known);
                }
            }
        }
    }

    /// Returns the number of events that programs missed because they were already active on that processor.
    pub(super) fn missed(&self) -> u64 {
        let loaded = self.object.progs_mut().filter(|program| program.autoload());
        // What cannot be asked has been seen to miss nothing.
        loaded.map(|program| misses_of(&program).unwrap_or_default()).sum()
    }

    /// Returns the map of this name.
    pub(super) fn map(&self, name: &'static str) -> Result<MapHandle, ProbeError> {
        let refused = || ProbeError::refused(format!("map {name}"));
        let map = self
            .object
            .maps()
            .find(|map| map.name() == OsStr::new(name))
            .ok_or_else(|| no_map(name))?;
        MapHandle::try_from(&map).map_err(refused())
    }
}

struct Chosen {
    names: Vec<&'static str>,
    sees_locks: bool,
    missing: Vec<String>,
}

impl Chosen {
    /// Chooses the programs that this kernel has and has not refused. Programs that need one another are chosen
    /// together or not at all.
    fn of(types: &KernelTypes, refused: &[String]) -> Result<Self, ProbeError> {
        let is_refused = |program: &str| refused.iter().any(|name| name == program);
        let has = |hooks: &[Hook]| {
            hooks.iter().all(|hook| is_there(types, hook) && !is_refused(hook.program))
        };
        let absent = |hook: &&Hook| !is_there(types, hook) || is_refused(hook.program);
        if let Some(hook) = ALWAYS.iter().find(absent) {
            return Err(ProbeError::NoTracepoint(hook.tracepoint));
        }
        let mut missing = Vec::new();
        let mut names: Vec<&str> = ALWAYS.iter().map(|hook| hook.program).collect();
        let mut add = |hooks: &'static [Hook]| names.extend(hooks.iter().map(|hook| hook.program));
        if has(ENDS) {
            add(ENDS);
        } else if has(NO_ENDS) {
            add(NO_ENDS);
        } else {
            missing.push("who submits a request that waits for the driver".to_owned());
        }
        if has(RETURN) {
            add(RETURN);
        }
        match (has(FLUSHER), has(DIRTY_FOLIO), has(DIRTY_PAGE)) {
            (true, true, _) => [DIRTY_FOLIO, FLUSHER].into_iter().for_each(&mut add),
            (true, _, true) => [DIRTY_PAGE, FLUSHER].into_iter().for_each(&mut add),
            _ => missing.push("whose data the kernel writes back".to_owned()),
        }
        let sees_locks = has(LOCKS);
        if sees_locks {
            add(LOCKS);
        } else {
            missing.push("who tries again and again to take a file lock".to_owned());
        }
        if !ANY_SYNC.iter().any(|name| is_refused(name)) {
            names.extend(ANY_SYNC);
        } else if has(EXT4_SYNC) {
            names.extend(EXT4_SYNC.iter().map(|hook| hook.program));
            missing.push("fsyncs in progress on other file systems than ext4".to_owned());
        } else {
            missing.push("fsyncs in progress".to_owned());
        }
        Ok(Self { names, sees_locks, missing })
    }

    /// A program on fsyncs of all file systems, if these are among them.
    fn any_sync(&self) -> Option<&'static str> {
        let mut names = self.names.iter().copied();
        names.find(|name| ANY_SYNC.contains(name))
    }
}

fn is_there(types: &KernelTypes, hook: &Hook) -> bool {
    types.arguments_of(hook.tracepoint).is_some_and(|arguments| arguments >= hook.arguments)
}

/// Loads and attaches these programs, or none.
fn load(names: &[&str]) -> Result<(Object, Vec<Link>), ProbeError> {
    libbpf_messages::keep();
    let mut open = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(ProbeError::refused("its own programs"))?;
    for mut program in open.progs_mut() {
        let wanted = names.iter().any(|name| program.name() == OsStr::new(name));
        program.set_autoload(wanted);
    }
    let object = open.load().map_err(|error| ProbeError::Refused {
        what: "the programs that watch disks".to_owned(),
        reason: libbpf_messages::reason(&error),
    })?;
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if names.contains(&name.as_str()) {
            let link = program
                .attach_trace()
                .map_err(ProbeError::refused(format!("the program {name}")))?;
            links.push(link);
        }
    }
    Ok((object, links))
}
