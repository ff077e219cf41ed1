//! A search service: clients, a front end that asks all back ends and then some of them for snippets.

use std::cell::RefCell;
use std::rc::Rc;

use rand::RngExt;

use crate::simulated::{Op, Simulation, Then};

/// Way in which the front end hands a request over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
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
pub(crate) struct Service {
    pub(crate) mode: Mode,
    pub(crate) clients: usize,
    pub(crate) back_ends: usize,
    /// Time from an answer to the client's next request, ns.
    pub(crate) think_ns: u64,
    /// Time that a thread of the front end holds a lock that all need at times, ns; 0: there is no lock.
    pub(crate) lock_ns: u64,
}

pub(crate) const CLIENT_HOST: usize = 0;
pub(crate) const FRONT: usize = 1;
/// Time that the slow back end takes, ns; the others take about 1 ms.
const SLOW_NS: u64 = 10_000_000;

/// Idle connections of the front end to back ends, the last used on top.
type Idle = Rc<RefCell<Vec<Vec<usize>>>>;

impl Service {
    /// Holds the lock for a while, if there is one.
    fn locked(&self, simulation: &mut Simulation) -> Vec<Op> {
        match self.lock_ns {
            0 => Vec::new(),
            lock_ns => vec![Op::Lock, Op::Run(simulation.about(lock_ns)), Op::Unlock],
        }
    }

    pub(crate) fn simulate(&self, seed: u64, until_ns: u64) -> Simulation {
        self.simulate_with_slow(seed, until_ns, None)
    }

    pub(crate) fn simulate_with_slow(
        &self,
        seed: u64,
        until_ns: u64,
        slow_host: Option<usize>,
    ) -> Simulation {
        let mut simulation = Simulation::new(seed, 2 + self.back_ends);
        simulation.slow_host = slow_host;
        let idle: Idle = Rc::new(RefCell::new(vec![Vec::new(); self.back_ends]));
        let queue = simulation.queue();
        let workers = match self.mode {
            Mode::Pool(workers) | Mode::PoolAnswers(workers) | Mode::Scatter(workers) => workers,
            Mode::SameThread | Mode::ThreadPerRequest => 0,
        };
        for _ in 0..workers {
            simulation.thread(FRONT, vec![Op::Then(worker(queue))]);
        }
        for _ in 0..self.clients {
            let [client, server] = simulation.connect(CLIENT_HOST, FRONT);
            simulation.thread(CLIENT_HOST, vec![Op::Then(ask_for_ever(client, self.think_ns))]);
            simulation
                .thread(FRONT, vec![Op::Then(serve_for_ever(*self, server, queue, idle.clone()))]);
        }
        simulation.run(until_ns);
        simulation
    }
}

fn worker(queue: usize) -> Then {
    Box::new(move |_, _| vec![Op::Take { queue }, Op::Then(worker(queue))])
}

fn ask_for_ever(end: usize, think_ns: u64) -> Then {
    Box::new(move |simulation, _| {
        let think_ns = simulation.about(think_ns);
        let bytes = simulation.random.random_range(200..600);
        let request = simulation.new_request();
        vec![
            Op::Run(think_ns),
            Op::Send { end, bytes, request },
            Op::Receive { end },
            Op::Then(ask_for_ever(end, think_ns)),
        ]
    })
}

fn serve_for_ever(service: Service, end: usize, queue: usize, idle: Idle) -> Then {
    Box::new(move |_, _| {
        let then: Then = Box::new(move |simulation, _| {
            let request = simulation.request_of(end);
            let mut ops = vec![Op::Run(simulation.about(20_000))];
            ops.extend(service.locked(simulation));
            let everything = handle(service, request, idle.clone());
            // As a log's lock is taken, before each answer.
            let mut log = service.locked(simulation);
            log.push(Op::Then(answer(end, request)));
            let answer = Op::Then(Box::new(move |_: &mut Simulation, _| log));
            match service.mode {
                Mode::SameThread => ops.extend([Op::Then(everything), answer]),
                Mode::ThreadPerRequest => {
                    ops.push(Op::Spawn(Box::new(|_, _| vec![Op::Then(everything), answer])));
                }
                Mode::Pool(_) => {
                    let counter = simulation.counter();
                    let task: Then =
                        Box::new(move |_, _| vec![Op::Then(everything), Op::Count { counter }]);
                    ops.extend([Op::Push { queue, task }, Op::Await { counter, until: 1 }, answer]);
                }
                Mode::PoolAnswers(_) => {
                    let task: Then = Box::new(|_, _| vec![Op::Then(everything), answer]);
                    ops.push(Op::Push { queue, task });
                }
                Mode::Scatter(_) => {
                    let all: Vec<usize> = (0..service.back_ends).collect();
                    let some = owners(simulation, service);
                    for asked in [all, some] {
                        ops.extend(scattered(simulation, service, &asked, request, queue, &idle));
                        ops.push(Op::Run(simulation.about(15_000)));
                    }
                    ops.push(answer);
                }
            }
            ops.push(Op::Then(serve_for_ever(service, end, queue, idle)));
            ops
        });
        vec![Op::Receive { end }, Op::Then(then)]
    })
}

