//! Layouts shared with the BPF programs: the mirror of `bpf/event_layouts.h` and `bpf/network_layouts.h`.
//!
//! The test `layouts_agree` compares both with a C compiler.

/// Length of a thread's name, with its zero byte.
pub(crate) const COMM: usize = 16;
/// System calls that have a place in the tables of [`Config`].
pub(crate) const SYSCALLS: usize = 512;
/// Devices that a filter can name.
pub(crate) const DEVICES: usize = 8;
/// Frames of a kernel stack.
pub(crate) const STACK_DEPTH: usize = 48;
/// Kinds of brief waits.
pub(crate) const BRIEF: usize = 11;
/// Events that are counted at most.
pub(crate) const COUNTERS: usize = 48;
/// Maximum number of messages, or waits, of a record.
pub(crate) const BATCH: usize = 32;
/// Pairs of service and peer whose exchanges are summed apart.
pub(crate) const EXCHANGES: usize = 4096;
/// Steps of the times of exchanges.
pub(crate) const LATENCIES: usize = 104;
/// Binary logarithm of the first step's length, ns.
pub(crate) const LATENCY_LOG2: u32 = 10;
/// Room for a unix socket's name.
pub(crate) const NAME: usize = 128;

/// Kinds of records in the ring buffer: their first four bytes.
pub(crate) mod kind {
    pub(crate) const SYNC: u32 = 1;
    pub(crate) const COMMIT: u32 = 2;
    pub(crate) const WAIT: u32 = 3;
    pub(crate) const BRIEF: u32 = 4;
    pub(crate) const CALL: u32 = 5;
    pub(crate) const REQUEST: u32 = 6;
    pub(crate) const TASK: u32 = 7;
    pub(crate) const CONNECTION: u32 = 8;
    pub(crate) const MESSAGE: u32 = 9;
    pub(crate) const PACKET: u32 = 10;
    pub(crate) const ASLEEP: u32 = 11;
    pub(crate) const LOCAL: u32 = 12;
    pub(crate) const TOKEN: u32 = 13;
    pub(crate) const COUNTS: u32 = 14;
}

pub(crate) mod task_event {
    pub(crate) const EXEC: u32 = 1;
    pub(crate) const EXIT: u32 = 2;
}

pub(crate) mod call_class {
    pub(crate) const SYNC: u8 = 1;
    pub(crate) const OTHER: u8 = 32;
}

pub(crate) mod call_test {
    #[cfg(target_arch = "x86_64")]
    pub(crate) const CREATE_2: u8 = 1;
    pub(crate) const CREATE_3: u8 = 2;
    pub(crate) const MSYNC_3: u8 = 3;
}

pub(crate) mod send_class {
    pub(crate) const BYTES: u8 = 1;
    pub(crate) const MESSAGES: u8 = 2;
}

pub(crate) mod buffer_class {
    pub(crate) const BYTES: u8 = 1;
    pub(crate) const VECTOR: u8 = 2;
    pub(crate) const MESSAGE: u8 = 3;
}

pub(crate) mod receive_class {
    pub(crate) const PLAIN: u8 = 1;
    pub(crate) const FLAGS_3: u8 = 2;
    pub(crate) const FLAGS_4: u8 = 3;
}

pub(crate) mod pipe_class {
    pub(crate) const READS: u8 = 1;
    pub(crate) const WRITES: u8 = 2;
    pub(crate) const SPLICES: u8 = 3;
}

/// Places of loss, in the order of the counters: a table, or a full map.
pub(crate) const LOST_PLACES: [&str; 22] = [
    "sync",
    "commit",
    "wait",
    "brief_wait",
    "call",
    "request",
    "task",
    "map handle",
    "map data",
    "map summary",
    "map request",
    "map journal",
    "map thread",
    "map stack",
    "connection",
    "message",
    "packet",
    "map connection",
    "asleep",
    "map exchange",
    "token",
    "counter",
];

/// A structure that C fills and Rust reads, or the reverse.
///
/// # Safety
/// `repr(C)`, no padding, and valid for all bytes.
pub(crate) unsafe trait Plain: Copy {
    /// Reads the value at the begin of `bytes`; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<Self>() {
            return None;
        }
        // SAFETY: enough bytes are there, any bytes are valid, and the read does not need alignment.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    /// Returns the value's bytes, as the BPF programs read them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the value has no padding, so that all of its bytes are initialized.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// Reads the rows of a record that may have several.
pub(crate) fn read_rows<T: Plain>(bytes: &[u8]) -> impl Iterator<Item = T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(T::read)
}

/// Defines the mirror of a C structure, and what the test compares.
macro_rules! plain {
    ($(
        $(#[$doc:meta])*
        struct $name:ident = $c_name:literal {
            $($field:ident: $type:ty,)+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type,)+
            }

            // SAFETY: repr(C); the test `layouts_agree` finds no padding; members are integers and arrays of them.
            unsafe impl Plain for $name {}
        )+

        #[cfg(test)]
        pub(super) fn layouts() -> Vec<crate::layout_check::StructLayout> {
            crate::layout_check::layouts! {
                $($name = $c_name { $($field: $type,)+ })+
            }
        }
    };
}

