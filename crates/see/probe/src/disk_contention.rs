//! Adds up the use of disks by watched tasks, in memory that is read without system calls.
//!
//! A *task* is a cgroup of version 2 with all below it, or one thread. [`ContentionProbe`] loads separate BPF programs,
//! which follow each request on a watched disk from its submission to its completion:
//!
//! - *Owner*: the thread that submits a request, if it is watched. Else it is the innermost watched one of its cgroup
//!   and those above. So reads, direct writes, fsyncs, faults of mapped files and swapping in have their owner by
//!   themselves. Writeback by a kernel flusher counts for the task that dirtied the file last. Nobody owns the writes
//!   of a journal's thread, nor the flushes that the kernel merges for several callers. Nor does anybody own other
//!   kernel threads' work for a task (dm-crypt, a loop device's thread on the disk below).
//! - *Merges*: requests that are merged into another task's request count with that request.
//! - *Passthrough requests*, which are commands to the device and not I/O, are not counted.
//! - *Disk*: a partition is part of its disk; a loop device is a separate disk. Requests of devices above disks (LVM,
//!   md, dm-crypt) are seen where they arrive. With [`ContentionProbe::stand_on`] fsyncs there count for the disk
//!   below.
//! - *fsync and the like* count as outstanding while they last, because the journal submits the commit that they wait
//!   for. This works on all file systems if the kernel allows programs on its functions, else on ext4 only.
//!   `sync_file_range` waits for the task's own requests, so it needs nothing; `sync` and `syncfs` are ignored.
//!
//! - *File locks* of any process: [`ContentionProbe::lock_news`] counts waits for them.
//!   [`ContentionProbe::refused_locks`] lists tasks that try again and again to take a lock that another has.
//!
//! Only the events of [`NotifyOn`] wake this process. Nothing is pinned: when it ends, the kernel frees everything.

mod contention_programs;
mod disk_sums;
mod refused_locks;
mod shared_memory;
mod task_slots;

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::mpsc::{Receiver, channel};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use luc_events::Dev;
use luc_host::block_device;
use luc_units::OnPath as _;

use self::contention_programs::ContentionPrograms;
pub use self::disk_sums::{DiskSums, TaskSums};
pub use self::refused_locks::{LockNews, RefusedLock};
use self::shared_memory::{MAX_DEVS, NOTIFY_DONE, NOTIFY_LOCK, NOTIFY_SUBMIT, Sent, SharedMapping};
pub use self::shared_memory::{MAX_DISKS, MAX_TASKS};
use self::task_slots::{TaskSlots, WatchedSubject};
use crate::ProbeError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskSlot(u32);

impl DiskSlot {
    /// Returns its number, below [`MAX_DISKS`]. Numbers are given from 0 on.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A watched task. After [`ContentionProbe::unwatch`] it is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskSlot {
    place: u32,
    generation: u32,
}

impl TaskSlot {
    /// Returns its number, below [`MAX_TASKS`]. The number of an unwatched task is reused.
    #[must_use]
    pub fn index(self) -> usize {
        self.place as usize
    }
}

/// Events that a task sends notifications of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NotifyOn {
    /// The task submits a request to a disk, or enters an fsync, and had nothing outstanding there.
    pub on_submit: bool,
    /// The task has nothing outstanding on a disk any more.
    pub on_done: bool,
}

impl NotifyOn {
    fn flags(self) -> u32 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(self.on_submit, NOTIFY_SUBMIT) | flag(self.on_done, NOTIFY_DONE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationKind {
    Submit,
    Done,
}

/// A notification of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskNotification {
    pub task: TaskSlot,
    pub disk: DiskSlot,
    pub kind: NotificationKind,
    /// Time of the event, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// Events that could not be counted because the kernel had no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UncountedEvents {
    pub requests: u64,
    /// Notifications that were not taken in time.
    pub notifications: u64,
    /// Files with an unknown writer, so that nobody owns their writeback.
    pub writers: u64,
    /// fsyncs that are not outstanding.
    pub syncs: u64,
}

/// The loaded programs and their sums.
#[derive(Debug)]
pub struct ContentionProbe {
    /// Before the programs: dropped first.
    ring: RingBuffer<'static>,
    received: Receiver<Sent>,
    notifications: MapHandle,
    cgroups: MapHandle,
    threads: MapHandle,
    shared: SharedMapping,
    places: TaskSlots,
    disks: Vec<Dev>,
    /// `busy_ns` when it was last read, by disk.
    busy_ns: [AtomicU64; MAX_DISKS],
    programs: ContentionPrograms,
}

impl ContentionProbe {
    /// Loads and attaches the programs. Nothing is watched yet.
    ///
    /// # Errors
    /// No privileges, no BTF, or the kernel refuses the programs.
    pub fn open() -> Result<Self, ProbeError> {
        let programs = ContentionPrograms::start()?;
        let shared = SharedMapping::new(&programs.map(".bss.shared")?)
            .map_err(ProbeError::io("map", "the memory of BPF programs"))?;
        let notifications = programs.map("notifications")?;
        let (sender, received) = channel();
        let mut ring = RingBufferBuilder::new();
        ring.add(&notifications, move |bytes| {
            // Only a receiver that is gone does not take it.
            let _ = Sent::read(bytes).map(|sent| sender.send(sent));
            0
        })
        .map_err(ProbeError::refused("its ring buffer"))?;
        let ring = ring.build().map_err(ProbeError::refused("its ring buffer"))?;
        Ok(Self {
            ring,
            received,
            notifications,
            cgroups: programs.map("cgroups")?,
            threads: programs.map("watched_threads")?,
            shared,
            places: TaskSlots::new(),
            disks: Vec::new(),
            busy_ns: Default::default(),
            programs,
        })
    }

