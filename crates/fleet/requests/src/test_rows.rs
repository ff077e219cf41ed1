//! Rows for tests, of one host and one process.

use luc_fleet_clocks::HostId;

use crate::host_rows::{ByteDirection, EndId, MessageRow, ThreadId, ThreadIdentity, ThreadWait};
use crate::messages::MessageSide;
use crate::requests::{Exchange, ExchangeAnswer};

pub(crate) const HERE: HostId = HostId(0);

pub(crate) fn thread(id: u32) -> ThreadIdentity {
    ThreadIdentity { id, start_ns: 0 }
}

pub(crate) fn thread_id(id: u32) -> ThreadId {
    ThreadId { host: HERE, thread: thread(id) }
}

pub(crate) fn side(id: u32, at_ns: u64) -> MessageSide {
    MessageSide { host: HERE, thread: thread(id), process: 1, at_ns }
}

pub(crate) fn exchange(asked: MessageSide, answered: MessageSide) -> Exchange {
    Exchange {
        end: EndId { host: HERE, connection: 1 },
        asked,
        first_byte: 0,
        bytes: 1,
        answer: Some(ExchangeAnswer { first: answered, last: answered }),
        token: None,
        sure_until_ns: answered.at_ns,
        is_of_several: false,
    }
}

pub(crate) fn message(
    id: u32,
    at_ns: u64,
    way: ByteDirection,
    first_byte: u64,
    bytes: u64,
) -> MessageRow {
    MessageRow {
        host: HERE,
        at_ns,
        thread: thread(id),
        process: 1,
        connection: 1,
        way,
        first_byte,
        bytes,
        token: None,
    }
}

/// `times` are off, woken and on.
pub(crate) fn wait(id: u32, times: [u64; 3], waker: Option<u32>) -> ThreadWait {
    let [off_ns, woken_ns, on_ns] = times;
    ThreadWait {
        host: HERE,
        thread: thread(id),
        off_ns,
        woken_ns: Some(woken_ns),
        on_ns,
        waker: waker.map(thread),
        may_be_input: true,
        may_be_hand_over: true,
        processor: None,
    }
}
