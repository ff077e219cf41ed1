//! Causes of calls, inferred from their effects, backward in time.

use super::follow_threads::{EventContext, RequestSpan};
use super::host_timeline::{HostTimeline, ThreadEventKind};
use super::ids::{AssignedCall, CallId, RequestId, ThreadIndex};

/// Share of a thread's tasks, the shortest ones, that are sure to be one task each.
const SINGLE_TASK_SHARE: f64 = 0.1;
/// Minimum number of a thread's tasks from which its usual rounds are inferred.
const MIN_TASKS: usize = 10;
/// Maximum number of effects without a call before them that a task reaches past.
const MAX_EFFECTS: usize = 64;

/// Causes of calls, as their effects tell them.
#[derive(Debug)]
pub(super) struct CausesByEffect {
    pub(super) causes: Vec<AssignedCall<CallId, RequestId>>,
    /// By thread: rounds of calls that its tasks usually make.
    pub(super) usual_rounds: Vec<usize>,
}

/// Infers the requests of calls that no thread has sent for a request of its own.
///
/// Take a thread that ends the wait of one with an open request, or writes the answer. It has worked for that request
/// since its last effect. A queue in memory shows no hand-over while its workers are busy, but each result does.
///
/// A result for which nobody waits yet shows in no wake-up. The next task then seems to have begun earlier. It also
/// seems to have made more rounds of calls than this thread's tasks usually do. Of these rounds only the usual number
/// is taken.
pub(super) fn follow_backward(
    timeline: &HostTimeline,
    spans: &[RequestSpan],
    contexts: &[EventContext],
) -> CausesByEffect {
    let has_results = find_threads_with_results(timeline, contexts);
    let walk = Walk { timeline, spans, contexts, has_results };
    // 1. Number of rounds that the tasks of each thread usually make.
    let mut rounds = vec![Vec::new(); timeline.threads];
    walk.visit_tasks(|thread, task| {
        if task.doubtful.is_empty() {
            rounds[thread.0].push(task.rounds.len());
        }
    });
    let usual_rounds: Vec<usize> = rounds.into_iter().map(usual_rounds).collect();
    // 2. Causes of the calls in these rounds.
    let mut causes = Vec::new();
    walk.visit_tasks(|thread, task| {
        let usual = usual_rounds[thread.0];
        // Rounds beyond were for a request whose result seemed to be a lock's wake-up, if that was just then.
        let mut doubtful = task.doubtful.iter().filter(|wake_up| wake_up.rounds == usual);
        let before = doubtful.next().map(|wake_up| wake_up.request);
        let before = before.filter(|&request| doubtful.all(|wake_up| wake_up.request == request));
        for (at, round) in task.rounds.iter().enumerate() {
            let request = if at < usual { Some(task.request) } else { before };
            let Some(request) = request.filter(|_| at < usual.saturating_mul(2)) else {
                break;
            };
            let calls = round.iter().filter(|sent| spans[request.0].contains(sent.at_ns));
            causes.extend(calls.map(|sent| AssignedCall { call: sent.call, request }));
        }
    });
    CausesByEffect { causes, usual_rounds }
}

/// Returns the number of rounds of the shortest tasks of a thread.
///
/// Many longer ones may be two that look like one, as nobody waited for the first result. Callers count only tasks
/// without a doubtful wake-up: several tasks that look like one have one between them.
fn usual_rounds(mut rounds: Vec<usize>) -> usize {
    if rounds.len() < MIN_TASKS {
        return usize::MAX;
    }
    rounds.sort_unstable();
    rounds[((rounds.len() - 1) as f64 * SINGLE_TASK_SHARE).ceil() as usize]
}

#[derive(Debug, Clone, Copy)]
struct SentCall {
    call: CallId,
    at_ns: u64,
}

/// A wake-up of a thread with a request, more likely by a lock than by a result.
#[derive(Debug)]
struct DoubtfulWakeUp {
    /// Number of the task's rounds after it.
    rounds: usize,
    request: RequestId,
}

/// Work of a thread for a request, from an effect back to the one before.
#[derive(Debug)]
struct Task {
    request: RequestId,
    /// Rounds of calls, the last first; a round ends with an answer.
    rounds: Vec<Vec<SentCall>>,
    is_new_round: bool,
    doubtful: Vec<DoubtfulWakeUp>,
}

/// Tasks of a thread that the walk is in. The last one is the current one. Those before it are later in time, and may
/// go on as long as the current one has no calls.
#[derive(Debug, Default)]
struct OpenTasks(Vec<Task>);

impl OpenTasks {
    fn request(&self) -> Option<RequestId> {
        self.0.last().map(|task| task.request)
    }

    /// Begins a task, and returns one that is complete with it.
    fn begin(&mut self, request: RequestId) -> Option<Task> {
        let first = (self.0.len() == MAX_EFFECTS).then(|| self.0.remove(0));
        self.0.push(Task { request, rounds: Vec::new(), is_new_round: true, doubtful: Vec::new() });
        first.filter(|task| !task.rounds.is_empty())
    }

