//! What the supervisor remembers of those who synchronize.
//!
//! A caller makes one call after the other, so that its next one tells that the last one has returned. The kernel names
//! the thread of a call, and that is not the caller: a goroutine goes on in another thread after each call, and in a
//! server whichever thread has work writes the log. Taken for a caller, such a thread comes again late or never, a
//! commit seems to last until then, and rounds wait for more callers than there are.
//!
//! So a call is put to the caller whose last call was of the same descriptor of the same process, whatever its thread,
//! if that call has returned; else to the caller whose last call this thread made; and else to a new one. Two calls of
//! one file in sequence are one caller's, two at once are two callers'. One thread that synchronizes several files is
//! one caller, too.

use std::collections::HashMap;

use luc_gate::call::SeenWindows;
use luc_gate::rounds::{Joined, Needs};

use crate::who::Who;

/// So often in a row threads have taken turns at a file, at most, as it is counted.
const MOST_IN_A_ROW: u8 = 30;

/// What has not been used for this long may be forgotten, in nanoseconds, once there is this much.
const FORGOTTEN_NS: u64 = 10_000_000_000;
const MANY: usize = 4096;

/// There is never more than this much of each kind.
const MAX_ENTRIES: usize = 16384;

/// A call that was let go on and has not been seen to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) who: Who,
    pub(crate) place: usize,
    /// What it needed, and so in which rounds it counts.
    pub(crate) needs: Needs,
    /// When it was made by the program.
    pub(crate) called_ns: u64,
    /// When it was let go on.
    pub(crate) answered_ns: u64,
    /// Its way through a round.
    pub(crate) joined: Option<Joined>,
}

/// A caller's name here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallerId(u64);

/// Where a caller's last call is.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// Back in the program.
    Returned,
    /// It waits for its answer.
    Held,
    /// In the kernel, or back.
    Made(Made),
}

#[derive(Debug)]
pub(crate) struct Caller {
    /// The windows in which it was counted.
    pub(crate) seen: SeenWindows,
    last: Last,
    /// The thread that made its last call, or goes on with it.
    thread: u32,
    last_ns: u64,
}

impl Caller {
    /// Its last call, if this thread made it: a thread that calls again has returned.
    fn take_made_by(&mut self, thread: u32) -> Option<Made> {
        match self.last {
            Last::Made(made) if made.who.thread == thread => self.take_made(),
            _ => None,
        }
    }

    fn take_made(&mut self) -> Option<Made> {
        match std::mem::replace(&mut self.last, Last::Returned) {
            Last::Made(made) => Some(made),
            Last::Returned | Last::Held => None,
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.last, Last::Returned)
    }

    /// Its call waits for an answer.
    pub(crate) fn is_held(&mut self) {
        self.last = Last::Held;
    }

    /// Its call was let go on.
    pub(crate) fn has_made(&mut self, made: Made) {
        self.last = Last::Made(made);
    }

    /// Its call was answered without being made.
    pub(crate) fn has_returned(&mut self) {
        self.last = Last::Returned;
    }
}

/// What is known of a descriptor of a process.
#[derive(Debug)]
pub(crate) struct File {
    /// What a call of it needed when it was last looked at.
    pub(crate) needs: Needs,
    /// What is known of its threads.
    turns: Turns,
    /// The regular file that it was when it was last looked at.
    inode: Option<Inode>,
    /// Who synchronized it last.
    caller: CallerId,
    last_ns: u64,
}

/// A file's name in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Inode {
    pub(crate) device: u64,
    pub(crate) number: u64,
}

/// What is known of a regular file, whatever the descriptors that it is synchronized by.
#[derive(Debug)]
struct OfInode {
    turns: Turns,
    /// Who synchronized it last.
    caller: CallerId,
    last_ns: u64,
}

/// Whether those who synchronize a file take turns.
#[derive(Debug, Default)]
struct Turns {
    /// How often in a row another one's call had returned when the next one came.
    in_a_row: u8,
    /// Times that this is taken for granted.
    granted: u8,
}

impl Turns {
    /// Whether the call of another thread has returned. To ask costs as much as the rest of a call, so it is asked ever
    /// more rarely where threads take turns, and each time where they were at the file at once of late.
    fn has_returned(&mut self, is_making: impl FnOnce() -> bool) -> bool {
        if self.granted > 0 {
            self.granted -= 1;
            return true;
        }
        if is_making() {
            self.in_a_row = 0;
            return false;
        }
        self.in_a_row = self.in_a_row.saturating_add(1).min(MOST_IN_A_ROW);
        self.granted = self.in_a_row / 2;
        true
    }
}

