//! Who did the work for a request, told from its effects: backward in time.

use super::forward::{Before, Span};
use super::timeline::{Kind, Timeline};

/// The share of a thread's tasks, the shortest ones, that are sure to be one task each.
const USUAL: f64 = 0.1;
/// With fewer tasks than this nothing is known of what is usual.
const FEWEST_TASKS: usize = 10;
/// So many effects without a call before them are looked past at most.
const MOST_EFFECTS: usize = 64;

/// The request that each outgoing one belongs to, `(call, request)`, of those that no thread has sent by itself.
///
/// Whoever ends the wait of a thread with an open request, or writes the answer of one, has worked for it: since the
/// effect that it had before. A queue in memory shows no hand-over while its workers are busy, but each result does.
///
/// A result for which nobody waits yet shows in no wake-up. The next task then seems to have begun earlier, and to have
/// made more rounds of calls than this thread's tasks usually do; of those only as many as are usual are taken. How
/// many that are, for each thread, is returned as well.
pub(super) fn backward(
    timeline: &Timeline,
    spans: &[Span],
    known: &[Before],
) -> (Vec<(usize, usize)>, Vec<usize>) {
    let has_results = has_results(timeline, known);
    let walk = Walk { timeline, spans, known, has_results };
    let (mut rounds, mut found) = (vec![Vec::new(); timeline.threads], Vec::new());
    walk.tasks(|thread, task| {
        if task.doubtful.is_empty() {
            rounds[thread].push(task.rounds.len());
        }
    });
    let usual: Vec<usize> = rounds.into_iter().map(usual).collect();
    walk.tasks(|thread, task| {
        let most = usual[thread];
        // What is more than usual was for a request whose result seemed to be a lock's wake-up, if that was just then.
        let mut doubtful = task.doubtful.iter().filter(|(rounds, _)| *rounds == most);
        let before = doubtful.next().map(|(_, request)| *request);
        let before = before.filter(|request| doubtful.all(|(_, other)| other == request));
        for (at, round) in task.rounds.iter().enumerate() {
            let request = if at < most { Some(task.request) } else { before };
            let Some(request) = request.filter(|_| at < most.saturating_mul(2)) else {
                break;
            };
            let is_open = |at_ns| spans[request].contains(at_ns);
            let calls = round.iter().filter(|(_, at_ns)| is_open(*at_ns));
            found.extend(calls.map(|(call, _)| (*call, request)));
        }
    });
    (found, usual)
}

/// How many rounds the shortest of these tasks have. Many others may be two that look like one, as the result of the first
/// was not waited for. They are those in which no wake-up was in doubt, as several tasks that look like one have such a
/// wake-up between them.
fn usual(mut rounds: Vec<usize>) -> usize {
    if rounds.len() < FEWEST_TASKS {
        return usize::MAX;
    }
    rounds.sort_unstable();
    rounds[((rounds.len() - 1) as f64 * USUAL).ceil() as usize]
}

/// What a thread did for a request, from an effect back to the one before.
#[derive(Debug)]
struct Task {
    request: usize,
    /// Outgoing requests and their times, the last first; a round ends with an answer.
    rounds: Vec<Vec<(usize, u64)>>,
    is_new_round: bool,
    /// Requests whose threads it woke, but more likely by a lock than by a result, and how many rounds were after that.
    doubtful: Vec<(usize, usize)>,
}

/// What a thread works for, as far as the walk has come: the last task is the current one. Those before it are later in
/// time, and may go on as long as the current one has no calls.
#[derive(Debug, Default)]
struct Work(Vec<Task>);

impl Work {
    fn request(&self) -> Option<usize> {
        self.0.last().map(|task| task.request)
    }

    /// Begins a task, and returns one that is complete with it.
    fn begin(&mut self, request: usize) -> Option<Task> {
        let first = (self.0.len() == MOST_EFFECTS).then(|| self.0.remove(0));
        self.0.push(Task { request, rounds: Vec::new(), is_new_round: true, doubtful: Vec::new() });
        first.filter(|task| !task.rounds.is_empty())
    }

    fn doubt(&mut self, request: usize) {
        if let Some(task) = self.0.last_mut() {
            task.doubtful.push((task.rounds.len(), request));
        }
    }