    fn doubt(&mut self, request: RequestId) {
        if let Some(task) = self.0.last_mut() {
            task.doubtful.push(DoubtfulWakeUp { rounds: task.rounds.len(), request });
        }
    }

    /// Ends all tasks, and returns those with calls.
    fn end(&mut self) -> impl Iterator<Item = Task> {
        std::mem::take(&mut self.0).into_iter().filter(|task| !task.rounds.is_empty())
    }

    /// Adds a call, and returns tasks that are complete with it.
    fn add_call(&mut self, sent: SentCall, spans: &[RequestSpan]) -> Vec<Task> {
        // A wake-up for a request that came after the call was no result of it, but of a lock: the later task goes on.
        let is_too_late =
            |task: &Task| spans[task.request.0].opened_ns > sent.at_ns && task.rounds.is_empty();
        while self.0.len() > 1 && self.0.last().is_some_and(is_too_late) {
            self.0.pop();
        }
        let Some(mut task) = self.0.pop() else {
            return Vec::new();
        };
        if !spans[task.request.0].contains(sent.at_ns) {
            self.0.push(task);
            return Vec::new();
        }
        let complete = self.end().collect();
        let is_new = std::mem::take(&mut task.is_new_round);
        match task.rounds.last_mut().filter(|_| !is_new) {
            Some(round) => round.push(sent),
            None => task.rounds.push(vec![sent]),
        }
        self.0.push(task);
        complete
    }

    /// Ends the round of each task: an answer was read between two calls.
    fn end_round(&mut self) {
        for task in &mut self.0 {
            task.is_new_round = true;
        }
    }
}

struct Walk<'t> {
    timeline: &'t HostTimeline,
    spans: &'t [RequestSpan],
    contexts: &'t [EventContext],
    has_results: Vec<bool>,
}

impl Walk<'_> {
    /// Goes back in time, and hands over each complete task with calls.
    fn visit_tasks(&self, mut visit: impl FnMut(ThreadIndex, Task)) {
        let mut open: Vec<OpenTasks> =
            (0..self.timeline.threads).map(|_| OpenTasks::default()).collect();
        for (event, context) in self.timeline.events.iter().zip(self.contexts).rev() {
            let thread = event.thread;
            let is_open = |request: &RequestId| self.spans[request.0].contains(event.at_ns);
            let mut is_at_begin = false;
            match event.kind {
                ThreadEventKind::Answers(request) if is_open(&request) => {
                    if let Some(task) = open[thread.0].begin(request) {
                        visit(thread, task);
                    }
                }
                // What the answer belongs to is not known for sure.
                ThreadEventKind::Answers(_) => is_at_begin = true,
                // Before it has read a request it worked for none that comes later.
                ThreadEventKind::ReadsRequest(_) => is_at_begin = true,
                ThreadEventKind::ReadsAnswer(_) if context.owes_many => is_at_begin = true,
                ThreadEventKind::ReadsAnswer(_) => open[thread.0].end_round(),
                ThreadEventKind::Asks(call) if context.own.is_none() => {
                    let sent = SentCall { call, at_ns: event.at_ns };
                    for task in open[thread.0].add_call(sent, self.spans) {
                        visit(thread, task);
                    }
                }
                ThreadEventKind::Woken(waker) => {
                    let works_for = open[thread.0].request();
                    let target = context.owes.or(works_for).filter(is_open);
                    // Workers wake each other for locks and queues. Of these wake-ups only those count whose waker has
                    // no other effects.
                    let counts =
                        |waker: &ThreadIndex| context.owes.is_some() || !self.has_results[waker.0];
                    if let (Some(waker), Some(request), None) =
                        (waker.filter(counts), target, context.own)
                    {
                        if context.may_be_result {
                            if let Some(task) = open[waker.0].begin(request) {
                                visit(waker, task);
                            }
                        } else {
                            open[waker.0].doubt(request);
                        }
                    }
                    let is_given_work = context.own.is_some() && context.own == works_for;
                    is_at_begin = context.owes.is_none() && (is_given_work || context.owes_many);
                }
                ThreadEventKind::Asks(_) | ThreadEventKind::Reads | ThreadEventKind::Sends => {}
            }
            if is_at_begin {
                open[thread.0].end().for_each(|task| visit(thread, task));
            }
        }
        for (thread, mut tasks) in open.into_iter().enumerate() {
            tasks.end().for_each(|task| visit(ThreadIndex(thread), task));
        }
    }
}

/// Finds threads that answer, or wake threads that owe an answer, without having read a request themselves.
fn find_threads_with_results(timeline: &HostTimeline, contexts: &[EventContext]) -> Vec<bool> {
    let mut has_results = vec![false; timeline.threads];
    for (event, context) in timeline.events.iter().zip(contexts) {
        let thread = match event.kind {
            ThreadEventKind::Answers(_) => event.thread,
            ThreadEventKind::Woken(Some(waker)) if context.owes.is_some() => waker,
            _ => continue,
        };
        has_results[thread.0] |= context.own.is_none();
    }
    has_results
}
