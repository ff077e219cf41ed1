//! The clients: threads of one process, each with its own queries.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::sync::{Arc, Barrier};
use std::thread::{self, Builder};
use std::time::Duration;

use luc_twin_truth::{Answer, Kind, MAX_HITS, Role};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;

use crate::call::{Caller, Shared};
use crate::clock::now_ns;
use crate::corpus::Corpus;
use crate::error::TwinError;
use crate::fatal::or_end;
use crate::hit::Hit;
use crate::log::Recorder;
use crate::plant::share;
use crate::process::{Process, ProcessOptions};
use crate::spec::Spec;
use crate::wire::{Frame, MessageBody};

/// Stream of the random numbers for arrival times.
const ARRIVAL_STREAM: u64 = 5 << 40;
/// A request's id is made of its client's number, its own number and that of its questions.
const CLIENT_SHIFT: u32 = 40;
const SEQUENCE_SHIFT: u32 = 8;
const MAX_REQUESTS: u32 = 1 << 24;

/// Rule for the times of a client's queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loop {
    /// Each query follows an answer after a think time: exponential, with this mean, us.
    Closed { think_us: u64 },
    /// Query times are drawn beforehand and do not depend on answers. A client whose answer is late asks as soon as it
    /// has it, and its lateness is in the truth.
    Open {
        /// Mean rate of all clients together.
        per_s: f64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClientOptions {
    pub process: ProcessOptions,
    pub corpus: Corpus,
    pub front_end: SocketAddrV4,
    pub clients: u32,
    /// Number of queries of each client.
    pub requests: u32,
    /// Number of documents that a query asks for.
    pub hits: u8,
    pub looped: Loop,
    /// Whether all clients use one connection.
    pub one_connection: bool,
    pub plants: Vec<Spec>,
}

/// A client's query, and the time at which it is due.
struct Query {
    client: u32,
    sequence: u32,
    due_ns: u64,
}

impl ClientOptions {
    /// The command line that gives these options.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["client".into()];
        arguments.extend(self.process.arguments());
        let (looped, value) = match self.looped {
            Loop::Closed { think_us } => ("--think-us", think_us.to_string()),
            Loop::Open { per_s } => ("--per-s", per_s.to_string()),
        };
        let pairs = [
            ("--seed", self.corpus.seed.to_string()),
            ("--vocabulary", self.corpus.vocabulary.to_string()),
            ("--front-end", self.front_end.to_string()),
            ("--clients", self.clients.to_string()),
            ("--requests", self.requests.to_string()),
            ("--hits", self.hits.to_string()),
            (looped, value),
        ];
        for (name, value) in pairs {
            arguments.extend([name.into(), value.into()]);
        }
        if self.one_connection {
            arguments.push("--one-connection".into());
        }
        for plant in &self.plants {
            arguments.extend(["--plant".into(), plant.to_string().into()]);
        }
        arguments
    }

    fn check(&self) -> Result<(), TwinError> {
        let wrong = |what: String, why: String| Err(TwinError::Option { what, why });
        if self.clients == 0 || self.requests == 0 || self.requests >= MAX_REQUESTS {
            return wrong(
                format!("{} clients with {} requests", self.clients, self.requests),
                format!("there is at least one of each, and fewer than {MAX_REQUESTS} requests"),
            );
        }
        if !(1..=MAX_HITS).contains(&usize::from(self.hits)) {
            return wrong(format!("--hits {}", self.hits), format!("1 to {MAX_HITS}"));
        }
        if let Loop::Open { per_s } = self.looped
            && !(per_s.is_finite() && per_s > 0.0)
        {
            return wrong(format!("--per-s {per_s}"), "it is above 0".into());
        }
        match self.plants.iter().find(|plant| plant.kind != Kind::Share) {
            Some(plant) => Err(plant.wrong("clients can only share")),
            None => Ok(()),
        }
    }

    /// Asks all queries. Must be called by the first thread of a process.
    ///
    /// # Errors
    /// What cannot be done here; also what any thread ran into.
    pub fn run(&self) -> Result<(), TwinError> {
        self.check()?;
        let process = Process::begin(&self.process, Role::Client, self.corpus.seed)?;
        let is_planted = !self.plants.is_empty();
        let sharers = is_planted.then(|| share::draw(self.corpus.seed, self.clients));
        let sharers = sharers.transpose()?;
        let connection = (self.one_connection || is_planted)
            .then(|| Shared::connect(self.front_end, &process.log))
            .transpose()?;
        let start = Barrier::new(self.clients as usize);
        let mut spans = Vec::new();
        thread::scope(|scope| {
            let started: Vec<_> = (0..self.clients)
                .map(|client| {
                    let is_shared = self.one_connection
                        || sharers.is_some_and(|sharers| sharers.contains(&client));
                    let shared = connection.as_ref().filter(|_| is_shared);
                    let (process, start) = (&process, &start);
                    let body = move || self.ask_all(client, shared, process, start);
                    Builder::new()
                        .name(format!("client {client}"))
                        .spawn_scoped(scope, move || or_end(body))
                })
                .collect();
            for client in started {
                // Those that have started wait for all.
                let client = or_end(|| client.map_err(TwinError::system("starting a thread")));
                spans.extend(client.join());
            }
        });
        let planted = sharers.and_then(|sharers| share::planted(sharers, &spans));
        process.end(planted.as_slice())
    }

    fn ask_all(
        &self,
        client: u32,
        shared: Option<&Arc<Shared>>,
        process: &Process,
        start: &Barrier,
    ) -> Result<share::ClientSpan, TwinError> {
        let recorder = process.log.recorder();
        let mut caller = match shared {
            Some(connection) => Caller::shared(connection),
            None => Caller::own(self.front_end, &process.log)?,
        };
        start.wait();
        let mut random = ChaCha8Rng::seed_from_u64(self.corpus.seed);
        random.set_stream(ARRIVAL_STREAM + u64::from(client));
        let mut due_ns = now_ns();
        let from_ns = due_ns;
        for sequence in 0..self.requests {
            let times: f64 = random.sample(Exp1);
            due_ns = match self.looped {
                Loop::Closed { think_us } => now_ns() + (times * think_us as f64 * 1e3) as u64,
                Loop::Open { per_s } => {
                    due_ns + (times * f64::from(self.clients) / per_s * 1e9) as u64
                }
            };
            thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
            self.ask(&mut caller, &Query { client, sequence, due_ns }, &recorder)?;
        }
        Ok(share::ClientSpan { client, thread: recorder.thread(), from_ns, to_ns: now_ns() })
    }

    fn ask(
        &self,
        caller: &mut Caller,
        &Query { client, sequence, due_ns }: &Query,
        recorder: &Recorder,
    ) -> Result<(), TwinError> {
        let request = id(client, sequence);
        let question = Frame {
            request,
            parent: 0,
            body: MessageBody::Query {
                words: self.corpus.query(client, sequence),
                hits: self.hits,
            },
        };
        caller.ask(&question, recorder)?;
        let answer = caller.answer(request, recorder)?;
        let MessageBody::Answer { hits, snippets } = answer.body else {
            return Err(TwinError::Wire {
                from: self.front_end.to_string(),
                why: "a query is answered by hits",
            });
        };
        recorder.answer(Answer {
            request,
            client,
            sequence,
            documents: documents(&hits),
            hits: hits.len() as u8,
            snippet_bytes: snippets.iter().map(|text| text.len() as u32).sum(),
            due_ns,
        });
        Ok(())
    }
}

/// Returns a request's id. Its last 8 bits are left for the questions that it leads to.
fn id(client: u32, sequence: u32) -> u64 {
    ((u64::from(client) + 1) << CLIENT_SHIFT) + ((u64::from(sequence) + 1) << SEQUENCE_SHIFT)
}

fn documents(hits: &[Hit]) -> [u32; MAX_HITS] {
    let mut documents = [0; MAX_HITS];
    for (place, hit) in documents.iter_mut().zip(hits) {
        *place = hit.document;
    }
    documents
}
