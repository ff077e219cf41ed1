//! The way of each notified call: looked at, written early, held, let go on, counted.

mod count_returns;

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use luc_gate::figures::GatedCallKind;
use luc_gate::gated_call::CallSettings;
use luc_gate::overwrite_detection::FileExtent;
use luc_gate::rounds::{DurabilityNeed, HoldLimits, RoundRole};
use luc_gate::writeback_errors;

use crate::call_ledger::MappedLedger;
use crate::call_maker::{CallMaker, process_of};
use crate::call_sorter::{CallSorter, DescriptorTarget, ReceivedCall, SortResult, close};
use crate::early_writers::{EarlyWriteResult, EarlyWriters, FileJob, FileWork, FinishedWork};
use crate::fetch_file::{FetchedFile, FileInode, FileStatus, MissingFile};
use crate::held_calls::{HeldCall, HeldCalls, JoinRequest, NotifiedCall, WaitingRounds};
use crate::kept_file::{DescriptorState, KeptFile, synchronize};
use crate::known_callers::{ArrivalFindings, KnownCallers};
use crate::overlay_devices::DeviceBelow;
use crate::release_watcher::ReleaseWatcher;
use crate::seccomp_filter;
use crate::seccomp_unotify::{self, NoticeAnswer};
use crate::synced_file_systems::{FileSystemId, SyncedFileSystem, SyncedFileSystems};

/// Timeout for threads that still work on files at the end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// All notified calls on their way, with what serves them.
#[derive(Debug)]
pub(crate) struct NotifiedCalls {
    listener: OwnedFd,
    settings: CallSettings,
    writers: EarlyWriters,
    places: SyncedFileSystems,
    callers: KnownCallers,
    held: HeldCalls,
    ledger: Arc<MappedLedger>,
    sorter: Arc<CallSorter>,
}

impl NotifiedCalls {
    pub(crate) fn new(
        listener: OwnedFd,
        settings: CallSettings,
        writers: EarlyWriters,
        watcher: ReleaseWatcher,
        places: SyncedFileSystems,
        ledger: Arc<MappedLedger>,
        sorter: Arc<CallSorter>,
    ) -> Self {
        seccomp_unotify::wake_on_this_processor(listener.as_fd(), true);
        Self {
            listener,
            settings,
            writers,
            places,
            callers: KnownCallers::default(),
            held: HeldCalls::new(Some(watcher)),
            ledger,
            sorter,
        }
    }

    pub(crate) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Readable when [`NotifiedCalls::take_results`] has something to do.
    pub(crate) fn bell(&self) -> &OwnedFd {
        self.writers.bell()
    }

    pub(crate) fn are_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Lets all waiting calls go on, and gives the listener back. Waits, in bounds, for threads that work on files.
    pub(crate) fn end(mut self) -> OwnedFd {
        let begun = Instant::now();
        let is_at_work = |calls: &Self| calls.held.all().any(|(_, held)| held.file.is_taken());
        while is_at_work(&self) && begun.elapsed() < END_TIMEOUT {
            thread::sleep(END_TIMEOUT / 1000);
            self.ledger.beat();
            for done in self.writers.done() {
                if let FinishedWork::Synchronized { call, errno } = done {
                    self.finish_synchronization(call, errno);
                }
            }
        }
        for (id, held) in self.held.all() {
            self.answer_last(id, &held.file, held.call.kind);
        }
        self.listener
    }

    /// Answers a call that was received and that no loop takes any more.
    pub(crate) fn answer_now(&self, received: ReceivedCall) {
        let ReceivedCall { notice, found, .. } = received;
        let kind = seccomp_filter::kind_of(notice.architecture, notice.number);
        if let (SortResult::Taken(fetched), Some(kind)) = (found, kind) {
            let who = CallMaker::of(&notice, notice.thread);
            let FetchedFile { file, look } = fetched;
            let file = KeptFile::new(file, who);
            let (now, same) = file.give_back();
            if let Some(file) = same {
                self.let_go(notice.id);
                close(FetchedFile { file, look });
            } else if now == DescriptorState::Other {
                self.answer_last(notice.id, &file, kind);
            }
            self.ledger.answered(notice.id);
        }
    }

    /// Answers a call for the last time.
    fn answer_last(&self, id: u64, file: &KeptFile, kind: GatedCallKind) {
        if matches!(file.give_up(), DescriptorState::Same | DescriptorState::Taken) {
            return self.ledger.answer(self.listener.as_raw_fd(), id);
        }
        // Nobody is left to wait for it.
        let synchronized = file.take().map(|file| synchronize(file.as_fd(), kind));
        let answer = match synchronized {
            None => NoticeAnswer::Continue,
            Some(Ok(())) => NoticeAnswer::Done,
            Some(Err(errno)) => NoticeAnswer::Fail(errno.raw_os_error()),
        };
        self.answer(id, answer);
    }

