//! A search service: clients, a front end that asks all back ends and then some of them for snippets.

use std::cell::RefCell;
use std::rc::Rc;

use rand::RngExt;

use crate::server_simulation::{NextSteps, ServerSimulation, ThreadStep};

/// Way in which the front end hands a request over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontEndThreads {
    /// The thread that reads a request does it.
    SameThread,
    /// One thread reads; a new one is made for each request, and answers.
    ThreadPerRequest,
    /// The reader puts the request into a queue, waits until a worker has done it, and answers.
    Pool(usize),
    /// The reader puts the request into a queue; the worker answers.
    PoolAnswers(usize),
    /// The reader puts a task for each back end into a queue, waits for each, and answers.
    Scatter(usize),
}

/// Properties of the simulated service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchService {
    pub(crate) mode: FrontEndThreads,
    pub(crate) clients: usize,
    pub(crate) back_ends: usize,
    /// Time from an answer to the client's next request, ns.
    pub(crate) think_ns: u64,
    /// Time that a thread of the front end holds a lock that all need at times, ns; 0: there is no lock.
    pub(crate) lock_ns: u64,
}

pub(crate) const CLIENT_HOST: usize = 0;
pub(crate) const FRONT: usize = 1;

/// Idle connections of the front end to back ends, the last used on top.
type Idle = Rc<RefCell<Vec<Vec<usize>>>>;

impl SearchService {
    /// Holds the lock for a while, if there is one.
    fn locked(&self, simulation: &mut ServerSimulation) -> Vec<ThreadStep> {
        match self.lock_ns {
            0 => Vec::new(),
            lock_ns => vec![
                ThreadStep::Lock,
                ThreadStep::Run(simulation.about(lock_ns)),
                ThreadStep::Unlock,
            ],
        }
    }

    pub(crate) fn simulate(&self, seed: u64, until_ns: u64) -> ServerSimulation {
        let mut simulation = ServerSimulation::new(seed, 2 + self.back_ends);
        let idle: Idle = Rc::new(RefCell::new(vec![Vec::new(); self.back_ends]));
        let queue = simulation.queue();
        let workers = match self.mode {
            FrontEndThreads::Pool(workers)
            | FrontEndThreads::PoolAnswers(workers)
            | FrontEndThreads::Scatter(workers) => workers,
            FrontEndThreads::SameThread | FrontEndThreads::ThreadPerRequest => 0,
        };
        for _ in 0..workers {
            simulation.thread(FRONT, vec![ThreadStep::Then(worker(queue))]);
        }
        for _ in 0..self.clients {
            let [client, server] = simulation.connect(CLIENT_HOST, FRONT);
            simulation
                .thread(CLIENT_HOST, vec![ThreadStep::Then(ask_for_ever(client, self.think_ns))]);
            simulation.thread(
                FRONT,
                vec![ThreadStep::Then(serve_for_ever(*self, server, queue, idle.clone()))],
            );
        }
        simulation.run(until_ns);
        simulation
    }
}

fn worker(queue: usize) -> NextSteps {
    Box::new(move |_, _| vec![ThreadStep::Take { queue }, ThreadStep::Then(worker(queue))])
}

fn ask_for_ever(end: usize, think_ns: u64) -> NextSteps {
    Box::new(move |simulation, _| {
        let think_ns = simulation.about(think_ns);
        let bytes = simulation.random.random_range(200..600);
        let request = simulation.new_request();
        vec![
            ThreadStep::Run(think_ns),
            ThreadStep::Send { end, bytes, request },
            ThreadStep::Receive { end },
            ThreadStep::Then(ask_for_ever(end, think_ns)),
        ]
    })
}

fn serve_for_ever(service: SearchService, end: usize, queue: usize, idle: Idle) -> NextSteps {
    Box::new(move |_, _| {
        let then: NextSteps = Box::new(move |simulation, _| {
            let request = simulation.request_of(end);
            let mut ops = vec![ThreadStep::Run(simulation.about(20_000))];
            ops.extend(service.locked(simulation));
            let everything = handle(service, request, idle.clone());
            // As a log's lock is taken, before each answer.
            let mut log = service.locked(simulation);
            log.push(ThreadStep::Then(answer(end, request)));
            let answer = ThreadStep::Then(Box::new(move |_: &mut ServerSimulation, _| log));
            match service.mode {
                FrontEndThreads::SameThread => ops.extend([ThreadStep::Then(everything), answer]),
                FrontEndThreads::ThreadPerRequest => {
                    ops.push(ThreadStep::Spawn(Box::new(|_, _| {
                        vec![ThreadStep::Then(everything), answer]
                    })));
                }
                FrontEndThreads::Pool(_) => {
                    let counter = simulation.counter();
                    let task: NextSteps = Box::new(move |_, _| {
                        vec![ThreadStep::Then(everything), ThreadStep::Count { counter }]
                    });
                    ops.extend([
                        ThreadStep::Push { queue, task },
                        ThreadStep::Await { counter, until: 1 },
                        answer,
                    ]);
                }
                FrontEndThreads::PoolAnswers(_) => {
                    let task: NextSteps =
                        Box::new(|_, _| vec![ThreadStep::Then(everything), answer]);
                    ops.push(ThreadStep::Push { queue, task });
                }
                FrontEndThreads::Scatter(_) => {
                    let all: Vec<usize> = (0..service.back_ends).collect();
                    let some = owners(simulation, service);
                    for asked in [all, some] {
                        ops.extend(scattered(simulation, service, &asked, request, queue, &idle));
                        ops.push(ThreadStep::Run(simulation.about(15_000)));
                    }
                    ops.push(answer);
                }
            }
            ops.push(ThreadStep::Then(serve_for_ever(service, end, queue, idle)));
            ops
        });
        vec![ThreadStep::Receive { end }, ThreadStep::Then(then)]
    })
}

