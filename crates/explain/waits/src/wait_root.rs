//! Roots: the ends of chains of waits.

use luc_events::WaitCause;

use crate::graph_ids::{EndIndex, GraphThread, TraceIndex};
use crate::time_span::TimeSpan;
use crate::wait_labels::LabelIndex;

/// Kind of what was at the end of a chain of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootKind {
    /// The thread was on a processor.
    Computes,
    /// Another thread could run and waited, while the thread had the processor.
    Processor,
    /// The thread could run, and no recorded thread had its processor.
    NoProcessor,
    /// The thread had set itself a time.
    Timer,
    /// The thread was in fsync or a similar call.
    Fsync,
    /// The thread waited for a journal, outside of fsync and similar calls.
    Journal,
    /// The thread waited for a block device, outside of fsync and similar calls.
    Device,
    /// The thread waited for memory: too much of it was dirty, or a page was missing.
    Memory,
    /// A signal or a debugger had stopped the thread.
    Stopped,
    /// The thread's cgroup had used up its quota of processor time.
    Throttled,
    /// The thread's cgroup was frozen.
    Frozen,
    /// A message was between two hosts, or between a device's driver and the socket.
    Network,
    /// A sent message had not left its host yet: TCP or the device's queue held it back.
    HeldBack,
    /// A request lay in the queue of a thread that worked for others.
    BusyWithOthers,
    /// The thread had nothing to do until a message came that answered no call. The root is the sender.
    Input,
    /// A server worked that no trace has. The service is its address.
    Outside,
    /// The rows do not tell.
    Unknown(UnknownReason),
}

impl RootKind {
    /// Returns the kind's name in reports for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Computes => "computes",
            Self::Processor => "processor",
            Self::NoProcessor => "no_processor",
            Self::Timer => "timer",
            Self::Fsync => "fsync",
            Self::Journal => "journal",
            Self::Device => "device",
            Self::Memory => "memory",
            Self::Stopped => "stopped",
            Self::Throttled => "throttled",
            Self::Frozen => "frozen",
            Self::Network => "network",
            Self::HeldBack => "held_back",
            Self::BusyWithOthers => "busy_with_others",
            Self::Input => "input",
            Self::Outside => "outside",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Reason why a root is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnknownReason {
    /// The thread was not recorded, or a message of the call.
    NoRows,
    /// No row has the thread that ended the wait: a lock's holder, or a waker that was not recorded.
    NoWaker,
    /// An interrupt ended the wait, and no message tells what it brought.
    Interrupt,
    /// The trace ended before the wait, and nothing tells what it was for.
    Unfinished,
    /// A message of another request ended the wait of a thread that works for several.
    EventLoop,
    /// The thread that ended the wait waits itself for this one.
    Circle,
    /// The thread did not exist yet, and its maker is unknown.
    NotBorn,
    /// The thread had ended.
    Ended,
    /// The clocks of two hosts are not related.
    NoClock,
    /// It was before the rows that are kept.
    Forgotten,
    /// The chain was too long, or took too many steps: the rows are forged.
    TooLong,
}

/// End of a chain of waits. Times of the same root add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitRoot {
    /// Kind of the root.
    pub kind: RootKind,
    /// Service whose thread it was; the address of a server that no trace has.
    pub service: Option<LabelIndex>,
    /// Name of the thread without the numbers of a pool.
    pub name: Option<LabelIndex>,
}

/// Index of a link in [`FoundRoots::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkIndex(pub u32);

/// Reason why a thread's time is another thread's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkReason {
    /// The other thread served the call whose answer the waiter waited for.
    Answered,
    /// The other thread ended the wait.
    Woke,
    /// The other thread did not end the wait before the trace ended: it has the lock, or the other end.
    Holds,
    /// The other thread gave the request to this one.
    HandedOver,
    /// The other thread made this one.
    Made,
    /// A message lay at the other thread's socket.
    Delivered,
}

/// A step of a chain: from a thread that waited to the one that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLink {
    /// Thread that waited; `None` for a request that nobody in a trace waited for.
    pub waiter: Option<GraphThread>,
    /// Cause of its wait, if it was one.
    pub cause: Option<WaitCause>,
    /// Thread whose time the wait was.
    pub other: GraphThread,
    /// Reason why the walk went on there.
    pub reason: LinkReason,
    /// Link that led to the waiter; `None` if the question was about the waiter.
    pub above: Option<LinkIndex>,
}

/// A part of the time that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootPart {
    /// End of the chain.
    pub root: WaitRoot,
    /// Time of the part.
    pub span: TimeSpan,
    /// Trace whose clock shows that time.
    pub clock: TraceIndex,
    /// Thread at the end of the chain; `None` if no trace has it.
    pub thread: Option<GraphThread>,
    /// Cause of that thread's wait, if it waited.
    pub cause: Option<WaitCause>,
    /// Other thread that took part. It sent the message that is on its way, waited for the processor or for input, or
    /// ended the wait.
    pub other: Option<GraphThread>,
    /// End that a message on its way came to, in the trace of the part's thread.
    pub end: Option<EndIndex>,
    /// Thread whose queue the request lay in, if a queue is the root.
    pub queue: Option<GraphThread>,
    /// Work of the others, if a queue is the root.
    pub busy: Option<WaitRoot>,
    /// Last link of the chain; `None` if it is the time of the thread that was asked about.
    pub link: Option<LinkIndex>,
}

/// Roots of the time that was asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundRoots {
    /// Parts without a gap, the earliest first.
    pub parts: Vec<RootPart>,
    /// Steps of the chains. A link comes after the one above it.
    pub links: Vec<WaitLink>,
}

impl FoundRoots {
    /// Returns the sum of the parts, which is the time that was asked about.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.span.length_ns()))
    }

    /// Returns the chain that led to a part, the outermost link first.
    #[must_use]
    pub fn chain(&self, part: &RootPart) -> Vec<WaitLink> {
        let link = |index: LinkIndex| self.links.get(index.0 as usize);
        let mut chain: Vec<WaitLink> = Vec::new();
        let mut next = part.link.and_then(link);
        while let Some(found) = next.filter(|_| chain.len() < self.links.len()) {
            chain.push(*found);
            next = found.above.and_then(link);
        }
        chain.reverse();
        chain
    }

    /// Returns the outermost link of the chain that led to a part; `None` if it is the asked thread's own time.
    #[must_use]
    pub fn first_link(&self, part: &RootPart) -> Option<&WaitLink> {
        let link = |index: LinkIndex| self.links.get(index.0 as usize);
        let mut first = part.link.and_then(link)?;
        // A link comes after the one above it.
        for _ in 0..self.links.len() {
            match first.above.and_then(link) {
                Some(above) => first = above,
                None => break,
            }
        }
        Some(first)
    }
}
