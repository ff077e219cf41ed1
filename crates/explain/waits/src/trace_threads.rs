//! Threads of a trace's tables, and the conversion of their rows.

use std::collections::{BTreeMap, BTreeSet};

use luc_events::tables::{
    AsleepThread, FsyncCall, OffCpuWait, ProcessProgram, ThreadInfo, ThreadStart,
};
use luc_events::{Pid, WaitCause};

use crate::graph_ids::TraceThread;
use crate::graph_rows::{GraphWait, SyncCallSpan, ThreadFacts, WaitEnd};
use crate::number_hash::NumberMap;
use crate::service_names::{ProcessFacts, ServiceNames, thread_class};
use crate::time_span::TimeSpan;
use crate::wait_labels::WaitLabels;

/// Maximum number of ancestors that are looked at. More are of forged rows.
const MAX_ANCESTORS: usize = 16;

/// Tables of a trace that tell its threads apart. Rows are in the order of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadTables<'t> {
    /// Names, processes and times of threads.
    pub tasks: &'t [ThreadInfo],
    /// Threads that began, and who made them.
    pub starts: &'t [ThreadStart],
    /// Programs that processes began to run.
    pub programs: &'t [ProcessProgram],
    /// Begin and end of the trace.
    pub span: Option<TimeSpan>,
}

/// A thread that had a number for some time.
#[derive(Debug, Clone, Copy)]
struct ThreadLife {
    start_ns: u64,
    thread: TraceThread,
}

/// Name of a process' first thread, and the process' parent.
#[derive(Debug, Clone)]
struct SeenProcess {
    name: String,
    parent: u32,
}

/// [`ThreadFacts`] with names instead of labels.
#[derive(Debug, Clone)]
struct NamedFacts {
    number: Pid,
    process: u32,
    service: String,
    name: String,
    creator: Option<TraceThread>,
    started_ns: Option<u64>,
    ended_ns: Option<u64>,
    is_recorded: bool,
}

impl NamedFacts {
    /// Facts of a thread without a row of its own: its number alone is known.
    fn of_number(number: Pid) -> Self {
        let name = format!("thread {}", number.0);
        Self {
            number,
            process: number.0,
            service: name.clone(),
            name,
            creator: None,
            started_ns: None,
            ended_ns: None,
            is_recorded: false,
        }
    }
}

/// Threads of one trace. The kernel uses their numbers again, so each query has a time.
#[derive(Debug, Default)]
pub struct TraceThreads {
    lives: NumberMap<Vec<ThreadLife>>,
    facts: Vec<NamedFacts>,
    /// Processes of rows that come in one by one.
    processes: NumberMap<SeenProcess>,
    /// Begin and end of the trace.
    span: Option<TimeSpan>,
}

impl TraceThreads {
    /// Collects the threads. `ports` are those at which each process was connected to.
    #[must_use]
    pub fn new(tables: ThreadTables<'_>, ports: &BTreeMap<u32, BTreeSet<String>>) -> Self {
        let mut threads = Self { span: tables.span, ..Self::default() };
        // 1. Each thread, with its last name.
        let services = ServiceNames::of(&processes(tables, ports));
        for row in tables.tasks {
            threads.add_task(row, &services);
        }
        for lives in threads.lives.values_mut() {
            lives.sort_by_key(|life| life.start_ns);
        }
        // 2. Their makers.
        for row in tables.starts.iter().filter(|row| !row.creator.is_none()) {
            let creator = threads.at(row.creator, row.at_ns);
            let made = threads.at(row.thread, row.at_ns);
            threads.set_creator(made, creator);
        }
        for row in tables.tasks.iter().filter(|row| row.thread.0 == row.process.0) {
            if row.parent.0 != 0 {
                let parent = threads.at(Pid(row.parent.0), row.start_ns);
                let made = threads.at(row.thread, row.at_ns);
                threads.set_creator(made, parent);
            }
        }
        threads
    }

    /// Begins without a thread, for rows that come in one by one.
    #[must_use]
    pub fn since(begin_ns: u64) -> Self {
        Self { span: Some(TimeSpan::new(begin_ns, u64::MAX)), ..Self::default() }
    }

    /// Takes in a row of a thread. Its service has the name of its process' first thread.
    pub fn see(&mut self, row: &ThreadInfo) {
        let name = thread_class(&row.comm).to_owned();
        if row.thread.0 == row.process.0 {
            let seen = SeenProcess { name: name.clone(), parent: row.parent.0 };
            self.processes.insert(row.process.0, seen);
        }
        let service = self.processes.get(&row.process.0).map(|seen| seen.name.clone());
        let began_ns = self.span.map_or(0, TimeSpan::from_ns);
        let thread = self.life_of(row);
        let Some(facts) = self.facts.get_mut(thread.0 as usize) else { return };
        facts.process = row.process.0;
        facts.service = service.unwrap_or_else(|| name.clone());
        facts.name = name;
        facts.started_ns = Some(row.start_ns).filter(|&start_ns| start_ns > began_ns);
        let ended_ns = Some(row.exit_ns).filter(|&exit_ns| exit_ns > 0);
        facts.ended_ns = ended_ns.or(facts.ended_ns);
    }