    /// Takes a call that was received. Unless its file was taken over, it goes on already.
    pub(crate) fn take_call(&mut self, received: ReceivedCall) {
        let ReceivedCall { notice, received_ns: now_ns, found } = received;
        let Some(kind) = seccomp_filter::kind_of(notice.architecture, notice.number) else {
            return;
        };
        // Where the system does not tell, each thread is its own process.
        let process = self.callers.process_of(notice.thread, now_ns, || {
            process_of(notice.thread).unwrap_or(notice.thread)
        });
        let who = CallMaker::of(&notice, process);
        let ArrivalFindings { caller, returned } =
            self.callers.arrives(who, now_ns, CallMaker::is_making);
        for made in returned.into_iter().flatten() {
            self.count_return(&made, now_ns);
        }
        let call = NotifiedCall { who, caller, kind, called_ns: now_ns };
        match found {
            SortResult::Passes(DescriptorTarget::Nothing) => {}
            SortResult::Passes(DescriptorTarget::At(index)) => {
                self.count_predecessor(&who, None, now_ns);
                let caller = self.callers.caller_of(&who).unwrap_or(caller);
                self.count_straight(&NotifiedCall { caller, ..call }, index);
            }
            SortResult::Seen(look) => self.take_look(&call, &look),
            SortResult::Missing(MissingFile::Denied) => {
                self.sorter.note(who.of_thread(), DescriptorTarget::Nothing, None, true);
            }
            // Its next call may be of another file, or there is none.
            SortResult::Missing(MissingFile::NoFile) => {
                self.callers.forget_file(&who);
                self.sorter.forget(who.of_thread());
            }
            SortResult::Taken(fetched) => {
                self.take_file(notice.id, &call, fetched);
            }
        }
    }

    /// Counts a call that goes on, and whose file may be a server's.
    fn take_look(&mut self, call: &NotifiedCall, look: &FileStatus) {
        let (device, process) = (look.inode.device, call.who.process);
        match self.places.layers().find(device, look.mount, process) {
            // Its files are taken over from the next call on.
            DeviceBelow::Known(Some(_)) => self.sorter.note_overlay(device),
            DeviceBelow::Known(None) => {
                let index = self.places.find(look, None);
                self.note_target(call, index);
                if let Some(index) = index {
                    self.count_straight(call, index);
                }
            }
            DeviceBelow::Unknown(path) => {
                if let Some(path) = path {
                    self.order(call, FileWork::Find(path));
                }
            }
        }
    }

    /// Notes the place of a call's file.
    fn note_target(&self, call: &NotifiedCall, place: Option<FileSystemId>) {
        let target = place.map_or(DescriptorTarget::Nothing, DescriptorTarget::At);
        let place = self.places.of(place);
        let rounds = place.and_then(|place| place.rounds);
        let is_final = place.is_none_or(SyncedFileSystem::is_decided);
        self.sorter.note(call.who.of_thread(), target, rounds, is_final);
    }

