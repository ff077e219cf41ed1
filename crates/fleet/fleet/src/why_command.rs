//! Explains why a thread does not run at a time.

use std::str::FromStr;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Effects, EngagedTimes, ThreadId};
use serde::Serialize;

use crate::error::FleetError;
use crate::explain::{FleetRequests, awaits_word};
use crate::joined_traces::JoinedTraces;
use crate::wait_causes::may_be_input;
use crate::wait_chain::{ChainThread, DependencyReason, ThreadActivity, WaitChain};

/// Name of a thread on the command line: `THREAD@HOST`, or `THREAD` for a single host. THREAD is a number or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadName {
    /// Id or name of the thread.
    pub thread: String,
    pub host: Option<String>,
}

impl FromStr for ThreadName {
    type Err = FleetError;

    fn from_str(text: &str) -> Result<Self, FleetError> {
        let (thread, host) = match text.rsplit_once('@') {
            Some((thread, host)) => (thread, Some(host.to_owned())),
            None => (text, None),
        };
        if thread.is_empty() || host.as_deref() == Some("") {
            return Err(FleetError::NoThread(text.to_owned()));
        }
        Ok(Self { thread: thread.to_owned(), host })
    }
}

/// Chain of threads that explains why the first does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WhyReport {
    /// Time, ns after the begin of the trace of the thread's host.
    pub after_ns: u64,
    /// The thread, then the thread that its wait depends on, and so on.
    pub links: Vec<LinkReport>,
    /// Number, from 0, of the thread in `links` that the last one waits for, if any.
    pub back_to: Option<usize>,
    /// Whether each of these threads holds the lock that the one before it needs. None of them will ever run.
    pub is_deadlock: bool,
}

/// Thread, and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    pub host: String,
    pub name: String,
    pub thread: u32,
    pub what: &'static str,
    /// Cause of a wait, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Purpose of a wait for input, a lock or another thread: `work` if the thread has no open request, `answer` if it
    /// has, or `not_known`.
    pub awaits: Option<&'static str>,
    /// Time that it had lasted, ns; `None`: unknown.
    pub for_ns: Option<u64>,
    /// Time that it would still last, ns; `None`: beyond the end of the trace, or unknown.
    pub left_ns: Option<u64>,
    /// Reason why its wait depends on the next thread.
    pub depends_on_next: Option<&'static str>,
}

/// Explains why a thread does not run at `after_ns` of its host's trace; `None`: at the trace's end.
///
/// # Errors
/// [`FleetError::NoSuchHost`], [`FleetError::WhichHost`], [`FleetError::NoSuchThread`], [`FleetError::WhichThread`],
/// [`FleetError::AfterTheEnd`], [`FleetError::Tree`].
pub fn why(
    joined: &JoinedTraces,
    who: &ThreadName,
    after_ns: Option<u64>,
) -> Result<WhyReport, FleetError> {
    let host = find_host(joined, who)?;
    let trace = &joined.host(host).trace;
    let length_ns = joined.host(host).summary.length_ns;
    let after_ns = after_ns.unwrap_or(length_ns);
    if after_ns > length_ns {
        return Err(FleetError::AfterTheEnd { after_ns, length_ns, host: joined.name(host) });
    }
    let at_ns = trace.start_ns.saturating_add(after_ns);
    let thread = find_thread(joined, host, &who.thread, at_ns)?;
    let found = FleetRequests::new(joined)?;
    let effects = Effects::new(&found.requests, &found.histories);
    let engaged = EngagedTimes::new(&found.requests, &effects);
    let home = joined.clocks.at_home(host);
    let chain = WaitChain::new(&found, thread, at_ns, |host| home.away_ns(host, at_ns));
    Ok(WhyReport {
        after_ns,
        links: chain.links.iter().map(|link| report_link(joined, &engaged, link)).collect(),
        back_to: chain.back_to,
        is_deadlock: chain.is_deadlock(),
    })
}

fn find_host(joined: &JoinedTraces, who: &ThreadName) -> Result<HostId, FleetError> {
    let names = || joined.hosts.iter().map(|host| host.name.as_str());
    let all_names = || names().collect::<Vec<_>>().join(", ");
    match &who.host {
        Some(name) => {
            let found = names().position(|other| other == name.as_str());
            found.map(|at| HostId(at as u32)).ok_or_else(|| FleetError::NoSuchHost {
                name: luc_units::plain(name),
                names: all_names(),
            })
        }
        None if joined.hosts.len() == 1 => Ok(HostId(0)),
        None => {
            Err(FleetError::WhichHost { thread: luc_units::plain(&who.thread), names: all_names() })
        }
    }
}

fn find_thread(
    joined: &JoinedTraces,
    host: HostId,
    name: &str,
    at_ns: u64,
) -> Result<ThreadId, FleetError> {
    let tasks = joined.host(host).tasks();
    let ids = name.parse().map_or_else(|_| tasks.called(name, at_ns), |id| vec![id]);
    match ids[..] {
        [id] if tasks.name(id, at_ns).is_some() => {
            Ok(ThreadId { host, thread: tasks.thread(id, at_ns) })
        }
        [] | [_] => {
            Err(FleetError::NoSuchThread { name: luc_units::plain(name), host: joined.name(host) })
        }
        ref several => Err(FleetError::WhichThread {
            name: luc_units::plain(name),
            host: joined.name(host),
            ids: several.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        }),
    }
}

fn report_link(joined: &JoinedTraces, engaged: &EngagedTimes, link: &ChainThread) -> LinkReport {
    let host = joined.host(link.thread.host);
    let thread = link.thread.thread;
    let passed_ns = |since_ns: u64| link.at_ns.saturating_sub(since_ns);
    let left_ns = |until_ns: u64| until_ns.saturating_sub(link.at_ns);
    let (what, for_ns, left_ns) = match link.doing {
        ThreadActivity::Running => ("on a processor", None, None),
        ThreadActivity::Runnable { since_ns, until_ns } => {
            ("waits for a processor", Some(passed_ns(since_ns)), Some(left_ns(until_ns)))
        }
        ThreadActivity::Waiting { since_ns, until_ns } => {
            ("waits", since_ns.map(passed_ns), until_ns.map(left_ns))
        }
        ThreadActivity::NotKnown => ("not known", None, None),
    };
    let others = link.cause.filter(|&cause| may_be_input(cause));
    LinkReport {
        awaits: others.map(|_| awaits_word(engaged.at(link.thread, link.off_ns))),
        host: host.name.clone(),
        name: host.thread_name(thread),
        thread: thread.id,
        what,
        cause: link.cause.map(luc_events::WaitCause::name),
        for_ns,
        left_ns,
        depends_on_next: link.reason.map(|reason| match reason {
            DependencyReason::Sent => "a message that it sent",
            DependencyReason::Woke => "it ended the wait",
            DependencyReason::Holds => "it has the lock",
            DependencyReason::Peer => "it used the other end of the connection last",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_named_with_its_host_or_without() {
        let who = |text: &str| text.parse::<ThreadName>().map(|who| (who.thread, who.host));
        let is = |thread: &str, host: Option<&str>| (thread.to_owned(), host.map(str::to_owned));
        assert_eq!(who("12@web").expect("read"), is("12", Some("web")));
        assert_eq!(who("a@b@web").expect("read"), is("a@b", Some("web")));
        assert_eq!(who("pool-1").expect("read"), is("pool-1", None));
        for wrong in ["@web", "12@", ""] {
            assert!(matches!(who(wrong), Err(FleetError::NoThread(_))), "{wrong}");
        }
    }
}