    /// Returns the thread of a row. One whose waits came before its row is known by its number alone.
    fn life_of(&mut self, row: &ThreadInfo) -> TraceThread {
        let lives = self.lives.entry(row.thread.0).or_default();
        if let Some(life) = lives.iter().find(|life| life.start_ns == row.start_ns) {
            return life.thread;
        }
        if let [life] = &mut lives[..]
            && life.start_ns == 0
        {
            life.start_ns = row.start_ns;
            return life.thread;
        }
        let thread = self.add(NamedFacts::of_number(row.thread));
        let lives = self.lives.entry(row.thread.0).or_default();
        lives.push(ThreadLife { start_ns: row.start_ns, thread });
        lives.sort_by_key(|life| life.start_ns);
        thread
    }

    /// Returns the number that the kernel gave a thread.
    #[must_use]
    pub fn number(&self, thread: TraceThread) -> Option<Pid> {
        self.facts.get(thread.0 as usize).map(|facts| facts.number)
    }

    /// Returns the process of a thread; the thread's own number if its process is not known.
    #[must_use]
    pub fn process(&self, thread: TraceThread) -> Option<u32> {
        self.facts.get(thread.0 as usize).map(|facts| facts.process)
    }

    /// Returns when a thread ended, if it did in the trace.
    #[must_use]
    pub fn ended_ns(&self, thread: TraceThread) -> Option<u64> {
        self.facts.get(thread.0 as usize).and_then(|facts| facts.ended_ns)
    }

    /// Returns whether two threads are of two processes of one family: those below a process of the same name.
    #[must_use]
    pub fn are_relatives(&self, a: TraceThread, b: TraceThread) -> bool {
        match self.process(a).zip(self.process(b)) {
            Some((a, b)) => a != b && self.founder(a) == self.founder(b),
            None => false,
        }
    }

    /// Returns whether a thread's process made that of another one.
    #[must_use]
    pub fn is_parent(&self, parent: TraceThread, child: TraceThread) -> bool {
        let of_child = self.process(child).and_then(|child| self.processes.get(&child));
        of_child.is_some_and(|seen| Some(seen.parent) == self.process(parent))
    }

    /// Returns the oldest ancestor of the same name.
    fn founder(&self, process: u32) -> u32 {
        let name = self.processes.get(&process).map(|seen| &seen.name);
        let mut oldest = process;
        for _ in 0..MAX_ANCESTORS {
            let parent = self.processes.get(&oldest).map(|seen| seen.parent);
            let of_parent = parent.and_then(|parent| self.processes.get(&parent));
            match parent.filter(|_| of_parent.map(|seen| &seen.name) == name) {
                Some(parent) if name.is_some() => oldest = parent,
                _ => break,
            }
        }
        oldest
    }

    /// Returns the thread that had a number at a time. One that no table has is added, as a thread that was not
    /// recorded.
    pub fn at(&mut self, number: Pid, at_ns: u64) -> TraceThread {
        if let Some(thread) = self.known_at(number, at_ns) {
            return thread;
        }
        let thread = self.add(NamedFacts::of_number(number));
        self.lives.entry(number.0).or_default().push(ThreadLife { start_ns: 0, thread });
        thread
    }

    /// Returns the thread that had a number at a time, if the tables have it: the last one that had begun, else the
    /// first.
    #[must_use]
    pub fn known_at(&self, number: Pid, at_ns: u64) -> Option<TraceThread> {
        let lives = self.lives.get(&number.0)?;
        let next = lives.partition_point(|life| life.start_ns <= at_ns);
        lives.get(next.saturating_sub(1)).map(|life| life.thread)
    }

    /// Converts a wait; `None` if its times are not in order.
    pub fn wait(&mut self, row: &OffCpuWait) -> Option<GraphWait> {
        if row.on_ns < row.off_ns || row.woken_ns > row.on_ns {
            return None;
        }
        let is_preempted = row.cause == WaitCause::Preempted;
        let woken_ns = match row.woken_ns {
            _ if is_preempted => None,
            // Nobody was seen to wake it: it waited all along.
            0 => Some(row.on_ns),
            woken_ns => Some(woken_ns.max(row.off_ns)),
        };
        let has_waker = !row.waker.is_none() && !is_ended_by_interrupts(row.cause);
        Some(GraphWait {
            thread: self.recorded_at(row.thread, row.on_ns),
            off_ns: row.off_ns,
            woken_ns,
            on_ns: row.on_ns,
            waker: has_waker.then(|| self.at(row.waker, row.woken_ns)),
            end: WaitEnd::NotKnown,
            cause: row.cause,
            processor: row.processor.checked_sub(1),
        })
    }