    /// Decides on a call whose file was taken over: it is held, or goes on.
    fn take_file(&mut self, id: u64, call: &NotifiedCall, fetched: FetchedFile) {
        let now_ns = call.called_ns;
        let FetchedFile { file, look } = fetched;
        let listener = self.listener.as_raw_fd();
        if self.ledger.has_lost() && self.ledger.tell_lost(listener, id, look.inode) {
            return self.ledger.answered(id);
        }
        let index = self.places.find(&look, Some(file.as_fd()));
        self.note_target(call, index);
        let is_overlay = self.places.layers().below(look.inode.device).is_some();
        let held = |file, call: &NotifiedCall| HeldCall {
            call: *call,
            file: Arc::new(KeptFile::new(file, call.who)),
            inode: look.inode,
            place: index,
            is_servers: look.may_wait && !is_overlay,
            written_back_ns: 0,
        };
        let rounds = self.places.of(index).and_then(|place| place.rounds);
        let Some(rounds) = rounds else {
            return self.pass(id, &held(file, call));
        };
        if look.is_regular {
            self.count_predecessor(&call.who, Some(look.inode), now_ns);
        }
        let call = &NotifiedCall {
            caller: self.callers.caller_of(&call.who).unwrap_or(call.caller),
            ..*call
        };
        let extent = (call.kind == GatedCallKind::Fdatasync && look.is_regular)
            .then(|| FileExtent::of(file.as_raw_fd()))
            .flatten();
        let may_need_flush_only =
            extent.is_some_and(|extent| extent.candidate(file.as_raw_fd()).is_some());
        let policy = &self.settings.policy;
        let is_gated = rounds.commits.is_gated(policy, now_ns)
            || (may_need_flush_only && rounds.flushes.is_gated(policy, now_ns));
        let stuck_before_ns = now_ns.saturating_sub(self.settings.longest_wait_ns);
        let is_in_time = !self.writers.are_stuck(stuck_before_ns);
        let held = held(file, call);
        // Not gated, what the file's call before needed is asked: this one most likely needs the same.
        if is_in_time && (is_gated || may_need_flush_only) {
            let file = Arc::clone(&held.file);
            self.held.insert(id, held);
            if let Some(caller) = self.callers.get(call.caller) {
                caller.is_held();
            }
            if !look.is_regular {
                return self.join(id, DurabilityNeed::Commit);
            }
            let task =
                FileWork::Write { call: id, file, inode: look.inode, extent, writes: is_gated };
            return self.order(call, task);
        }
        if let Some(extent) = extent.filter(|_| !may_need_flush_only) {
            extent.remember();
            if let Some(file) = self.callers.file(&call.who) {
                file.needs = DurabilityNeed::Commit;
            }
        }
        self.pass(id, &held);
    }

    /// Lets a call go on that is not held.
    fn pass(&mut self, id: u64, held: &HeldCall) {
        if self.give_up_file(held) == DescriptorState::Other {
            return self.synchronize_instead(id, held);
        }
        self.let_go(id);
        self.ledger.answered(id);
        if let Some(index) = held.place {
            self.count_straight(&held.call, index);
        }
    }

    /// Has something done by a thread that may wait.
    fn order(&self, call: &NotifiedCall, task: FileWork) {
        self.writers.order(FileJob { who: call.who, task, ordered_ns: writeback_errors::now_ns() });
    }

    /// Counts the return of the file's call before, if this call shows that it has returned.
    fn count_predecessor(&mut self, who: &CallMaker, inode: Option<FileInode>, now_ns: u64) {
        if let Some(made) = self.callers.follows(who, inode, now_ns, CallMaker::is_making) {
            self.count_return(&made, now_ns);
        }
    }

    fn let_go(&self, id: u64) {
        self.answer(id, NoticeAnswer::Continue);
    }

    fn answer(&self, id: u64, answer: NoticeAnswer) {
        // That the call is gone is no error.
        let _ = seccomp_unotify::answer(self.listener.as_raw_fd(), id, answer);
    }

    /// Whether a held call may go on: its descriptor is still the file that was looked at. Else has that file
    /// synchronized; the call is held until then.
    fn may_go_on(&mut self, id: u64, held: &HeldCall) -> bool {
        let now = self.give_up_file(held);
        match now {
            DescriptorState::Same | DescriptorState::Gone => return true,
            DescriptorState::Other => self.synchronize_instead(id, held),
            // What the thread has done is told.
            DescriptorState::Taken => self.held.insert(id, held.clone()),
        }
        false
    }

    /// Closes a call's file if its descriptor is still the same or its thread has ended. Where closing may wait,
    /// another thread does it.
    fn give_up_file(&self, held: &HeldCall) -> DescriptorState {
        let (now, same) = held.file.give_back();
        let closed = match now {
            DescriptorState::Same if held.is_servers => same,
            // Nobody else may have it open.
            DescriptorState::Gone => held.file.take(),
            DescriptorState::Same | DescriptorState::Other | DescriptorState::Taken => None,
        };
        if let Some(file) = closed {
            self.order(&held.call, FileWork::Close(file));
        }
        now
    }

    /// Has a call's file synchronized in place of the call, which waits.
    fn synchronize_instead(&mut self, id: u64, held: &HeldCall) {
        let task = FileWork::Synchronize {
            call: id,
            file: Arc::clone(&held.file),
            inode: held.inode,
            kind: held.call.kind,
        };
        self.order(&held.call, task);
        self.held.insert(id, held.clone());
    }

    /// Answers a held call whose file was synchronized in its place.
    fn finish_synchronization(&mut self, id: u64, errno: i32) {
        let Some(held) = self.held.remove(id) else {
            return;
        };
        self.returns(id, &held, errno);
    }

