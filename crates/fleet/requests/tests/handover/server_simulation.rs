//! Servers in virtual time: threads with scripts, queues and connections; the rows that a recorder would write, and the
//! truth of each request.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndId, MessageRow, PacketRow, ThreadIdentity,
    ThreadWait,
};
use luc_stats::seeded_random;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A function that returns a thread's next steps, when it comes to them.
pub(crate) type NextSteps = Box<dyn FnOnce(&mut ServerSimulation, usize) -> Vec<ThreadStep>>;

/// One step of a thread.
pub(crate) enum ThreadStep {
    /// Computes for this long.
    Run(u64),
    /// Sends a whole message for a request, in one or two calls.
    Send {
        end: usize,
        bytes: u64,
        request: u64,
    },
    /// Reads a whole message, in one call or several.
    Receive {
        end: usize,
    },
    /// Puts a task into a queue, and wakes a thread that waits for one.
    Push {
        queue: usize,
        task: NextSteps,
    },
    /// Takes a task and does it.
    Take {
        queue: usize,
    },
    /// Adds one to a counter, and wakes the thread that waits for it.
    Count {
        counter: usize,
    },
    /// Waits until a counter has reached this, looking at each step.
    Await {
        counter: usize,
        until: u64,
    },
    /// Takes a lock, or waits for it.
    Lock,
    /// Releases the lock, and wakes a thread that waits for it.
    Unlock,
    Spawn(NextSteps),
    /// Decides the next steps.
    Then(NextSteps),
}

enum Event {
    Resume(usize),
    Arrive { end: usize, upto: u64 },
}

struct SimulatedThread {
    host: usize,
    thread: ThreadIdentity,
    script: VecDeque<ThreadStep>,
    is_waiting: bool,
    off_ns: u64,
}

struct Socket {
    row: ConnectionEnd,
    peer: usize,
    sent: u64,
    arrived: u64,
    read: u64,
    /// Offset after each message that comes in, and the request of the message.
    boundaries: VecDeque<(u64, u64)>,
    waiting: Option<usize>,
    /// The request of the last message that was read.
    request: u64,
}

/// Hosts with threads, their connections, and the rows of a recorder.
pub(crate) struct ServerSimulation {
    pub(crate) random: ChaCha8Rng,
    now_ns: u64,
    next: u64,
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    threads: Vec<SimulatedThread>,
    sockets: Vec<Socket>,
    queues: Vec<(VecDeque<NextSteps>, VecDeque<usize>)>,
    counters: Vec<(u64, Option<usize>)>,
    /// One lock for each host: whether it is held, and the threads that wait.
    locks: Vec<(bool, VecDeque<usize>)>,
    /// Each host's clock less the true time.
    clocks: Vec<u64>,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) packets: Vec<PacketRow>,
    pub(crate) waits: Vec<ThreadWait>,
    /// Request of each message, by the sender's end and its first byte.
    pub(crate) truth: BTreeMap<(EndId, u64), u64>,
    last_request: u64,
}

impl ServerSimulation {
    pub(crate) fn new(seed: u64, hosts: usize) -> Self {
        let mut random = seeded_random::stream(21, seed);
        let clocks = (0..hosts).map(|_| random.random_range(1..1_000_000_000_000)).collect();
        Self {
            random,
            now_ns: 0,
            next: 0,
            heap: BinaryHeap::new(),
            events: Vec::new(),
            threads: Vec::new(),
            sockets: Vec::new(),
            queues: Vec::new(),
            counters: Vec::new(),
            locks: vec![(false, VecDeque::new()); hosts],
            clocks,
            messages: Vec::new(),
            packets: Vec::new(),
            waits: Vec::new(),
            truth: BTreeMap::new(),
            last_request: 0,
        }
    }

    /// Draws a time of about this length, exponential with a minimum of a tenth.
    pub(crate) fn about(&mut self, mean_ns: u64) -> u64 {
        let draw: f64 = self.random.random_range(f64::EPSILON..1.0);
        mean_ns / 10 + (-draw.ln() * mean_ns as f64 * 0.9) as u64
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        let at = self.events.len();
        self.events.push(Some(event));
        self.heap.push(Reverse((self.now_ns + after_ns, self.next, at)));
        self.next += 1;
    }

    pub(crate) fn thread(&mut self, host: usize, script: Vec<ThreadStep>) -> usize {
        let at = self.threads.len();
        self.threads.push(SimulatedThread {
            host,
            thread: ThreadIdentity { id: 1000 + at as u32, start_ns: self.on_clock(host) },
            script: script.into(),
            is_waiting: false,
            off_ns: 0,
        });
        let after_ns = self.about(10_000);
        self.schedule(after_ns, Event::Resume(at));
        at
    }

    pub(crate) fn queue(&mut self) -> usize {
        self.queues.push(Default::default());
        self.queues.len() - 1
    }

    pub(crate) fn counter(&mut self) -> usize {
        self.counters.push((0, None));
        self.counters.len() - 1
    }