    /// Converts a sleep that the end of the trace cut; `None` for one that was seen when the trace began. `peer` is the
    /// thread that used the other end of its connection last, if it waited on one.
    pub fn unfinished(
        &mut self,
        row: &AsleepThread,
        peer: Option<TraceThread>,
    ) -> Option<GraphWait> {
        let span = self.span?;
        let since_begin_ns = row.at_ns.saturating_sub(span.from_ns());
        if since_begin_ns < span.to_ns().saturating_sub(row.at_ns) {
            return None;
        }
        let off_ns = row.since_ns.max(span.from_ns());
        let holder = (!row.holder.is_none()).then(|| self.at(row.holder, row.at_ns));
        let end_ns = row.at_ns.max(span.to_ns());
        (off_ns < end_ns).then(|| GraphWait {
            thread: self.recorded_at(row.thread, row.at_ns),
            off_ns,
            woken_ns: Some(end_ns),
            on_ns: end_ns,
            waker: holder.or(peer),
            end: WaitEnd::Unfinished,
            cause: row.cause,
            processor: None,
        })
    }

    /// Converts an fsync or a similar call.
    pub fn sync(&mut self, row: &FsyncCall) -> SyncCallSpan {
        SyncCallSpan {
            thread: self.at(row.thread, row.enter_ns),
            span: TimeSpan::new(row.enter_ns, row.exit_ns),
        }
    }

    /// Returns the facts of all threads, by their indices. Names are added to `labels`, which traces share.
    #[must_use]
    pub fn facts(&self, labels: &mut WaitLabels) -> Vec<ThreadFacts> {
        let facts = self.facts.iter().map(|facts| ThreadFacts {
            process: facts.process,
            service: labels.index(&facts.service),
            name: labels.index(&facts.name),
            creator: facts.creator,
            started_ns: facts.started_ns,
            ended_ns: facts.ended_ns,
            is_recorded: facts.is_recorded,
        });
        facts.collect()
    }

    fn add_task(&mut self, row: &ThreadInfo, services: &ServiceNames) {
        let name = thread_class(&row.comm).to_owned();
        let ended_ns = Some(row.exit_ns).filter(|&exit_ns| exit_ns > 0);
        let lives = self.lives.entry(row.thread.0).or_default();
        if let Some(life) = lives.iter().find(|life| life.start_ns == row.start_ns) {
            let facts = &mut self.facts[life.thread.0 as usize];
            facts.name = name;
            facts.ended_ns = ended_ns;
            return;
        }
        let began_ns = self.span.map_or(0, TimeSpan::from_ns);
        let facts = NamedFacts {
            number: row.thread,
            process: row.process.0,
            service: services.service(row.process.0).unwrap_or(&name).to_owned(),
            name,
            creator: None,
            started_ns: Some(row.start_ns).filter(|&start_ns| start_ns > began_ns),
            ended_ns,
            is_recorded: true,
        };
        let thread = self.add(facts);
        let lives = self.lives.entry(row.thread.0).or_default();
        lives.push(ThreadLife { start_ns: row.start_ns, thread });
    }

    fn add(&mut self, facts: NamedFacts) -> TraceThread {
        let thread = TraceThread(u32::try_from(self.facts.len()).unwrap_or(u32::MAX));
        self.facts.push(facts);
        thread
    }

    /// Returns a thread that has rows of its own, as [`TraceThreads::at`] does.
    pub fn recorded_at(&mut self, number: Pid, at_ns: u64) -> TraceThread {
        let thread = self.at(number, at_ns);
        if let Some(facts) = self.facts.get_mut(thread.0 as usize) {
            facts.is_recorded = true;
        }
        thread
    }

    fn set_creator(&mut self, made: TraceThread, creator: TraceThread) {
        if let Some(facts) = self.facts.get_mut(made.0 as usize) {
            facts.creator.get_or_insert(creator);
        }
    }
}

/// Returns the facts from which services follow. A process that runs one program after the other has the last one.
fn processes(
    tables: ThreadTables<'_>,
    ports: &BTreeMap<u32, BTreeSet<String>>,
) -> Vec<ProcessFacts> {
    let mut processes: BTreeMap<u32, ProcessFacts> = BTreeMap::new();
    for row in tables.tasks {
        let facts = processes.entry(row.process.0).or_default();
        if facts.comm.is_empty() || row.thread.0 == row.process.0 {
            facts.comm.clone_from(&row.comm);
        }
        facts.parent = Some(row.parent.0).filter(|&parent| parent != 0);
    }
    for row in tables.programs {
        let facts = processes.entry(row.process.0).or_default();
        facts.program.clone_from(&row.path);
        facts.script.clone_from(&row.script);
    }
    let with_number = |(process, facts): (u32, ProcessFacts)| ProcessFacts {
        process,
        ports: ports.get(&process).cloned().unwrap_or_default(),
        ..facts
    };
    processes.into_iter().map(with_number).collect()
}

/// Returns whether an interrupt ends a wait with this cause. It has the name of the thread that it met.
fn is_ended_by_interrupts(cause: WaitCause) -> bool {
    matches!(
        cause,
        WaitCause::Sleep | WaitCause::Device | WaitCause::Flush | WaitCause::DataWriteback
    )
}
