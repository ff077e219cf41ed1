//! Roots of waits while rows come in, in bounded memory.
//!
//! A row comes when its wait is over. By then the waits of its waker have come, too, up to the wake-up. Only waits
//! that somebody asks about are followed, all of some seconds at once. Without a question no graph is built.

use crate::graph_error::WaitGraphError;
use crate::graph_ids::{GraphThread, TraceIndex, TraceThread};
use crate::graph_rows::{GraphWait, ThreadFacts, TraceRows};
use crate::time_span::TimeSpan;
use crate::trace_clocks::OneClock;
use crate::wait_graph::WaitGraph;
use crate::wait_labels::WaitLabels;
use crate::wait_root::FoundRoots;

/// Time for which rows are kept. What a thread did before is forgotten when another one waited for it for longer.
const KEPT_NS: u64 = 10_000_000_000;
/// Time after which answers are due.
const ANSWER_INTERVAL_NS: u64 = 5_000_000_000;
/// Number of waits after which answers are due sooner.
const MAX_NEW_WAITS: usize = 1 << 16;
/// Maximum number of waits that are kept for longer.
const MAX_OLD_WAITS: usize = 1 << 14;

/// Time of a thread whose roots are asked for.
#[derive(Debug, Clone, Copy)]
struct Question {
    thread: TraceThread,
    span: TimeSpan,
}

/// Rows of the last seconds of one trace, without messages.
#[derive(Debug, Clone, Default)]
pub struct RollingRoots {
    begin_ns: u64,
    now_ns: u64,
    known_since_ns: u64,
    /// In the order of their ends.
    waits: Vec<GraphWait>,
    new_waits: usize,
    questions: Vec<Question>,
    answered_ns: u64,
}

impl RollingRoots {
    /// Begins at a time. Earlier times do not count.
    #[must_use]
    pub fn new(begin_ns: u64) -> Self {
        Self { begin_ns, now_ns: begin_ns, answered_ns: begin_ns, ..Self::default() }
    }

    /// Takes in a wait. Waits come in the order of their ends.
    pub fn add_wait(&mut self, wait: GraphWait) {
        self.now_ns = self.now_ns.max(wait.on_ns);
        self.new_waits += 1;
        self.waits.push(wait);
    }

    /// Asks for the roots of a thread's time. It ends when the last wait did, or before. Returns whether any of it
    /// counts.
    pub fn ask(&mut self, thread: TraceThread, span: TimeSpan) -> bool {
        let span = span.split(self.begin_ns).after;
        if !span.is_empty() {
            self.questions.push(Question { thread, span });
        }
        !span.is_empty()
    }

    /// Returns whether [`RollingRoots::answer`] should be called.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.new_waits >= MAX_NEW_WAITS
            || self.now_ns.saturating_sub(self.answered_ns) >= ANSWER_INTERVAL_NS
    }

    /// Returns whether nobody has asked since the last answers.
    #[must_use]
    pub fn is_unasked(&self) -> bool {
        self.questions.is_empty()
    }

    /// Forgets the questions, and old rows.
    pub fn forget(&mut self) {
        self.questions.clear();
        let too_many = self.waits.len().checked_sub(MAX_OLD_WAITS + 1);
        let crowded_ns = too_many.map_or(0, |last| self.waits[last].on_ns);
        self.known_since_ns = crowded_ns.max(self.now_ns.saturating_sub(KEPT_NS));
        self.waits.retain(|wait| wait.on_ns > self.known_since_ns);
        (self.answered_ns, self.new_waits) = (self.now_ns, 0);
    }

    /// Shows the roots of what was asked for to `each`, in that order, and forgets old rows. `facts` are those of all
    /// threads so far. Who had a processor is told only with `processors`, as it takes time.
    ///
    /// # Errors
    /// [`WaitGraphError`].
    pub fn answer(
        &mut self,
        facts: &[ThreadFacts],
        processors: bool,
        mut each: impl FnMut(TraceThread, &FoundRoots),
    ) -> Result<(), WaitGraphError> {
        let on_processor = |wait: &GraphWait| wait.processor.filter(|_| processors);
        let waits = self.waits.iter();
        let waits = waits.map(|wait| GraphWait { processor: on_processor(wait), ..*wait });
        let rows = TraceRows {
            threads: facts.to_vec(),
            waits: waits.collect(),
            known_since_ns: self.known_since_ns,
            ..TraceRows::default()
        };
        let no_labels = WaitLabels::default();
        let graph = WaitGraph::new(vec![rows], Vec::new(), no_labels, Box::new(OneClock))?;
        for Question { thread, span } in self.questions.drain(..) {
            let asked = GraphThread { trace: TraceIndex(0), thread };
            each(thread, &graph.roots_of(asked, span));
        }
        self.forget();
        Ok(())
    }
}