    /// Ends all tasks, and returns those with calls.
    fn end(&mut self) -> impl Iterator<Item = Task> {
        std::mem::take(&mut self.0).into_iter().filter(|task| !task.rounds.is_empty())
    }

    /// Adds a call, and returns tasks that are complete with it.
    fn ask(&mut self, call: usize, at_ns: u64, spans: &[Span]) -> Vec<Task> {
        // A wake-up for a request that came after the call was no result of it, but of a lock: the later task goes on.
        let is_too_late =
            |task: &Task| spans[task.request].opened_ns > at_ns && task.rounds.is_empty();
        while self.0.len() > 1 && self.0.last().is_some_and(is_too_late) {
            self.0.pop();
        }
        let Some(mut task) = self.0.pop() else {
            return Vec::new();
        };
        if !spans[task.request].contains(at_ns) {
            self.0.push(task);
            return Vec::new();
        }
        let complete = self.end().collect();
        let is_new = std::mem::take(&mut task.is_new_round);
        match task.rounds.last_mut().filter(|_| !is_new) {
            Some(round) => round.push((call, at_ns)),
            None => task.rounds.push(vec![(call, at_ns)]),
        }
        self.0.push(task);
        complete
    }

    /// Between two calls an answer was read.
    fn end_round(&mut self) {
        for task in &mut self.0 {
            task.is_new_round = true;
        }
    }
}

struct Walk<'t> {
    timeline: &'t Timeline,
    spans: &'t [Span],
    known: &'t [Before],
    has_results: Vec<bool>,
}

impl Walk<'_> {
    /// Goes back in time, and hands over each task with calls that is complete.
    fn tasks(&self, mut add: impl FnMut(usize, Task)) {
        let mut works: Vec<Work> = (0..self.timeline.threads).map(|_| Work::default()).collect();
        for (event, before) in self.timeline.events.iter().zip(self.known).rev() {
            let thread = event.thread;
            let is_open = |request: &usize| self.spans[*request].contains(event.at_ns);
            let mut is_at_begin = false;
            match event.kind {
                Kind::Answers(request) if is_open(&request) => {
                    if let Some(task) = works[thread].begin(request) {
                        add(thread, task);
                    }
                }
                // What the answer belongs to is not known for sure.
                Kind::Answers(_) => is_at_begin = true,
                // Before it has read a request it worked for none that comes later.
                Kind::ReadsRequest(_) => is_at_begin = true,
                Kind::ReadsAnswer(_) if before.owes_many => is_at_begin = true,
                Kind::ReadsAnswer(_) => works[thread].end_round(),
                Kind::Asks(call) if before.own.is_none() => {
                    for task in works[thread].ask(call, event.at_ns, self.spans) {
                        add(thread, task);
                    }
                }
                Kind::Woken(waker) => {
                    let works_for = works[thread].request();
                    let target = before.owes.or(works_for).filter(is_open);
                    // Workers wake each other for locks and queues: of such wake-ups only those count by threads that
                    // have no other effects.
                    let counts = |waker: &usize| before.owes.is_some() || !self.has_results[*waker];
                    if let (Some(waker), Some(request), None) =
                        (waker.filter(counts), target, before.own)
                    {
                        if before.may_be_result {
                            if let Some(task) = works[waker].begin(request) {
                                add(waker, task);
                            }
                        } else {
                            works[waker].doubt(request);
                        }
                    }
                    let is_given_work = before.own.is_some() && before.own == works_for;
                    is_at_begin = before.owes.is_none() && (is_given_work || before.owes_many);
                }
                Kind::Asks(_) | Kind::Reads | Kind::Sends => {}
            }
            if is_at_begin {
                works[thread].end().for_each(|task| add(thread, task));
            }
        }
        for (thread, mut work) in works.into_iter().enumerate() {
            work.end().for_each(|task| add(thread, task));
        }
    }
}

/// Threads that answer, or wake threads that owe an answer, without having read a request themselves.
fn has_results(timeline: &Timeline, known: &[Before]) -> Vec<bool> {
    let mut has_results = vec![false; timeline.threads];
    for (event, before) in timeline.events.iter().zip(known) {
        match event.kind {
            Kind::Answers(_) if before.own.is_none() => has_results[event.thread] = true,
            Kind::Woken(Some(waker)) if before.own.is_none() && before.owes.is_some() => {
                has_results[waker] = true
            }
            _ => {}
        }
    }
    has_results
}