    /// Answers a held call without its being made: with an error, unless `errno` is 0.
    fn returns(&mut self, id: u64, held: &HeldCall, errno: i32) {
        if errno == 0 {
            self.answer(id, NoticeAnswer::Done);
        } else {
            held.call.who.settle();
            self.ledger.tell(self.listener.as_raw_fd(), id, errno);
        }
        self.ledger.answered(id);
        if let Some(caller) = self.callers.get(held.call.caller) {
            caller.has_returned();
        }
        let place = self.places.of(held.place);
        if let Some(figures) = place.and_then(|place| place.figures) {
            figures.record_unseen(held.call.kind, None);
            let failed = u64::from(errno != 0);
            figures.failed.fetch_add(failed, Ordering::Relaxed);
        }
    }

    /// Takes the results of the threads that may wait.
    pub(crate) fn take_results(&mut self) {
        for done in self.writers.done() {
            match done {
                FinishedWork::Written { call, who, written, needs } => {
                    if let Some(file) = self.callers.file(&who) {
                        file.needs = needs;
                    }
                    self.finish_write(call, written, needs);
                }
                FinishedWork::Synchronized { call, errno } => {
                    self.finish_synchronization(call, errno)
                }
                FinishedWork::Closed | FinishedWork::NotNeeded => {}
                FinishedWork::Found(below) => self.places.layers().learn(below),
            }
        }
    }

    fn finish_write(&mut self, id: u64, written: EarlyWriteResult, needs: DurabilityNeed) {
        let Some(held) = self.held.get_mut(id) else {
            return;
        };
        held.written_back_ns = writeback_errors::now_ns().saturating_sub(held.call.called_ns);
        match written {
            EarlyWriteResult::Done => self.join(id, needs),
            // Held without its data written, a caller comes late to the commit and delays everybody.
            EarlyWriteResult::Refused | EarlyWriteResult::NotAsked => self.give_up(id),
            EarlyWriteResult::Lost(errno) => {
                let Some(held) = self.held.remove(id) else {
                    return;
                };
                drop(held.file.take());
                self.returns(id, &held, errno);
            }
        }
    }

    /// Lets a held call go on without a round.
    fn give_up(&mut self, id: u64) {
        if let Some(held) = self.held.remove(id)
            && self.may_go_on(id, &held)
        {
            self.let_go(id);
            self.ledger.answered(id);
            if let Some(index) = held.place {
                self.count_straight(&held.call, index);
            }
        }
    }

    /// Brings a call whose data is written into the round for what it needs.
    fn join(&mut self, id: u64, needs: DurabilityNeed) {
        let policy = &self.settings.policy;
        let Some(held) = self.held.get_mut(id).map(|held| held.clone()) else {
            return;
        };
        let called_ns = held.call.called_ns;
        let place = self.places.of(held.place);
        let Some((place, rounds)) = place.and_then(|place| Some((place, place.rounds?))) else {
            return self.give_up(id);
        };
        let (of, role) = match needs {
            DurabilityNeed::Flush if !rounds.commits.takes_along(policy, called_ns) => {
                (DurabilityNeed::Flush, RoundRole::Member)
            }
            needs => (DurabilityNeed::Commit, RoundRole::of(needs)),
        };
        let of_kind = rounds.of(of);
        if !of_kind.is_gated(policy, called_ns) {
            if let Some(file) = self.callers.file(&held.call.who) {
                file.needs = of;
            }
            return self.give_up(id);
        }
        if let Some(caller) = self.callers.get(held.call.caller) {
            of_kind.count_participant(caller.seen.of(of));
        }
        let limits =
            HoldLimits { longest_ns: self.settings.longest_wait_ns, own_call_ns: place.own.ns() };
        let room = WaitingRounds { rounds: of_kind, of };
        self.held.join(
            id,
            room,
            JoinRequest { policy, role, limits: &limits },
            writeback_errors::now_ns(),
        );
    }

    /// Lets the calls go that may. Returns the time of the next look.
    pub(crate) fn go_on(&mut self) -> u64 {
        if self.held.is_empty() {
            return u64::MAX;
        }
        let now_ns = writeback_errors::now_ns();
        if self.writers.has_orders() {
            let late_ns = now_ns.saturating_sub(self.settings.longest_wait_ns);
            for id in self.writers.take_back(late_ns) {
                self.give_up(id);
            }
        }
        let mut gone = self.held.take_ready(&self.settings.policy, now_ns);
        gone.retain(|gone| self.may_go_on(gone.id, &gone.held));
        seccomp_unotify::let_all_go(self.listener.as_fd(), gone.iter().map(|gone| gone.id));
        for gone in &gone {
            self.ledger.answered(gone.id);
            self.count_held(gone, now_ns);
        }
        self.held.look_ns()
    }
}