    /// Returns the events that cannot be seen on this kernel, one line each.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.programs.missing
    }

    /// Watches a whole disk from now on. A disk keeps its slot.
    ///
    /// # Errors
    /// The disk does not exist or is a partition, or [`MAX_DISKS`] are watched.
    pub fn watch_disk(&mut self, dev: Dev) -> Result<DiskSlot, ProbeError> {
        if let Some(known) = self.disks.iter().position(|&disk| disk == dev) {
            return Ok(DiskSlot(known as u32));
        }
        let folder = block_device::folder(dev.major(), dev.minor())
            .map_err(|_| ProbeError::Watch(format!("there is no disk {dev}")))?;
        if block_device::is_partition(&folder) {
            return Err(ProbeError::Watch(format!("{dev} is a partition: name its whole disk")));
        }
        if self.disks.len() == MAX_DISKS {
            return Err(ProbeError::Watch(format!(
                "at most {MAX_DISKS} disks can be watched at a time"
            )));
        }
        let slot = DiskSlot(self.disks.len() as u32);
        self.add_dev(dev, slot)?;
        self.disks.push(dev);
        Ok(slot)
    }

    /// Declares that a device is above a watched disk, as LVM's are: fsyncs on its file systems count as outstanding
    /// there.
    ///
    /// # Errors
    /// Too many devices are named.
    pub fn stand_on(&mut self, above: Dev, disk: DiskSlot) -> Result<(), ProbeError> {
        self.add_dev(above, disk)
    }

    fn add_dev(&self, dev: Dev, disk: DiskSlot) -> Result<(), ProbeError> {
        let count = self.shared.dev_count.load(Relaxed);
        let known = &self.shared.devs[..count as usize];
        if known.iter().any(|watched| watched.dev.load(Relaxed) == dev.0) {
            return Ok(());
        }
        let Some(place) = self.shared.devs.get(count as usize) else {
            return Err(ProbeError::Watch(format!(
                "at most {MAX_DEVS} disks and devices on them can be watched at a time"
            )));
        };
        place.dev.store(dev.0, Relaxed);
        place.disk.store(disk.0, Relaxed);
        self.shared.dev_count.store(count + 1, Release);
        Ok(())
    }

    /// Watches a cgroup of version 2, by the inode number of its directory. Everything below it belongs to it, but
    /// for other watched cgroups. A cgroup keeps its slot.
    ///
    /// # Errors
    /// [`MAX_TASKS`] are watched, or the kernel has no memory.
    pub fn watch_cgroup(
        &mut self,
        cgroup_id: u64,
        notify: NotifyOn,
    ) -> Result<TaskSlot, ProbeError> {
        self.watch(WatchedSubject::Cgroup(cgroup_id), notify)
    }

    /// Watches a thread, whatever the task of its cgroup. Unwatch a thread that ends: its number will be reused.
    ///
    /// # Errors
    /// As [`Self::watch_cgroup`].
    pub fn watch_thread(&mut self, tid: u32, notify: NotifyOn) -> Result<TaskSlot, ProbeError> {
        self.watch(WatchedSubject::Thread(tid), notify)
    }

    fn watch(&mut self, subject: WatchedSubject, notify: NotifyOn) -> Result<TaskSlot, ProbeError> {
        if let Some(place) = self.places.of(subject) {
            let generation = self.shared.tasks[place as usize].generation.load(Relaxed);
            let slot = TaskSlot { place, generation };
            self.set_notify(slot, notify);
            return Ok(slot);
        }
        let Some(place) = self.places.take(subject) else {
            return Err(ProbeError::Watch(format!(
                "at most {MAX_TASKS} tasks can be watched at a time"
            )));
        };
        let generation = self.renew(place);
        for disk in &self.shared.sums {
            disk_sums::clear(&disk[place as usize]);
        }
        let slot = TaskSlot { place, generation };
        self.set_notify(slot, notify);
        let value = place.to_ne_bytes();
        let entered = match subject {
            WatchedSubject::Cgroup(id) => {
                self.cgroups.update(&id.to_ne_bytes(), &value, MapFlags::ANY)
            }
            WatchedSubject::Thread(id) => {
                self.threads.update(&id.to_ne_bytes(), &value, MapFlags::ANY)
            }
        };
        if let Err(error) = entered {
            self.places.free(place);
            return Err(ProbeError::refused("to watch one more task")(error));
        }
        self.invalidate_cgroups();
        Ok(slot)
    }

