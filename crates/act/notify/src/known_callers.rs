//! The supervisor's memory of callers.
//!
//! A caller makes one call after the other, so its next call shows that the last one has returned. The kernel names
//! the thread of a call, which is not the caller. A goroutine goes on in another thread after each call. In a server,
//! whichever thread has work writes the log. A thread that is taken for a caller comes again late or never. A commit
//! then seems to last until that time, and rounds wait for more callers than there are.
//!
//! So a call is assigned by its process and descriptor first, and by its thread second. It belongs to the caller
//! whose last call was of the same descriptor, if that call has returned. Otherwise it belongs to the caller whose
//! last call this thread made, or else to a new caller. Two calls of one file in sequence are one caller's, two at
//! once are two callers'. One thread that synchronizes several files is one caller, too.

use std::collections::HashMap;

use luc_gate::gated_call::CountedWindows;
use luc_gate::rounds::{DurabilityNeed, JoinedRound};

use crate::call_maker::{CallMaker, ProcessFd};
use crate::fetch_file::FileInode;
use crate::synced_file_systems::FileSystemId;

/// Maximum of the counter of turns.
const MAX_TURNS: u8 = 30;

/// Time without use after which an entry may be forgotten, once there are [`MIN_ENTRIES_TO_FORGET`].
const MAX_IDLE_NS: u64 = 10_000_000_000;
const MIN_ENTRIES_TO_FORGET: usize = 4096;

/// Maximum number of entries of each kind.
const MAX_ENTRIES: usize = 16384;

/// A call that was let go on and has not been seen to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredCall {
    pub(crate) who: CallMaker,
    pub(crate) place: FileSystemId,
    /// Need of the call, which decides the rounds that it counts in.
    pub(crate) needs: DurabilityNeed,
    /// Time at which the program made it.
    pub(crate) called_ns: u64,
    /// Time at which it was let go on.
    pub(crate) answered_ns: u64,
    /// Its way through a round, if it was held.
    pub(crate) joined: Option<JoinedRound>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallerId(u64);

/// State of a caller's last call.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// Back in the program.
    Returned,
    /// Waits for its answer.
    Held,
    /// Made in the kernel, or back from there.
    Made(AnsweredCall),
}

/// A caller as the supervisor remembers it.
#[derive(Debug)]
pub(crate) struct KnownCaller {
    /// Windows in which the caller was counted.
    pub(crate) seen: CountedWindows,
    last: Last,
    /// Thread that made its last call, or goes on with it.
    thread: u32,
    last_ns: u64,
}

impl KnownCaller {
    /// Takes the last call out if this thread made it: a thread that calls again has returned.
    fn take_made_by(&mut self, thread: u32) -> Option<AnsweredCall> {
        match self.last {
            Last::Made(made) if made.who.thread == thread => self.take_made(),
            _ => None,
        }
    }

    fn take_made(&mut self) -> Option<AnsweredCall> {
        match std::mem::replace(&mut self.last, Last::Returned) {
            Last::Made(made) => Some(made),
            Last::Returned | Last::Held => None,
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.last, Last::Returned)
    }

    /// Notes that its call waits for an answer.
    pub(crate) fn is_held(&mut self) {
        self.last = Last::Held;
    }

    /// Notes that its call was let go on.
    pub(crate) fn has_made(&mut self, made: AnsweredCall) {
        self.last = Last::Made(made);
    }

    /// Notes that its call was answered without being made.
    pub(crate) fn has_returned(&mut self) {
        self.last = Last::Returned;
    }
}

/// Memory of a descriptor of a process.
#[derive(Debug)]
pub(crate) struct DescriptorMemory {
    /// Need of its calls at the last look.
    pub(crate) needs: DurabilityNeed,
    turns: Turns,
    /// Regular file behind it at the last look.
    inode: Option<FileInode>,
    /// Caller that synchronized it last.
    caller: CallerId,
    last_ns: u64,
}

/// Memory of a regular file, whatever descriptors it is synchronized by.
#[derive(Debug)]
struct OfInode {
    turns: Turns,
    /// Caller that synchronized it last.
    caller: CallerId,
    last_ns: u64,
}

/// Evidence that the callers of a file take turns.
#[derive(Debug, Default)]
struct Turns {
    /// Number of times in a row that another caller's call had returned when the next one came.
    in_a_row: u8,
    /// Number of further times that this is assumed.
    granted: u8,
}

