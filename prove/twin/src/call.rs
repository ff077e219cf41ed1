//! Asking another process, on a connection of the thread's own or on one that many threads share.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};

use crate::error::TwinError;
use crate::fatal::spawn;
use crate::link::{Receiver, Sender, connect};
use crate::log::{Log, Recorder};
use crate::sync::{Slot, locked};
use crate::wire::Frame;

/// A way to ask one other process.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A connection of this thread alone. Answers come in the order of the questions.
    Own(Sender, Receiver),
    /// A connection that others use too, and the slots of this thread's questions.
    Shared(Arc<Shared>, Vec<(u64, Arc<Slot>)>),
}

impl Caller {
    /// Opens a connection for this thread.
    pub(crate) fn own(address: SocketAddrV4, log: &Log) -> Result<Self, TwinError> {
        let (sender, receiver) = connect(address, log)?;
        Ok(Self::Own(sender, receiver))
    }

    /// Uses a connection together with other threads.
    pub(crate) fn shared(connection: &Arc<Shared>) -> Self {
        Self::Shared(Arc::clone(connection), Vec::new())
    }

    pub(crate) fn ask(&mut self, frame: &Frame, recorder: &Recorder) -> Result<(), TwinError> {
        match self {
            Self::Own(sender, _) => sender.send(frame, recorder),
            Self::Shared(connection, slots) => {
                slots.push((frame.request, connection.open(frame.request)));
                locked(&connection.sender).send(frame, recorder)
            }
        }
    }

    /// Waits for the answer to a question.
    pub(crate) fn answer(&mut self, request: u64, recorder: &Recorder) -> Result<Frame, TwinError> {
        match self {
            Self::Own(_, receiver) => {
                let from = receiver.remote().to_string();
                match receiver.receive(recorder)? {
                    Some(frame) if frame.request == request => Ok(frame),
                    Some(_) => Err(TwinError::Wire { from, why: "it answers another question" }),
                    None => Err(TwinError::Closed { from }),
                }
            }
            Self::Shared(connection, slots) => {
                let at = slots.iter().position(|(asked, _)| *asked == request);
                let slot = at.map(|at| slots.swap_remove(at).1);
                slot.and_then(|slot| slot.wait())
                    .ok_or_else(|| TwinError::Closed { from: connection.remote.to_string() })
            }
        }
    }
}

/// A connection with several questions in flight.
#[derive(Debug)]
pub(crate) struct Shared {
    remote: SocketAddrV4,
    sender: Mutex<Sender>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    is_closed: bool,
    slots: HashMap<u64, Arc<Slot>>,
}

impl Shared {
    /// Connects, and starts the thread that gives each answer to the thread that asked.
    pub(crate) fn connect(address: SocketAddrV4, log: &Arc<Log>) -> Result<Arc<Self>, TwinError> {
        let (sender, receiver) = connect(address, log)?;
        let shared =
            Arc::new(Self { remote: address, sender: Mutex::new(sender), open: Mutex::default() });
        let (log, same) = (Arc::clone(log), Arc::clone(&shared));
        spawn("answers", move || same.hand_out(receiver, &log.recorder()))?;
        Ok(shared)
    }

    fn open(&self, request: u64) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        let mut open = locked(&self.open);
        if open.is_closed {
            slot.fill(None);
        } else {
            open.slots.insert(request, Arc::clone(&slot));
        }
        slot
    }

    fn hand_out(&self, mut receiver: Receiver, recorder: &Recorder) -> Result<(), TwinError> {
        while let Some(frame) = receiver.receive(recorder)? {
            let slot = locked(&self.open).slots.remove(&frame.request);
            if let Some(slot) = slot {
                slot.fill(Some(frame));
            }
        }
        let mut open = locked(&self.open);
        open.is_closed = true;
        for (_, slot) in open.slots.drain() {
            slot.fill(None);
        }
        Ok(())
    }
}