    /// Changes the notifications of a task, at once and without a system call. Nothing happens for an unwatched task.
    pub fn set_notify(&mut self, task: TaskSlot, notify: NotifyOn) {
        if self.is_watched(task) {
            let control = &self.shared.tasks[task.index()];
            control.notify.store(notify.flags(), Relaxed);
        }
    }

    /// Stops watching a task. Nobody owns its outstanding requests then.
    pub fn unwatch(&mut self, task: TaskSlot) {
        if !self.is_watched(task) {
            return;
        }
        // An entry that is missing from the map is no error.
        let _ = match self.places.free(task.place) {
            Some(WatchedSubject::Cgroup(id)) => self.cgroups.delete(&id.to_ne_bytes()),
            Some(WatchedSubject::Thread(id)) => self.threads.delete(&id.to_ne_bytes()),
            None => Ok(()),
        };
        self.shared.tasks[task.index()].notify.store(0, Relaxed);
        self.renew(task.place);
        self.invalidate_cgroups();
    }

    fn is_watched(&self, task: TaskSlot) -> bool {
        let control = &self.shared.tasks[task.index()];
        control.generation.load(Relaxed) == task.generation
    }

    /// Begins another use of a place: the programs ignore requests of the former task.
    fn renew(&self, place: u32) -> u32 {
        let control = &self.shared.tasks[place as usize];
        control.generation.fetch_add(1, Release).wrapping_add(1)
    }

    /// Makes the programs look up watched cgroups again.
    fn invalidate_cgroups(&self) {
        let (tasks, threads) = self.places.counts();
        self.shared.tasks_watched.store(tasks, Relaxed);
        self.shared.threads_watched.store(threads, Relaxed);
        self.shared.generation.fetch_add(1, Release);
    }

    /// Returns a task's use of a disk; zeros for an unwatched task. No system call.
    #[must_use]
    pub fn task(&self, task: TaskSlot, disk: DiskSlot) -> TaskSums {
        if !self.is_watched(task) {
            return TaskSums::default();
        }
        TaskSums::read(&self.shared.sums[disk.index()][task.index()])
    }

    /// Returns the use of a disk by everybody. No system call.
    #[must_use]
    pub fn disk(&self, disk: DiskSlot) -> DiskSums {
        let (mut sums, busy_ns) = DiskSums::read(&self.shared.disks[disk.index()]);
        let last = &self.busy_ns[disk.index()];
        match busy_ns {
            Some(now) => last.store(now, Relaxed),
            None => sums.busy_ns = last.load(Relaxed),
        }
        sums
    }

    /// Returns the number of events that a program missed since [`Self::open`], because it was already active on that
    /// processor. Asks the kernel.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.programs.missed()
    }

    /// Returns the events that could not be counted since [`Self::open`].
    #[must_use]
    pub fn unkept(&self) -> UncountedEvents {
        let [requests, notifications, writers, syncs] =
            self.shared.unkept.each_ref().map(|count| count.load(Relaxed));
        UncountedEvents { requests, notifications, writers, syncs }
    }

    /// Returns the counts of file locks so far, without a system call; `None` if this kernel does not show them.
    #[must_use]
    pub fn lock_news(&self) -> Option<LockNews> {
        self.programs.sees_locks.then(|| LockNews {
            waits: self.shared.lock_waits.load(Relaxed),
            refusals: self.shared.lock_refusals.load(Relaxed),
        })
    }

    /// Makes [`Self::notifications`] readable at the next change of [`Self::lock_news`], once. No system call.
    pub fn notify_lock(&self) {
        self.shared.notify_lock.store(1, Relaxed);
    }

    /// Returns the file locks that were refused more than once in a row, the last time at `since_ns` or later. No
    /// system call.
    #[must_use]
    pub fn refused_locks(&self, since_ns: u64) -> Vec<RefusedLock> {
        let places = self.shared.refused.iter();
        places
            .map(RefusedLock::read)
            .filter(|lock| lock.refusals > 1 && lock.last_ns >= since_ns)
            .collect()
    }

    /// Returns a descriptor for poll and epoll, readable while there are notifications.
    #[must_use]
    pub fn notifications(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }

    /// Takes the pending notifications, oldest first, except those of tasks that are no longer watched.
    pub fn take_notifications(&mut self) -> Vec<TaskNotification> {
        // It only passes errors of the callback on, which has none.
        let _ = self.ring.consume();
        let mut taken = Vec::new();
        while let Ok(sent) = self.received.try_recv() {
            if sent.kind == NOTIFY_LOCK {
                continue;
            }
            let notification = TaskNotification {
                task: TaskSlot { place: sent.task, generation: sent.generation },
                disk: DiskSlot(sent.disk),
                kind: match sent.kind {
                    NOTIFY_SUBMIT => NotificationKind::Submit,
                    _ => NotificationKind::Done,
                },
                at_ns: sent.at_ns,
            };
            if self.is_watched(notification.task) {
                taken.push(notification);
            }
        }
        taken
    }
}