impl Turns {
    /// Whether the call of another thread has returned. Asking costs as much as the rest of a call. So it is asked
    /// ever more rarely while threads take turns. It is asked each time again once two were at the file at the same
    /// time.
    fn has_returned(&mut self, is_making: impl FnOnce() -> bool) -> bool {
        if self.granted > 0 {
            self.granted -= 1;
            return true;
        }
        if is_making() {
            self.in_a_row = 0;
            return false;
        }
        self.in_a_row = self.in_a_row.saturating_add(1).min(MAX_TURNS);
        self.granted = self.in_a_row / 2;
        true
    }
}

#[derive(Debug)]
struct Thread {
    process: u32,
    /// Caller whose last call it made.
    caller: Option<CallerId>,
    last_ns: u64,
}

/// Conclusions from a call's arrival.
#[derive(Debug)]
pub(crate) struct ArrivalFindings {
    pub(crate) caller: CallerId,
    /// Calls that must have returned: the thread's last one, and that of the caller.
    pub(crate) returned: [Option<AnsweredCall>; 2],
}

/// All callers that the supervisor remembers.
#[derive(Debug, Default)]
pub(crate) struct KnownCallers {
    callers: HashMap<CallerId, KnownCaller>,
    files: HashMap<ProcessFd, DescriptorMemory>,
    inodes: HashMap<FileInode, OfInode>,
    threads: HashMap<u32, Thread>,
    next: u64,
    /// Time at which entries were last forgotten.
    forgot_ns: u64,
}

impl KnownCallers {
    /// The process of a thread that calls at `now_ns`. `look` finds it out.
    pub(crate) fn process_of(
        &mut self,
        thread: u32,
        now_ns: u64,
        look: impl FnOnce() -> u32,
    ) -> u32 {
        self.forget(now_ns);
        let entry = self.threads.entry(thread).or_insert_with(|| Thread {
            process: look(),
            caller: None,
            last_ns: now_ns,
        });
        entry.last_ns = now_ns;
        entry.process
    }

    /// Puts a call that has come at `now_ns` to its caller. `is_making` tells whether another thread is still in its
    /// call.
    pub(crate) fn arrives(
        &mut self,
        who: CallMaker,
        now_ns: u64,
        is_making: impl FnOnce(&CallMaker) -> bool,
    ) -> ArrivalFindings {
        let of_thread = self.threads.get(&who.thread).and_then(|thread| thread.caller);
        let by_thread = self.of(of_thread).and_then(|caller| caller.take_made_by(who.thread));
        let of_file = self.files.get(&who.file()).map(|file| file.caller);
        let is_free = match self.of(of_file).map(|caller| caller.last) {
            None | Some(Last::Held) => false,
            Some(Last::Returned) => true,
            Some(Last::Made(made)) if made.who.fd == who.fd => {
                self.file(&who).is_some_and(|file| file.turns.has_returned(|| is_making(&made.who)))
            }
            Some(Last::Made(made)) => !is_making(&made.who),
        };
        let of_file = of_file.filter(|_| is_free);
        let by_file = self.of(of_file).and_then(KnownCaller::take_made);
        let of_thread =
            of_thread.filter(|&id| self.of(Some(id)).is_some_and(|caller| caller.is_idle()));
        let id = match (of_file, of_thread) {
            (Some(of_file), Some(of_thread)) if of_file != of_thread => {
                self.give_away(of_thread, of_file, who.thread);
                of_file
            }
            (Some(id), _) | (None, Some(id)) => id,
            (None, None) => {
                self.next += 1;
                CallerId(self.next)
            }
        };
        let caller = self.callers.entry(id).or_insert_with(|| KnownCaller {
            seen: CountedWindows::new(),
            last: Last::Returned,
            thread: who.thread,
            last_ns: now_ns,
        });
        (caller.thread, caller.last_ns) = (who.thread, now_ns);
        let file = self.files.entry(who.file()).or_insert_with(|| DescriptorMemory {
            needs: DurabilityNeed::Commit,
            turns: Turns::default(),
            inode: None,
            caller: id,
            last_ns: now_ns,
        });
        (file.caller, file.last_ns) = (id, now_ns);
        if let Some(thread) = self.threads.get_mut(&who.thread) {
            thread.caller = Some(id);
        }
        ArrivalFindings { caller: id, returned: [by_thread, by_file] }
    }

