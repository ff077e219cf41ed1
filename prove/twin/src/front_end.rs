//! The front end: scatters, gathers, merges, and asks the owners of the hits for snippets.

use std::ffi::OsString;
use std::net::{SocketAddrV4, TcpListener};
use std::sync::Arc;

use luc_twin_truth::{Role, WorkKind};

use crate::call::{Caller, Shared};
use crate::clock::now_ns;
use crate::error::TwinError;
use crate::hit::{Hit, merge};
use crate::log::{Log, Recorder};
use crate::process::{Process, ProcessOptions};
use crate::serve::{Handler, Serve, Server, Service};
use crate::wire::{Frame, MessageBody};

/// Maximum number of back ends: a request's id has room for two questions to each.
pub(crate) const MAX_BACK_ENDS: usize = 100;

// Without a doc comment: it would be the help of the command, which the command line has.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct FrontEndOptions {
    #[command(flatten)]
    pub process: ProcessOptions,
    /// All random numbers follow from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: SocketAddrV4,
    /// Threads that serve: thread, pool:W, pool:W:worker or shared:W
    ///
    /// thread: one for each connection. pool:W: W workers, and the connection's thread answers. pool:W:worker: the
    /// worker answers. shared:W: the worker answers, with one connection to each back end.
    #[arg(long, default_value_t = Serve::Thread)]
    pub serve: Serve,
    /// Addresses of the back ends, by partition
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS:PORT,...", required = true)]
    pub back_ends: Vec<SocketAddrV4>,
}

impl FrontEndOptions {
    /// The command line that gives these options.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["front-end".into()];
        arguments.extend(self.process.arguments());
        let back_ends: Vec<String> = self.back_ends.iter().map(ToString::to_string).collect();
        let pairs = [
            ("--seed", self.seed.to_string()),
            ("--listen", self.listen.to_string()),
            ("--serve", self.serve.to_string()),
            ("--back-ends", back_ends.join(",")),
        ];
        for (name, value) in pairs {
            arguments.extend([name.into(), value.into()]);
        }
        arguments
    }

    /// Serves until a line comes on the standard input, or its end. Must be called by the first thread of a process.
    ///
    /// # Errors
    /// What cannot be done here; also what any thread ran into.
    pub fn run(&self) -> Result<(), TwinError> {
        if !(1..=MAX_BACK_ENDS).contains(&self.back_ends.len()) {
            return Err(TwinError::Option {
                what: format!("{} back ends", self.back_ends.len()),
                why: format!("there are 1 to {MAX_BACK_ENDS}"),
            });
        }
        let process = Process::begin(&self.process, Role::FrontEnd, self.seed)?;
        let mut shared = Vec::new();
        if matches!(self.serve, Serve::Shared { .. }) {
            for &address in &self.back_ends {
                shared.push(Shared::connect(address, &process.log)?);
            }
        }
        let front_end =
            FrontEnd { back_ends: self.back_ends.clone(), shared, log: Arc::clone(&process.log) };
        let listener = TcpListener::bind(self.listen)
            .map_err(TwinError::system(format!("listening on {}", self.listen)))?;
        let server = Server { service: Arc::new(front_end), log: Arc::clone(&process.log) };
        server.start(listener, self.serve)?;
        process.serve()?;
        process.end(&[])
    }
}

#[derive(Debug)]
struct FrontEnd {
    back_ends: Vec<SocketAddrV4>,
    /// A connection to each back end for all threads; empty if each thread has its own.
    shared: Vec<Arc<Shared>>,
    log: Arc<Log>,
}

impl Service for FrontEnd {
    fn handler(&self) -> Result<Box<dyn Handler + '_>, TwinError> {
        let callers: Result<Vec<Caller>, TwinError> = if self.shared.is_empty() {
            let each = self.back_ends.iter();
            each.map(|address| Caller::own(*address, &self.log)).collect()
        } else {
            Ok(self.shared.iter().map(Caller::shared).collect())
        };
        Ok(Box::new(Gathering(callers?)))
    }
}

/// A thread's callers, one for each back end.
struct Gathering(Vec<Caller>);

impl Gathering {
    fn gather(
        &mut self,
        root: u64,
        words: &[u32],
        most: u8,
        recorder: &Recorder,
    ) -> Result<Vec<Vec<Hit>>, TwinError> {
        for (partition, caller) in self.0.iter_mut().enumerate() {
            let question = Frame {
                request: child(root, 2 * partition),
                parent: root,
                body: MessageBody::Search { words: words.to_vec(), hits: most },
            };
            caller.ask(&question, recorder)?;
        }
        let mut found = Vec::with_capacity(self.0.len());
        for (partition, caller) in self.0.iter_mut().enumerate() {
            let answer = caller.answer(child(root, 2 * partition), recorder)?;
            let MessageBody::Found { hits } = answer.body else {
                return Err(wire_error("a search is answered by what was found"));
            };
            found.push(hits);
        }
        Ok(found)
    }

    fn snippets(
        &mut self,
        root: u64,
        words: &[u32],
        best: &[(usize, Hit)],
        recorder: &Recorder,
    ) -> Result<Vec<Vec<u8>>, TwinError> {
        let owned = |partition: usize| -> Vec<usize> {
            let each = best.iter().enumerate();
            each.filter(|(_, (owner, _))| *owner == partition).map(|(at, _)| at).collect()
        };
        for (partition, caller) in self.0.iter_mut().enumerate() {
            let documents: Vec<u32> =
                owned(partition).iter().map(|at| best[*at].1.document).collect();
            if documents.is_empty() {
                continue;
            }
            let question = Frame {
                request: child(root, 2 * partition + 1),
                parent: root,
                body: MessageBody::Snippets { words: words.to_vec(), documents },
            };
            caller.ask(&question, recorder)?;
        }
        let mut snippets = vec![Vec::new(); best.len()];
        for (partition, caller) in self.0.iter_mut().enumerate() {
            let owned = owned(partition);
            if owned.is_empty() {
                continue;
            }
            let answer = caller.answer(child(root, 2 * partition + 1), recorder)?;
            let MessageBody::Texts { snippets: texts } = answer.body else {
                return Err(wire_error("snippets are answered by texts"));
            };
            if texts.len() != owned.len() {
                return Err(wire_error("each document has a snippet"));
            }
            for (at, text) in owned.into_iter().zip(texts) {
                snippets[at] = text;
            }
        }
        Ok(snippets)
    }
}

impl Handler for Gathering {
    fn handle(&mut self, question: &Frame, recorder: &Recorder) -> Result<Frame, TwinError> {
        let MessageBody::Query { words, hits } = &question.body else {
            return Err(wire_error("a front end answers queries"));
        };
        let root = question.request;
        let found = self.gather(root, words, *hits, recorder)?;
        let from_ns = now_ns();
        let best = merge(&found, usize::from(*hits));
        recorder.work(root, WorkKind::Merge, [from_ns, now_ns()]);
        let snippets = self.snippets(root, words, &best, recorder)?;
        let hits = best.into_iter().map(|(_, hit)| hit).collect();
        Ok(Frame { body: MessageBody::Answer { hits, snippets }, ..*question })
    }
}

/// Returns the id of a request's `number`th question. Clients leave the last 8 bits 0.
fn child(root: u64, number: usize) -> u64 {
    root.wrapping_add(1 + number as u64)
}

fn wire_error(why: &'static str) -> TwinError {
    TwinError::Wire { from: "another process".into(), why }
}
