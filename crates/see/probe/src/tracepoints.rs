//! Programs, their tracepoints, and the loss without each.

use std::fs;

/// Importance of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramNeed {
    /// Nothing works without it.
    Always,
    /// Part of the trace that is missing without it, in words.
    For(&'static str),
    /// Replaced by another one, or not needed.
    Extra,
}

/// A program on a tracepoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracepointProgram {
    pub(crate) name: &'static str,
    /// Name of the tracepoint; most programs have the same name.
    pub(crate) tracepoint: &'static str,
    /// Missing tracepoint that it replaces.
    pub(crate) instead_of: Option<&'static str>,
    /// Number of arguments that it reads; some have fewer on older kernels.
    pub(crate) arguments: u32,
    /// Importance of the program.
    pub(crate) need: ProgramNeed,
}

const fn hook(name: &'static str, arguments: u32, need: ProgramNeed) -> TracepointProgram {
    TracepointProgram { name, tracepoint: name, instead_of: None, arguments, need }
}

const fn stand_in(
    name: &'static str,
    tracepoint: &'static str,
    arguments: u32,
    instead_of: &'static str,
) -> TracepointProgram {
    TracepointProgram {
        name,
        tracepoint,
        instead_of: Some(instead_of),
        arguments,
        need: ProgramNeed::Always,
    }
}

/// Makes an optional hook, for architectures without another tracepoint.
const fn elsewhere(
    name: &'static str,
    arguments: u32,
    instead_of: &'static str,
) -> TracepointProgram {
    TracepointProgram { instead_of: Some(instead_of), ..hook(name, arguments, ProgramNeed::Extra) }
}

const CALLS: ProgramNeed = ProgramNeed::For("the begin and end of system calls");

const COMMITS: ProgramNeed = ProgramNeed::For("journal commits");
const FSYNCS: ProgramNeed = ProgramNeed::For("what an fsync waits for");
const HANDLES: ProgramNeed = ProgramNeed::For("who made transactions large");
const REQUESTS: ProgramNeed = ProgramNeed::For("block requests");
const FAST: ProgramNeed = ProgramNeed::For("ext4 fast commits");
const PIPES: ProgramNeed = ProgramNeed::For("what goes through pipes");
const PACKETS: ProgramNeed = ProgramNeed::For("packets");
const EXCHANGES: ProgramNeed = ProgramNeed::For("how long requests take");

/// Returns the table whose rows are incomplete if program `name` has missed an event.
pub(crate) fn table_of(name: &str) -> &'static str {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| name.starts_with(start));
    match name {
        _ if begins(&["jbd2_handle"]) => "handle",
        _ if begins(&["jbd2_", "ext4_fc_"]) => "commit",
        _ if begins(&["ext4_sync_file"]) => "sync",
        _ if begins(&["ext4_writepages", "writeback_", "iomap_"]) => "data",
        _ if begins(&["sys_", "ext4_"]) => "call",
        _ if begins(&["block_"]) => "request",
        _ if begins(&["sched_process", "cgroup_"]) => "task",
        _ if begins(&["sched_", "local_timer", "irq_"]) => "wait",
        _ if begins(&["inet_sock", "tcp_destroy"]) => "connection",
        _ if begins(&["net_dev", "netif_"]) => "packet",
        _ if begins(&["exchange_"]) => "exchange_sum",
        _ if begins(&["count_"]) => "counter",
        _ => "message",
    }
}

/// Programs on system calls that can be attached as perf events as well, by the name with [`PERF_SUFFIX`].
const AS_PERF_EVENTS: [&str; 4] = ["sys_enter", "sys_exit", "pipe_enter", "pipe_exit"];
/// Suffix of the name of a program on perf events.
pub(crate) const PERF_SUFFIX: &str = "_perf";
/// First kernel that skips a tracepoint's program for a thread that preempts it.
const FIRST_PREEMPTIBLE: (u32, u32) = (7, 0);

/// Returns whether programs on system calls should be perf events: on kernels where they would miss calls otherwise.
pub(crate) fn calls_are_perf_events() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map_while(|digits| digits.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    let has_number = |folder: &str| {
        fs::read_to_string(format!("{folder}/events/raw_syscalls/sys_enter/id")).is_ok()
    };
    version >= Some(FIRST_PREEMPTIBLE)
        && ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].into_iter().any(has_number)
}

/// Returns the name of a hook's program.
pub(crate) fn program_of(name: &str, calls_are_perf_events: bool) -> String {
    if calls_are_perf_events && AS_PERF_EVENTS.contains(&name) {
        format!("{name}{PERF_SUFFIX}")
    } else {
        name.to_owned()
    }
}