    /// Takes the file of a call that has come at `now_ns`: this one, or still the one of the last look.
    ///
    /// Processes that take turns at a file, each with a descriptor of its own, are a caller each. A call by the next
    /// process shows that the last process' call has returned, before that process calls again.
    pub(crate) fn follows(
        &mut self,
        who: &CallMaker,
        inode: Option<FileInode>,
        now_ns: u64,
        is_making: impl FnOnce(&CallMaker) -> bool,
    ) -> Option<AnsweredCall> {
        let file = self.files.get_mut(&who.file())?;
        let caller = file.caller;
        let inode = inode.or(file.inode)?;
        if let Some(left) = file.inode.replace(inode)
            && left != inode
            && self.inodes.get(&left).is_some_and(|of| of.caller == caller)
        {
            self.inodes.remove(&left);
        }
        let of_inode = self.inodes.entry(inode).or_insert_with(|| OfInode {
            turns: Turns::default(),
            caller,
            last_ns: now_ns,
        });
        of_inode.last_ns = now_ns;
        let before = std::mem::replace(&mut of_inode.caller, caller);
        if before == caller {
            return None;
        }
        let is_of_it = |file: &DescriptorMemory| file.inode == Some(inode);
        match self.callers.get(&before)?.last {
            Last::Returned => {}
            Last::Made(made)
                if self.files.get(&made.who.file()).is_some_and(is_of_it)
                    && of_inode.turns.has_returned(|| is_making(&made.who)) => {}
            Last::Held | Last::Made(_) => return None,
        }
        // This call is the file's caller's, whichever process goes on with it.
        of_inode.caller = before;
        self.give_away(caller, before, who.thread);
        if let Some(thread) = self.threads.get_mut(&who.thread) {
            thread.caller = Some(before);
        }
        if let Some(file) = self.files.get_mut(&who.file()) {
            file.caller = before;
        }
        let known = self.callers.get_mut(&before)?;
        (known.thread, known.last_ns) = (who.thread, now_ns);
        known.take_made()
    }

    /// The caller that synchronized the file of a call last.
    pub(crate) fn caller_of(&self, who: &CallMaker) -> Option<CallerId> {
        self.files.get(&who.file()).map(|file| file.caller)
    }

    /// A caller, if it is remembered.
    pub(crate) fn get(&mut self, id: CallerId) -> Option<&mut KnownCaller> {
        self.callers.get_mut(&id)
    }

    /// The file of a call, if it is remembered.
    pub(crate) fn file(&mut self, who: &CallMaker) -> Option<&mut DescriptorMemory> {
        self.files.get_mut(&who.file())
    }

    /// Forgets the file of a call whose descriptor is closed, or of nothing that can be synchronized.
    pub(crate) fn forget_file(&mut self, who: &CallMaker) {
        self.files.remove(&who.file());
    }

    /// Exchanges two callers: `thread` leaves caller `left` and goes on as `taken`, and the thread of `taken` goes on
    /// as `left`. So no caller stays without a thread.
    fn give_away(&mut self, left: CallerId, taken: CallerId, thread: u32) {
        let Some(other) = self.callers.get(&taken).map(|caller| caller.thread) else {
            return;
        };
        if other != thread
            && let Some(known) = self.threads.get_mut(&other)
        {
            known.caller = Some(left);
            if let Some(left) = self.callers.get_mut(&left) {
                left.thread = other;
            }
        }
    }

    fn of(&mut self, id: Option<CallerId>) -> Option<&mut KnownCaller> {
        self.callers.get_mut(&id?)
    }

    /// Forgets entries that were not used for long, and the older half where there are too many: a program may start
    /// threads and open files without end.
    fn forget(&mut self, now_ns: u64) {
        let counts = [self.threads.len(), self.files.len(), self.inodes.len(), self.callers.len()];
        let most = counts.into_iter().max().unwrap_or(0);
        let is_time =
            now_ns.saturating_sub(self.forgot_ns) >= MAX_IDLE_NS && most >= MIN_ENTRIES_TO_FORGET;
        if !is_time && most < MAX_ENTRIES {
            return;
        }
        self.forgot_ns = now_ns;
        let long_ago_ns = now_ns.saturating_sub(MAX_IDLE_NS);
        retain(&mut self.threads, long_ago_ns, |thread| thread.last_ns);
        retain(&mut self.files, long_ago_ns, |file| file.last_ns);
        retain(&mut self.inodes, long_ago_ns, |of| of.last_ns);
        retain(&mut self.callers, long_ago_ns, |caller| caller.last_ns);
    }
}

/// Retains the entries used after `long_ago_ns`, and if they are too many, the half used last.
fn retain<K, V>(all: &mut HashMap<K, V>, long_ago_ns: u64, last_ns: impl Fn(&V) -> u64) {
    all.retain(|_, one| last_ns(one) > long_ago_ns);
    if all.len() >= MAX_ENTRIES {
        let mut times: Vec<u64> = all.values().map(&last_ns).collect();
        let middle = times.len() / 2;
        let (_, &mut median_ns, _) = times.select_nth_unstable(middle);
        all.retain(|_, one| last_ns(one) > median_ns);
    }
}

#[cfg(test)]
mod tests;