    pub(crate) fn new_request(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    /// Makes a connection of two hosts: the client's socket and the server's.
    pub(crate) fn connect(&mut self, client: usize, server: usize) -> [usize; 2] {
        let at = self.sockets.len();
        let isn: [u32; 2] = [self.random.random(), self.random.random()];
        let address = |host: usize, port| {
            SocketAddr::from((Ipv4Addr::new(10, 0, 0, host as u8), port)).into()
        };
        let addresses = [address(client, 10_000 + at as u16), address(server, 8080)];
        for side in [0, 1] {
            self.sockets.push(Socket {
                row: ConnectionEnd {
                    host: HostId([client, server][side] as u32),
                    connection: (at + side) as u64,
                    namespace: 1,
                    local: addresses[side],
                    remote: addresses[1 - side],
                    peer: None,
                    own_isn: Some(isn[side]),
                    peer_isn: Some(isn[1 - side]),
                    at_start: None,
                    opener: Some(if side == 0 {
                        ConnectionOpener::This
                    } else {
                        ConnectionOpener::Peer
                    }),
                    opened_ns: None,
                    closed_ns: None,
                },
                peer: at + 1 - side,
                sent: 1,
                arrived: 1,
                read: 1,
                boundaries: VecDeque::new(),
                waiting: None,
                request: 0,
            });
        }
        [at, at + 1]
    }

    /// Returns the request of a byte, by the sender's end.
    pub(crate) fn request_at(&self, end: EndId, byte: u64) -> u64 {
        let last = self.truth.range((end, 0)..=(end, byte)).next_back();
        last.map_or(0, |(_, request)| *request)
    }

    /// Returns the request of the last message that was read from a socket.
    pub(crate) fn request_of(&self, end: usize) -> u64 {
        self.sockets[end].request
    }

    pub(crate) fn ends(&self) -> Vec<ConnectionEnd> {
        self.sockets.iter().map(|socket| socket.row).collect()
    }

    fn on_clock(&self, host: usize) -> u64 {
        self.now_ns + self.clocks[host]
    }

    /// Runs until this time.
    pub(crate) fn run(&mut self, until_ns: u64) {
        while let Some(Reverse((at_ns, _, event))) = self.heap.pop() {
            if at_ns > until_ns {
                return;
            }
            self.now_ns = at_ns;
            match self.events[event].take() {
                Some(Event::Resume(thread)) => self.go_on(thread),
                Some(Event::Arrive { end, upto }) => self.arrive(end, upto),
                None => {}
            }
        }
    }

    fn arrive(&mut self, end: usize, upto: u64) {
        let socket = &mut self.sockets[end];
        // Segments may overtake each other; what is before a later one is then there as well.
        let first = socket.arrived;
        socket.arrived = first.max(upto);
        let waiting = socket.waiting.take();
        if upto > first {
            self.packet(end, ByteDirection::Received, first, upto - first);
        }
        if let Some(thread) = waiting {
            // An interrupt: now and then the recorder has the name of whom it interrupted.
            let interrupted = self.random.random_range(0..self.threads.len());
            let is_named = self.random.random_bool(0.2);
            let is_here = self.threads[interrupted].host == self.threads[thread].host;
            let is_running = !self.threads[interrupted].is_waiting;
            let waker = (is_named && is_here && is_running).then_some(interrupted);
            self.wake(thread, waker);
        }
    }

    fn packet(&mut self, end: usize, way: ByteDirection, first_byte: u64, bytes: u64) {
        let socket = &self.sockets[end];
        // A packet leaves after the call has begun.
        let after_ns = if way == ByteDirection::Sent { 200 } else { 0 };
        self.packets.push(PacketRow {
            host: socket.row.host,
            at_ns: self.on_clock(socket.row.host.0 as usize) + after_ns,
            connection: socket.row.connection,
            way,
            first_byte,
            bytes,
            ack: socket.arrived,
        });
    }

    fn message(
        &mut self,
        thread: usize,
        end: usize,
        way: ByteDirection,
        first_byte: u64,
        bytes: u64,
    ) {
        let thread = &self.threads[thread];
        self.messages.push(MessageRow {
            host: HostId(thread.host as u32),
            at_ns: self.on_clock(thread.host),
            thread: thread.thread,
            process: thread.host as u32,
            connection: self.sockets[end].row.connection,
            way,
            first_byte,
            bytes,
            token: None,
        });
    }

    fn block(&mut self, thread: usize) {
        self.threads[thread].off_ns = self.on_clock(self.threads[thread].host);
        self.threads[thread].is_waiting = true;
    }

    fn wake(&mut self, thread: usize, waker: Option<usize>) {
        let latency_ns = self.about(8_000);
        let host = self.threads[thread].host;
        let woken_ns = self.on_clock(host);
        self.waits.push(ThreadWait {
            host: HostId(host as u32),
            thread: self.threads[thread].thread,
            off_ns: self.threads[thread].off_ns,
            woken_ns: Some(woken_ns),
            on_ns: woken_ns + latency_ns,
            waker: waker.map(|waker| self.threads[waker].thread),
            may_be_input: true,
            may_be_hand_over: true,
            processor: None,
        });
        self.threads[thread].is_waiting = false;
        self.schedule(latency_ns, Event::Resume(thread));
    }

    /// Lets a thread go on until it computes or waits.
    fn go_on(&mut self, at: usize) {
        while let Some(op) = self.threads[at].script.pop_front() {
            match op {
                ThreadStep::Run(ns) => {
                    self.schedule(ns, Event::Resume(at));
                    return;
                }
                ThreadStep::Then(then) => {
                    let ops = then(self, at);
                    self.first(at, ops);
                }
                ThreadStep::Spawn(then) => {
                    let host = self.threads[at].host;
                    self.thread(host, vec![ThreadStep::Then(then)]);
                }
                ThreadStep::Send { end, bytes, request } => {
                    self.send(at, end, bytes, request);
                    // The call takes time, so that no two rows of a thread have one time.
                    self.threads[at].script.push_front(ThreadStep::Run(1500));
                }
                ThreadStep::Receive { end } => {
                    self.receive(at, end);
                    return;
                }
                ThreadStep::Lock => {
                    let lock = &mut self.locks[self.threads[at].host];
                    if lock.0 {
                        lock.1.push_back(at);
                        self.threads[at].script.push_front(ThreadStep::Lock);
                        self.block(at);
                        return;
                    }
                    lock.0 = true;
                }
                ThreadStep::Unlock => {
                    let lock = &mut self.locks[self.threads[at].host];
                    lock.0 = false;
                    if let Some(waiting) = lock.1.pop_front() {
                        self.wake(waiting, Some(at));
                    }
                }
                ThreadStep::Push { queue, task } => {
                    self.queues[queue].0.push_back(task);
                    if let Some(worker) = self.queues[queue].1.pop_front() {
                        self.wake(worker, Some(at));
                    }
                }
                ThreadStep::Take { queue } => match self.queues[queue].0.pop_front() {
                    Some(task) => self.first(at, vec![ThreadStep::Then(task)]),
                    None => {
                        self.threads[at].script.push_front(ThreadStep::Take { queue });
                        self.queues[queue].1.push_back(at);
                        self.block(at);
                        return;
                    }
                },
                ThreadStep::Count { counter } => {
                    self.counters[counter].0 += 1;
                    if let Some(waiting) = self.counters[counter].1.take() {
                        self.wake(waiting, Some(at));
                    }
                }
                ThreadStep::Await { counter, until } => {
                    if self.counters[counter].0 < until {
                        self.threads[at].script.push_front(ThreadStep::Await { counter, until });
                        self.counters[counter].1 = Some(at);
                        self.block(at);
                        return;
                    }
                }
            }
        }
        self.threads[at].is_waiting = true;
    }

    fn first(&mut self, at: usize, ops: Vec<ThreadStep>) {
        for op in ops.into_iter().rev() {
            self.threads[at].script.push_front(op);
        }
    }

    fn send(&mut self, at: usize, end: usize, bytes: u64, request: u64) {
        let first = self.sockets[end].sent;
        let id = self.sockets[end].row.id();
        self.truth.insert((id, first), request);
        let peer = self.sockets[end].peer;
        self.sockets[peer].boundaries.push_back((first + bytes, request));
        let head = if self.random.random_bool(0.3) { bytes / 3 } else { bytes };
        for (part, length) in [(first, head), (first + head, bytes - head)] {
            if length > 0 {
                self.message(at, end, ByteDirection::Sent, part, length);
                self.packet(end, ByteDirection::Sent, part, length);
                let delay_ns = 15_000 + self.about(10_000);
                let upto = part + length;
                self.schedule(delay_ns, Event::Arrive { end: peer, upto });
            }
        }
        self.sockets[end].sent = first + bytes;
    }

    /// Reads the bytes that are there of a message, or waits; then the thread comes back.
    fn receive(&mut self, at: usize, end: usize) {
        let socket = &self.sockets[end];
        let boundary = socket.boundaries.front().copied();
        let available = boundary.map_or(0, |(until, _)| socket.arrived.min(until) - socket.read);
        if available == 0 {
            self.threads[at].script.push_front(ThreadStep::Receive { end });
            self.sockets[end].waiting = Some(at);
            self.block(at);
            return;
        }
        let part =
            if available > 100 && self.random.random_bool(0.3) { available / 2 } else { available };
        let first = self.sockets[end].read;
        self.message(at, end, ByteDirection::Received, first, part);
        let socket = &mut self.sockets[end];
        socket.read += part;
        let is_whole = boundary.is_some_and(|(until, _)| socket.read == until);
        if is_whole {
            socket.request = socket.boundaries.pop_front().map_or(0, |(_, request)| request);
        } else {
            self.threads[at].script.push_front(ThreadStep::Receive { end });
        }
        // The call takes time.
        self.schedule(1000, Event::Resume(at));
    }
}
