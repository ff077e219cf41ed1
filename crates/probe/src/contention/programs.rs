//! Loads the programs that this kernel can run, and attaches them.

use std::ffi::OsStr;

use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder};

use crate::capability::Types;
use crate::{ProbeError, messages};

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contention.bpf.o"));

/// A program on a tracepoint, and how many arguments of it the program reads.
struct Hook {
    program: &'static str,
    tracepoint: &'static str,
    arguments: u32,
}

const fn hook(tracepoint: &'static str, arguments: u32) -> Hook {
    Hook {
        program: tracepoint,
        tracepoint,
        arguments,
    }
}

/// Nothing works without these.
const ALWAYS: &[Hook] = &[hook("block_rq_issue", 1), hook("block_rq_complete", 3)];
/// Who submits a request, and its end once more: since Linux 6.3.
const ENDS: &[Hook] = &[hook("block_io_start", 1), hook("block_io_done", 1)];
/// Stand in for them.
const NO_ENDS: &[Hook] = &[
    hook("block_getrq", 1),
    hook("block_rq_insert", 1),
    Hook {
        program: "block_rq_complete_2",
        tracepoint: "block_rq_complete",
        arguments: 3,
    },
];
/// Requests that come back, or are merged.
const RETURN: &[Hook] = &[hook("block_rq_requeue", 1), hook("block_rq_merge", 1)];
/// Who dirties data: since Linux 5.18, and before.
const DIRTY_FOLIO: &[Hook] = &[hook("writeback_dirty_folio", 2)];
const DIRTY_PAGE: &[Hook] = &[hook("writeback_dirty_page", 2)];
/// Whose data a flusher writes.
const FLUSHER: &[Hook] = &[
    hook("writeback_single_inode_start", 1),
    hook("writeback_single_inode", 0),
];
/// Who waits for a file lock, or is refused one.
const LOCKS: &[Hook] = &[
    hook("posix_lock_inode", 3),
    hook("flock_lock_inode", 3),
    hook("break_lease_block", 0),
];
/// fsyncs on ext4.
const EXT4_SYNC: &[Hook] = &[
    hook("ext4_sync_file_enter", 1),
    hook("ext4_sync_file_exit", 0),
];
/// fsyncs on all file systems: on the kernel function `vfs_fsync_range`.
const ANY_SYNC: [&str; 3] = ["fsync_enter", "fsync_exit", "fsync_exit_2"];

/// The loaded and attached programs.
#[derive(Debug)]
pub(super) struct Programs {
    /// Before the object: dropped first.
    _links: Vec<Link>,
    object: Object,
    /// Whether waits for file locks are seen.
    pub(super) sees_locks: bool,
    /// What cannot be seen here, one line each.
    pub(super) missing: Vec<String>,
}

impl Programs {
    /// Loads and attaches all that this kernel has.
    pub(super) fn start() -> Result<Self, ProbeError> {
        let types = Types::if_allowed()?;
        let has = |hooks: &[Hook]| hooks.iter().all(|hook| is_there(&types, hook));
        if let Some(hook) = ALWAYS.iter().find(|hook| !is_there(&types, hook)) {
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
        // Not every kernel has fentry, and not everyone may use it: that shows when it is loaded or attached.
        let mut with_any = names.clone();
        with_any.extend(ANY_SYNC);
        if let Ok((object, links)) = load(&with_any) {
            return Ok(Self {
                _links: links,
                object,
                sees_locks,
                missing,
            });
        }
        if has(EXT4_SYNC) {
            names.extend(EXT4_SYNC.iter().map(|hook| hook.program));
            missing.push("fsyncs in progress on other file systems than ext4".to_owned());
        } else {
            missing.push("fsyncs in progress".to_owned());
        }
        let (object, links) = load(&names)?;
        Ok(Self {
            _links: links,
            object,
            sees_locks,
            missing,
        })
    }

    /// The map of this name.
    pub(super) fn map(&self, name: &'static str) -> Result<MapHandle, ProbeError> {
        let refused = || ProbeError::refused(format!("map {name}"));
        let map = self
            .object
            .maps()
            .find(|map| map.name() == OsStr::new(name));
        let map = map.ok_or_else(|| ProbeError::Refused {
            what: format!("map {name}"),
            reason: "it is not in the programs".to_owned(),
        })?;
        MapHandle::try_from(&map).map_err(refused())
    }
}

fn is_there(types: &Types, hook: &Hook) -> bool {
    types
        .arguments_of(hook.tracepoint)
        .is_some_and(|arguments| arguments >= hook.arguments)
}

/// Loads and attaches these programs, or none.
fn load(names: &[&str]) -> Result<(Object, Vec<Link>), ProbeError> {
    messages::keep();
    let mut open = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(ProbeError::refused("its own programs"))?;
    for mut program in open.progs_mut() {
        let wanted = names.iter().any(|name| program.name() == OsStr::new(name));
        program.set_autoload(wanted);
    }
    let object = open.load().map_err(|error| ProbeError::Refused {
        what: "the programs that watch disks".to_owned(),
        reason: messages::reason(&error),
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