#[derive(Debug)]
struct Thread {
    process: u32,
    /// The caller whose last call it made.
    caller: Option<CallerId>,
    last_ns: u64,
}

/// What a call's arrival tells.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Whose call it is.
    pub(crate) caller: CallerId,
    /// Calls that must have returned: the thread's last one, and that of the caller.
    pub(crate) returned: [Option<Made>; 2],
}

#[derive(Debug, Default)]
pub(crate) struct Callers {
    callers: HashMap<CallerId, Caller>,
    /// By process and descriptor.
    files: HashMap<(u32, i32), File>,
    inodes: HashMap<Inode, OfInode>,
    threads: HashMap<u32, Thread>,
    next: u64,
    /// When some were forgotten last.
    forgot_ns: u64,
}

impl Callers {
    /// The process of a thread that calls at `now_ns`, of which `look` tells.
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

    /// A call has come at `now_ns`. `is_making` tells whether a call is still being made by another thread.
    pub(crate) fn arrives(
        &mut self,
        who: Who,
        now_ns: u64,
        is_making: impl FnOnce(&Who) -> bool,
    ) -> Arrived {
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
        let by_file = self.of(of_file).and_then(Caller::take_made);
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
        let caller = self.callers.entry(id).or_insert_with(|| Caller {
            seen: SeenWindows::new(),
            last: Last::Returned,
            thread: who.thread,
            last_ns: now_ns,
        });
        (caller.thread, caller.last_ns) = (who.thread, now_ns);
        let file = self.files.entry(who.file()).or_insert_with(|| File {
            needs: Needs::Commit,
            turns: Turns::default(),
            inode: None,
            caller: id,
            last_ns: now_ns,
        });
        (file.caller, file.last_ns) = (id, now_ns);
        if let Some(thread) = self.threads.get_mut(&who.thread) {
            thread.caller = Some(id);
        }
        Arrived { caller: id, returned: [by_thread, by_file] }
    }

    /// The file of a call that has come at `now_ns` is this one, or still the one of the last look. Processes that take
    /// turns at a file, each with a descriptor of its own, are a caller each; the next one's call tells that the last
    /// one's has returned, which so needs not come again first.
    pub(crate) fn follows(
        &mut self,
        who: &Who,
        inode: Option<Inode>,
        now_ns: u64,
        is_making: impl FnOnce(&Who) -> bool,
    ) -> Option<Made> {
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
        let is_of_it = |file: &File| file.inode == Some(inode);
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

    /// Who synchronized the file of a call last.
    pub(crate) fn caller_of(&self, who: &Who) -> Option<CallerId> {
        self.files.get(&who.file()).map(|file| file.caller)
    }

    /// A caller, if it is remembered.
    pub(crate) fn get(&mut self, id: CallerId) -> Option<&mut Caller> {
        self.callers.get_mut(&id)
    }

    /// The file of a call, if it is remembered.
    pub(crate) fn file(&mut self, who: &Who) -> Option<&mut File> {
        self.files.get_mut(&who.file())
    }

    /// Forgets the file of a call: its number is none, or of nothing that can be synchronized.
    pub(crate) fn forget_file(&mut self, who: &Who) {
        self.files.remove(&who.file());
    }

    /// A thread that leaves caller `left` goes on with what another thread did as `taken`, and that one with `left`: none
    /// of them is too many then.
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

    fn of(&mut self, id: Option<CallerId>) -> Option<&mut Caller> {
        self.callers.get_mut(&id?)
    }

    /// Forgets what has not been used for long, and whatever is the older half of too much: a program may start threads
    /// and open files without end.
    fn forget(&mut self, now_ns: u64) {
        let counts = [self.threads.len(), self.files.len(), self.inodes.len(), self.callers.len()];
        let most = counts.into_iter().max().unwrap_or(0);
        let is_time = now_ns.saturating_sub(self.forgot_ns) >= FORGOTTEN_NS && most >= MANY;
        if !is_time && most < MAX_ENTRIES {
            return;
        }
        self.forgot_ns = now_ns;
        let long_ago_ns = now_ns.saturating_sub(FORGOTTEN_NS);
        retain(&mut self.threads, long_ago_ns, |thread| thread.last_ns);
        retain(&mut self.files, long_ago_ns, |file| file.last_ns);
        retain(&mut self.inodes, long_ago_ns, |of| of.last_ns);
        retain(&mut self.callers, long_ago_ns, |caller| caller.last_ns);
    }
}

/// Retains what was used after `long_ago_ns`; of too much of that, the half that was used last.
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
