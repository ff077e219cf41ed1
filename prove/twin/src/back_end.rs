//! A back end: one partition, its index and its planted troubles.

use std::ffi::OsString;
use std::net::{SocketAddrV4, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use luc_twin_truth::{Role, WorkKind};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;

use crate::clock::now_ns;
use crate::corpus::Corpus;
use crate::engine::Engine;
use crate::error::TwinError;
use crate::log::Recorder;
use crate::plant::{Garden, PlantSite};
use crate::process::{Process, ProcessOptions};
use crate::serve::{Handler, Serve, Server, Service};
use crate::spec::Spec;
use crate::wire::{Frame, MessageBody};

/// Stream of the random numbers for delays.
const DELAY_STREAM: u64 = 4 << 40;

#[derive(Debug, Clone, PartialEq)]
pub struct BackEndOptions {
    pub process: ProcessOptions,
    pub corpus: Corpus,
    /// Index of this back end's partition.
    pub partition: usize,
    pub listen: SocketAddrV4,
    /// Way in which its threads share the requests.
    pub serve: Serve,
    /// Mean of an exponential delay before each search, us; 0 for none.
    pub delay_us: u64,
    /// Number of searches to come. A plant begins and ends at a share of it.
    pub searches: u64,
    pub plants: Vec<Spec>,
    /// The cgroup of this process, for a quota.
    pub cgroup: Option<PathBuf>,
}

impl BackEndOptions {
    /// The command line that gives these options.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["back-end".into()];
        arguments.extend(self.process.arguments());
        let weights: Vec<String> = self.corpus.weights.iter().map(u32::to_string).collect();
        let pairs: [(&str, OsString); 9] = [
            ("--seed", self.corpus.seed.to_string().into()),
            ("--documents", self.corpus.documents.to_string().into()),
            ("--vocabulary", self.corpus.vocabulary.to_string().into()),
            ("--weights", weights.join(",").into()),
            ("--partition", self.partition.to_string().into()),
            ("--listen", self.listen.to_string().into()),
            ("--serve", self.serve.to_string().into()),
            ("--delay-us", self.delay_us.to_string().into()),
            ("--searches", self.searches.to_string().into()),
        ];
        for (name, value) in pairs {
            arguments.extend([name.into(), value]);
        }
        for plant in &self.plants {
            arguments.extend(["--plant".into(), plant.to_string().into()]);
        }
        if let Some(cgroup) = &self.cgroup {
            arguments.extend(["--cgroup".into(), cgroup.into()]);
        }
        arguments
    }

    /// Serves until a line comes on the standard input, or its end. Must be called by the first thread of a process.
    ///
    /// # Errors
    /// What cannot be done here; also what any thread ran into.
    pub fn run(&self) -> Result<(), TwinError> {
        let process = Process::begin(&self.process, Role::BackEnd, self.corpus.seed)?;
        let garden = Garden::make(
            &self.plants,
            &PlantSite {
                seed: self.corpus.seed,
                searches: self.searches,
                serve: self.serve,
                weight: self.corpus.weights.get(self.partition).copied(),
                cgroup: self.cgroup.clone(),
            },
        )?;
        let back_end = Arc::new(BackEnd {
            engine: Engine::build(&self.corpus, self.partition)?,
            seed: self.corpus.seed,
            partition: self.partition,
            delay_us: self.delay_us,
            searches: AtomicU64::new(0),
            garden,
        });
        let listener = TcpListener::bind(self.listen)
            .map_err(TwinError::system(format!("listening on {}", self.listen)))?;
        let server = Server {
            service: Arc::clone(&back_end) as Arc<dyn Service>,
            log: Arc::clone(&process.log),
        };
        server.start(listener, back_end.garden.serve())?;
        process.serve()?;
        process.end(&back_end.garden.planted())
    }
}

#[derive(Debug)]
struct BackEnd {
    engine: Engine,
    seed: u64,
    partition: usize,
    delay_us: u64,
    searches: AtomicU64,
    garden: Garden,
}

impl BackEnd {
    /// Returns the delay of a request, which follows from its id.
    fn delay(&self, request: u64) -> Option<Duration> {
        if self.delay_us == 0 {
            return None;
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ request);
        random.set_stream(DELAY_STREAM + self.partition as u64);
        let times: f64 = random.sample(Exp1);
        Some(Duration::from_micros((self.delay_us as f64 * times) as u64))
    }
}

impl Service for BackEnd {
    fn handler(&self) -> Result<Box<dyn Handler + '_>, TwinError> {
        Ok(Box::new(Searching(self)))
    }
}

struct Searching<'a>(&'a BackEnd);

impl Handler for Searching<'_> {
    fn handle(&mut self, question: &Frame, recorder: &Recorder) -> Result<Frame, TwinError> {
        let Self(back_end) = self;
        let request = question.request;
        let (kind, from_ns, body);
        match &question.body {
            MessageBody::Search { words, hits } => {
                let ordinal = back_end.searches.fetch_add(1, Ordering::Relaxed) + 1;
                back_end.garden.before_search(ordinal, request, recorder)?;
                if let Some(delay) = back_end.delay(request) {
                    let delayed_ns = now_ns();
                    thread::sleep(delay);
                    recorder.work(request, WorkKind::Delay, [delayed_ns, now_ns()]);
                }
                from_ns = now_ns();
                kind = WorkKind::Search;
                body =
                    MessageBody::Found { hits: back_end.engine.search(words, usize::from(*hits)) };
            }
            MessageBody::Snippets { words, documents } => {
                from_ns = now_ns();
                kind = WorkKind::Snippet;
                body = MessageBody::Texts { snippets: back_end.engine.snippets(words, documents) };
            }
            _ => {
                return Err(TwinError::Wire {
                    from: "the front end".into(),
                    why: "a back end searches and makes snippets",
                });
            }
        }
        recorder.work(request, kind, [from_ns, now_ns()]);
        Ok(Frame { body, ..*question })
    }
}
