//! Workers that take requests from one queue, which the connections' threads fill.

use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use luc_twin_truth::WorkKind;

use super::{Answerer, Server};
use crate::clock::now_ns;
use crate::error::TwinError;
use crate::link::{Sender, split};
use crate::sync::{Slot, locked};
use crate::wire::Frame;

/// A request on its way to a worker.
struct Job {
    question: Frame,
    queued_ns: u64,
    to: ReplyTo,
}

enum ReplyTo {
    /// The connection's thread, which sends the answer.
    Thread(Arc<Slot>),
    /// The other end of the connection.
    Socket(Arc<Mutex<Sender>>),
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    filled: Condvar,
}

impl Queue {
    fn put(&self, question: Frame, to: ReplyTo) {
        let mut jobs = locked(&self.jobs);
        jobs.push_back(Job { question, queued_ns: now_ns(), to });
        self.filled.notify_one();
    }

    fn take(&self) -> Job {
        let mut jobs = locked(&self.jobs);
        loop {
            if let Some(job) = jobs.pop_front() {
                return job;
            }
            jobs = self.filled.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub(super) fn start(
    server: Server,
    listener: TcpListener,
    workers: u32,
    answerer: Answerer,
) -> Result<(), TwinError> {
    let queue = Arc::<Queue>::default();
    for _ in 0..workers {
        let queue = Arc::clone(&queue);
        server.spawn("worker", move |server| work(server, &queue))?;
    }
    server.spawn("accept", move |server| {
        for stream in listener.incoming() {
            let stream = stream.map_err(TwinError::system("accepting a connection"))?;
            let queue = Arc::clone(&queue);
            server.spawn("connection", move |server| read(server, stream, &queue, answerer))?;
        }
        Ok(())
    })
}

fn work(server: &Server, queue: &Queue) -> Result<(), TwinError> {
    let recorder = server.log.recorder();
    let mut handler = server.service.handler()?;
    loop {
        let job = queue.take();
        let waited = [job.queued_ns, now_ns()];
        recorder.work(job.question.request, WorkKind::Queue, waited);
        let answer = handler.handle(&job.question, &recorder)?;
        match job.to {
            ReplyTo::Thread(slot) => slot.fill(Some(answer)),
            ReplyTo::Socket(sender) => locked(&sender).send(&answer, &recorder)?,
        }
    }
}

fn read(
    server: &Server,
    stream: TcpStream,
    queue: &Queue,
    answerer: Answerer,
) -> Result<(), TwinError> {
    let recorder = server.log.recorder();
    let (mut sender, mut receiver) = split(stream, &server.log)?;
    match answerer {
        Answerer::Connection => {
            while let Some(question) = receiver.receive(&recorder)? {
                let slot = Arc::<Slot>::default();
                queue.put(question, ReplyTo::Thread(Arc::clone(&slot)));
                let Some(answer) = slot.wait() else {
                    return Ok(()); // The worker has failed, which ends the process.
                };
                sender.send(&answer, &recorder)?;
            }
        }
        Answerer::Worker => {
            let sender = Arc::new(Mutex::new(sender));
            while let Some(question) = receiver.receive(&recorder)? {
                queue.put(question, ReplyTo::Socket(Arc::clone(&sender)));
            }
        }
    }
    Ok(())
}