fn answer(end: usize, request: u64) -> Then {
    Box::new(move |simulation, _| {
        let bytes = simulation.random.random_range(1000..5000);
        vec![Op::Run(simulation.about(10_000)), Op::Send { end, bytes, request }]
    })
}

/// Returns the back ends that own the results.
fn owners(simulation: &mut Simulation, service: Service) -> Vec<usize> {
    let first = simulation.random.random_range(0..service.back_ends);
    let second = simulation.random.random_range(0..service.back_ends);
    if first == second { vec![first] } else { vec![first, second] }
}

/// Asks all back ends, merges, and asks the owners for snippets, in one thread.
fn handle(service: Service, request: u64, idle: Idle) -> Then {
    Box::new(move |simulation, _| {
        let merge_ns = simulation.about(30_000);
        let some = owners(simulation, service);
        let all = (0..service.back_ends).collect();
        let mut ops = service.locked(simulation);
        ops.extend([Op::Then(calls(all, request, idle.clone())), Op::Run(merge_ns)]);
        ops.extend(service.locked(simulation));
        ops.extend([Op::Then(calls(some, request, idle)), Op::Run(merge_ns / 2)]);
        ops.extend(service.locked(simulation));
        ops
    })
}

/// Puts a task for each back end, and waits for each.
fn scattered(
    simulation: &mut Simulation,
    service: Service,
    asked: &[usize],
    request: u64,
    queue: usize,
    idle: &Idle,
) -> Vec<Op> {
    let counter = simulation.counter();
    let mut ops = Vec::new();
    for &back_end in asked {
        let idle = idle.clone();
        let task: Then = Box::new(move |simulation, _| {
            let mut ops = service.locked(simulation);
            ops.extend([Op::Then(calls(vec![back_end], request, idle)), Op::Run(2000)]);
            ops.extend(service.locked(simulation));
            ops.push(Op::Count { counter });
            ops
        });
        ops.extend([Op::Push { queue, task }, Op::Run(1500)]);
    }
    for until in 1..=asked.len() as u64 {
        ops.extend([Op::Await { counter, until }, Op::Run(3000)]);
    }
    ops
}

/// Calls these back ends all at once, and reads their answers one after another.
fn calls(back_ends: Vec<usize>, request: u64, idle: Idle) -> Then {
    Box::new(move |simulation, _| {
        let mut ends = Vec::new();
        for &back_end in &back_ends {
            let last = idle.borrow_mut()[back_end].pop();
            let end = last.unwrap_or_else(|| {
                let [client, server] = simulation.connect(FRONT, 2 + back_end);
                simulation
                    .thread(2 + back_end, vec![Op::Then(work_for_ever(2 + back_end, server))]);
                client
            });
            ends.push(end);
        }
        let send = |&end: &usize| Op::Send { end, bytes: 150 + request % 50, request };
        let mut ops: Vec<Op> = ends.iter().map(send).collect();
        ops.extend(ends.iter().map(|&end| Op::Receive { end }));
        ops.push(Op::Then(Box::new(move |_, _| {
            for (&back_end, end) in back_ends.iter().zip(ends) {
                idle.borrow_mut()[back_end].push(end);
            }
            Vec::new()
        })));
        ops
    })
}

/// A back end's thread of one connection.
fn work_for_ever(host: usize, end: usize) -> Then {
    Box::new(move |_, _| {
        let then: Then = Box::new(move |simulation, _| {
            let request = simulation.request_of(end);
            let is_slow = simulation.slow_host == Some(host);
            let work_ns = if is_slow { SLOW_NS } else { simulation.about(1_000_000) };
            vec![
                Op::Run(work_ns),
                Op::Then(answer(end, request)),
                Op::Then(work_for_ever(host, end)),
            ]
        });
        vec![Op::Receive { end }, Op::Then(then)]
    })
}