mod counter;
mod net;

pub(crate) use counter::{Count, Counts};
pub(crate) use net::{
    Connection, ExchangeKey, ExchangeStep, ExchangeSum, Local, Message, Packet, Token,
};

plain! {
    /// An fsync or a similar call.
    struct Sync = "record_sync" {
        kind: u32,
        sync_kind: u32,
        thread: u32,
        process: u32,
        cgroup: u64,
        inode: u64,
        enter_ns: u64,
        exit_ns: u64,
        file_system_enter_ns: u64,
        file_system_exit_ns: u64,
        dev: u32,
        wanted_enter: u32,
        wanted_exit: u32,
        errno: u32,
        cpu_enter: u32,
        reserved: u32,
    }

    struct Commit = "record_commit" {
        kind: u32,
        fast: u32,
        dev: u32,
        transaction: u32,
        asked_ns: u64,
        start_ns: u64,
        locking_ns: u64,
        flushing_ns: u64,
        logging_ns: u64,
        end_ns: u64,
        asked_by: u32,
        asked_by_process: u32,
        handles: u32,
        blocks: u32,
        blocks_logged: u32,
        dropped: u32,
    }

    struct Wait = "record_wait" {
        kind: u32,
        state: u32,
        thread: u32,
        process: u32,
        cgroup: u64,
        off_ns: u64,
        woken_ns: u64,
        on_ns: u64,
        stack: u32,
        brief: u32,
        waker: u32,
        dev: u32,
        transaction: u32,
        processor: u32,
    }

    /// A sum of brief waits.
    struct BriefSum = "brief_sum" {
        count: u64,
        blocked_ns: u64,
        runnable_ns: u64,
    }

    /// Sums of a thread.
    struct Brief = "record_brief" {
        kind: u32,
        thread: u32,
        process: u32,
        reserved: u32,
        cgroup: u64,
        since_ns: u64,
        until_ns: u64,
        sums: [BriefSum; BRIEF],
    }

    /// A call other than a sync.
    struct Call = "record_call" {
        kind: u32,
        call_kind: u32,
        thread: u32,
        process: u32,
        cgroup: u64,
        inode: u64,
        enter_ns: u64,
        exit_ns: u64,
        bytes: u64,
        dev: u32,
        errno: u32,
    }

    struct Request = "record_request" {
        kind: u32,
        dev: u32,
        sector: u64,
        insert_ns: u64,
        issue_ns: u64,
        complete_ns: u64,
        bytes: u32,
        command: u32,
        issuer: u32,
        issuer_process: u32,
        status: u32,
        reserved: u32,
    }

    /// Identity and processor time of a thread.
    struct Task = "record_task" {
        kind: u32,
        event: u32,
        thread: u32,
        process: u32,
        at_ns: u64,
        cgroup: u64,
        start_ns: u64,
        user_ns: u64,
        system_ns: u64,
        runtime_ns: u64,
        thread_pointer: u64,
        routine: u64,
        parent: u32,
        creator: u32,
        comm: [u8; COMM],
    }

    /// A thread that sleeps when recording begins or ends.
    struct Asleep = "record_asleep" {
        kind: u32,
        state: u32,
        thread: u32,
        process: u32,
        cgroup: u64,
        at_ns: u64,
        since_ns: u64,
        argument: u64,
        operation: u64,
        call: u32,
        brief: u32,
        connection: u32,
        reserved: u32,
        stack: [u64; STACK_DEPTH],
    }

    /// Key of the sums of handles.
    struct HandleKey = "handle_key" {
        dev: u32,
        transaction: u32,
        thread: u32,
        type_: u32,
    }

    /// A sum of handles.
    struct HandleSum = "handle_sum" {
        at_ns: u64,
        cgroup: u64,
        total_ns: u64,
        process: u32,
        line: u32,
        count: u32,
        requested: u32,
        dirtied: u32,
        reserved: u32,
    }

    /// Key of the sums of data.
    struct DataKey = "data_key" {
        inode: u64,
        slot: u64,
        dev: u32,
        thread: u32,
        direction: u32,
        reserved: u32,
    }

    /// A sum of data.
    struct DataSum = "data_sum" {
        bytes: u64,
        cgroup: u64,
        process: u32,
        reserved: u32,
    }

    /// Head of the rows that a processor has gathered.
    struct BatchHead = "batch_head" {
        busy: u32,
        count: u32,
    }

    /// Key of the counts of the summary mode.
    struct SummaryKey = "summary_key" {
        dev: u32,
        process: u32,
        what: u32,
        stack: u32,
        brief: u32,
        log2_ns: u32,
    }

    /// Counts of the summary mode.
    struct SummarySum = "summary_sum" {
        count: u64,
        total_ns: u64,
        cgroup: u64,
    }

    /// Constants for the programs.
    struct Config = "luc_config" {
        cgroup: u64,
        brief_ns: u64,
        brief_flush_ns: u64,
        slot_ns: u64,
        routine_offset: u64,
        system_call: u64,
        system_call_bytes: u64,
        own_process: u32,
        tree: u32,
        device_count: u32,
        devices: [u32; DEVICES],
        comm_length: u32,
        comm: [u8; COMM],
        summary: u32,
        hot_mask: u32,
        run_delays: u32,
        send_begins: u32,
        send_ends: u32,
        wake_ups: u32,
        tokens: u32,
        pipes: u32,
        counters: u32,
        processors: u32,
        call_class: [u8; SYSCALLS],
        call_test: [u8; SYSCALLS],
        brief_class: [u8; SYSCALLS],
        send_class: [u8; SYSCALLS],
        buffer_class: [u8; SYSCALLS],
        receive_class: [u8; SYSCALLS],
        pipe_class: [u8; SYSCALLS],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_check;

    #[test]
    fn layouts_agree() {
        let numbers = [
            ("RECORD_SYNC", kind::SYNC as usize),
            ("RECORD_COMMIT", kind::COMMIT as usize),
            ("RECORD_WAIT", kind::WAIT as usize),
            ("RECORD_BRIEF", kind::BRIEF as usize),
            ("RECORD_CALL", kind::CALL as usize),
            ("RECORD_REQUEST", kind::REQUEST as usize),
            ("RECORD_TASK", kind::TASK as usize),
            ("RECORD_CONNECTION", kind::CONNECTION as usize),
            ("RECORD_MESSAGE", kind::MESSAGE as usize),
            ("RECORD_PACKET", kind::PACKET as usize),
            ("RECORD_ASLEEP", kind::ASLEEP as usize),
            ("RECORD_LOCAL", kind::LOCAL as usize),
            ("RECORD_TOKEN", kind::TOKEN as usize),
            ("RECORD_COUNTS", kind::COUNTS as usize),
            ("LUC_COUNTERS", COUNTERS),
            ("LUC_NAME", NAME),
            ("TASK_EXEC", task_event::EXEC as usize),
            ("TASK_EXIT", task_event::EXIT as usize),
            ("CALL_SYNC", usize::from(call_class::SYNC)),
            ("CALL_OTHER", usize::from(call_class::OTHER)),
            ("SEND_BYTES", usize::from(send_class::BYTES)),
            ("RECEIVE_PLAIN", usize::from(receive_class::PLAIN)),
            ("RECEIVE_FLAGS_3", usize::from(receive_class::FLAGS_3)),
            ("RECEIVE_FLAGS_4", usize::from(receive_class::FLAGS_4)),
            ("PIPE_READS", usize::from(pipe_class::READS)),
            ("PIPE_WRITES", usize::from(pipe_class::WRITES)),
            ("PIPE_SPLICES", usize::from(pipe_class::SPLICES)),
            ("SEND_MESSAGES", usize::from(send_class::MESSAGES)),
            ("BUFFER_BYTES", usize::from(buffer_class::BYTES)),
            ("BUFFER_VECTOR", usize::from(buffer_class::VECTOR)),
            ("BUFFER_MESSAGE", usize::from(buffer_class::MESSAGE)),
            ("TEST_CREATE_3", usize::from(call_test::CREATE_3)),
            ("TEST_MSYNC_3", usize::from(call_test::MSYNC_3)),
            ("LOST_PLACES", LOST_PLACES.len()),
            ("LUC_STACK_DEPTH", STACK_DEPTH),
            ("LUC_NO_CALL", luc_events::tables::NO_CALL as usize),
            ("LUC_BATCH", BATCH),
            ("LUC_EXCHANGES", EXCHANGES),
            ("LUC_LATENCIES", LATENCIES),
            ("LUC_LATENCY_LOG2", LATENCY_LOG2 as usize),
        ];
        let mut all = layouts();
        all.extend(counter::layouts());
        all.extend(net::layouts());
        layout_check::agree("event_layouts.h", &all, &numbers);
    }

    #[test]
    fn a_record_has_one_row_or_several() {
        let head = BatchHead { busy: 1, count: 2 };
        let bytes = [head.bytes(), head.bytes()].concat();
        let counts = |bytes: &[u8]| -> Vec<u32> {
            read_rows::<BatchHead>(bytes).map(|row| row.count).collect()
        };
        assert_eq!(counts(&bytes), [2, 2]);
        assert_eq!(counts(head.bytes()), [2]);
        assert_eq!(counts(&bytes[..7]), [0; 0]);
    }

    #[test]
    fn too_few_bytes_are_no_record() {
        assert!(Sync::read(&[0; size_of::<Sync>() - 1]).is_none());
        assert!(Sync::read(&[0; size_of::<Sync>() + 8]).is_some());
    }
}