fn answer(end: usize, request: u64) -> NextSteps {
    Box::new(move |simulation, _| {
        let bytes = simulation.random.random_range(1000..5000);
        vec![ThreadStep::Run(simulation.about(10_000)), ThreadStep::Send { end, bytes, request }]
    })
}

/// Returns the back ends that own the results.
fn owners(simulation: &mut ServerSimulation, service: SearchService) -> Vec<usize> {
    let first = simulation.random.random_range(0..service.back_ends);
    let second = simulation.random.random_range(0..service.back_ends);
    if first == second { vec![first] } else { vec![first, second] }
}

/// Asks all back ends, merges, and asks the owners for snippets, in one thread.
fn handle(service: SearchService, request: u64, idle: Idle) -> NextSteps {
    Box::new(move |simulation, _| {
        let merge_ns = simulation.about(30_000);
        let some = owners(simulation, service);
        let all = (0..service.back_ends).collect();
        let mut ops = service.locked(simulation);
        ops.extend([
            ThreadStep::Then(calls(all, request, idle.clone())),
            ThreadStep::Run(merge_ns),
        ]);
        ops.extend(service.locked(simulation));
        ops.extend([ThreadStep::Then(calls(some, request, idle)), ThreadStep::Run(merge_ns / 2)]);
        ops.extend(service.locked(simulation));
        ops
    })
}

/// Puts a task for each back end, and waits for each.
fn scattered(
    simulation: &mut ServerSimulation,
    service: SearchService,
    asked: &[usize],
    request: u64,
    queue: usize,
    idle: &Idle,
) -> Vec<ThreadStep> {
    let counter = simulation.counter();
    let mut ops = Vec::new();
    for &back_end in asked {
        let idle = idle.clone();
        let task: NextSteps = Box::new(move |simulation, _| {
            let mut ops = service.locked(simulation);
            ops.extend([
                ThreadStep::Then(calls(vec![back_end], request, idle)),
                ThreadStep::Run(2000),
            ]);
            ops.extend(service.locked(simulation));
            ops.push(ThreadStep::Count { counter });
            ops
        });
        ops.extend([ThreadStep::Push { queue, task }, ThreadStep::Run(1500)]);
    }
    for until in 1..=asked.len() as u64 {
        ops.extend([ThreadStep::Await { counter, until }, ThreadStep::Run(3000)]);
    }
    ops
}

/// Calls these back ends all at once, and reads their answers one after another.
fn calls(back_ends: Vec<usize>, request: u64, idle: Idle) -> NextSteps {
    Box::new(move |simulation, _| {
        let mut ends = Vec::new();
        for &back_end in &back_ends {
            let last = idle.borrow_mut()[back_end].pop();
            let end = last.unwrap_or_else(|| {
                let [client, server] = simulation.connect(FRONT, 2 + back_end);
                simulation.thread(2 + back_end, vec![ThreadStep::Then(work_for_ever(server))]);
                client
            });
            ends.push(end);
        }
        let send = |&end: &usize| ThreadStep::Send { end, bytes: 150 + request % 50, request };
        let mut ops: Vec<ThreadStep> = ends.iter().map(send).collect();
        ops.extend(ends.iter().map(|&end| ThreadStep::Receive { end }));
        ops.push(ThreadStep::Then(Box::new(move |_, _| {
            for (&back_end, end) in back_ends.iter().zip(ends) {
                idle.borrow_mut()[back_end].push(end);
            }
            Vec::new()
        })));
        ops
    })
}

/// A back end's thread of one connection.
fn work_for_ever(end: usize) -> NextSteps {
    Box::new(move |_, _| {
        let then: NextSteps = Box::new(move |simulation, _| {
            let request = simulation.request_of(end);
            let work_ns = simulation.about(1_000_000);
            vec![
                ThreadStep::Run(work_ns),
                ThreadStep::Then(answer(end, request)),
                ThreadStep::Then(work_for_ever(end)),
            ]
        });
        vec![ThreadStep::Receive { end }, ThreadStep::Then(then)]
    })
}