/// Programs on files, disks and threads.
pub(crate) const HOOKS: &[TracepointProgram] = &[
    hook("sched_switch", 3, ProgramNeed::Always),
    hook("sched_waking", 1, ProgramNeed::Always),
    hook("local_timer_entry", 1, ProgramNeed::Extra),
    hook("local_timer_exit", 1, ProgramNeed::Extra),
    elsewhere("irq_handler_entry", 1, "local_timer_entry"),
    elsewhere("irq_handler_exit", 1, "local_timer_exit"),
    hook("sched_process_fork", 2, ProgramNeed::Always),
    hook("sched_process_exec", 2, ProgramNeed::Always),
    hook("sched_process_exit", 1, ProgramNeed::Always),
    hook("cgroup_attach_task", 3, ProgramNeed::Extra),
    hook("sys_enter", 2, CALLS),
    hook("sys_exit", 2, CALLS),
    hook("jbd2_start_commit", 2, COMMITS),
    hook("jbd2_commit_locking", 1, COMMITS),
    hook("jbd2_commit_flushing", 1, COMMITS),
    hook("jbd2_commit_logging", 1, COMMITS),
    hook("jbd2_run_stats", 3, COMMITS),
    hook("jbd2_checkpoint_stats", 3, ProgramNeed::Extra),
    hook("jbd2_end_commit", 2, COMMITS),
    hook("jbd2_handle_start", 5, HANDLES),
    hook("jbd2_handle_stats", 8, HANDLES),
    hook("ext4_sync_file_enter", 2, FSYNCS),
    hook("ext4_sync_file_exit", 2, FSYNCS),
    hook("ext4_fc_commit_start", 1, FAST),
    hook("ext4_fc_commit_stop", 4, FAST),
    hook("ext4_allocate_inode", 1, ProgramNeed::Extra),
    hook("ext4_unlink_enter", 2, ProgramNeed::Extra),
    hook("ext4_writepages_result", 4, ProgramNeed::For("who wrote data")),
    hook("writeback_single_inode", 3, ProgramNeed::Extra),
    hook("writeback_dirty_folio", 2, ProgramNeed::Extra),
    hook("writeback_dirty_page", 2, ProgramNeed::Extra),
    hook("iomap_dio_complete", 3, ProgramNeed::Extra),
    hook("block_io_start", 1, ProgramNeed::Extra),
    hook("block_rq_insert", 1, REQUESTS),
    hook("block_rq_issue", 1, REQUESTS),
    hook("block_rq_complete", 3, REQUESTS),
];

/// Programs on the network.
pub(crate) const NETWORK_HOOKS: &[TracepointProgram] = &[
    hook("inet_sock_set_state", 3, ProgramNeed::Always),
    hook("tcp_destroy_sock", 1, ProgramNeed::Always),
    hook("tcp_sendmsg_locked", 4, ProgramNeed::Extra),
    stand_in("send_enter", "sys_enter", 2, "tcp_sendmsg_locked"),
    hook("sock_send_length", 3, ProgramNeed::For("sends by io_uring and splice")),
    stand_in("send_exit", "sys_exit", 2, "sock_send_length"),
    hook("tcp_rcv_space_adjust", 1, ProgramNeed::Always),
    hook("sk_data_ready", 1, ProgramNeed::Extra),
    hook("sock_recv_length", 3, ProgramNeed::Extra),
    TracepointProgram { tracepoint: "sys_enter", ..hook("pipe_enter", 2, ProgramNeed::Extra) },
    TracepointProgram { tracepoint: "sys_exit", ..hook("pipe_exit", 2, PIPES) },
    hook("net_dev_start_xmit", 2, PACKETS),
    hook("netif_receive_skb", 1, PACKETS),
];

/// Programs that sum the times of requests on connections.
pub(crate) const EXCHANGE_HOOKS: &[TracepointProgram] = &[
    TracepointProgram {
        tracepoint: "tcp_sendmsg_locked",
        ..hook("exchange_send", 1, ProgramNeed::Extra)
    },
    TracepointProgram {
        tracepoint: "sock_send_length",
        instead_of: Some("tcp_sendmsg_locked"),
        ..hook("exchange_sent", 2, EXCHANGES)
    },
    TracepointProgram {
        tracepoint: "tcp_rcv_space_adjust",
        ..hook("exchange_receive", 1, EXCHANGES)
    },
];

#[cfg(test)]
mod tests {
    use luc_events::tables::TableRow;
    use luc_events::{TableVisitor, TraceEvent, visit_tables};

    use super::*;

    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl TableVisitor for Names {
        fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
            self.0.push(T::TABLE);
        }
    }

    #[test]
    fn what_a_program_misses_is_missing_in_a_table() {
        let mut names = Names::default();
        visit_tables(&mut names);
        for hook in [HOOKS, NETWORK_HOOKS, EXCHANGE_HOOKS].concat() {
            let table = table_of(hook.name);
            assert!(names.0.contains(&table), "{}: {table}", hook.name);
        }
        assert_eq!(table_of("sched_switch"), "wait");
        assert_eq!(table_of("sys_exit"), "call");
        assert_eq!(table_of("net_dev_start_xmit"), "packet");
        assert_eq!(table_of("pipe_exit"), "message");
    }
}
