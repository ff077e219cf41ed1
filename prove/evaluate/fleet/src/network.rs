//! Hosts on one bridge, each with a network namespace. A namespace has no name: it lives as long as a process that only
//! keeps it, which ends with this one.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::thread;
use std::time::Instant;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_network::{Namespace, NetworkError};

use crate::program::{ANSWER_TIMEOUT, POLL_INTERVAL, bound};
use crate::running::Running;

/// Last part of the address of the host that has the bridge.
const BRIDGE_ADDRESS: u8 = 1;

/// A host. After it is dropped, its namespace remains for processes that still run in it.
#[derive(Debug)]
pub(crate) struct Host {
    keeper: Running,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// Number of its network namespace.
    pub(crate) namespace: u64,
}

/// A bridge, and its host.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) first: Host,
}

impl Network {
    /// Makes a bridge, with a host that has it.
    ///
    /// # Errors
    /// A namespace, or a link, that cannot be made.
    pub(crate) fn make(harness: &Harness, name: &str) -> Result<Self, EvaluateError> {
        let first = Host::alone(harness, name, BRIDGE_ADDRESS)?;
        luc_network::make_bridge(first.network(), Some(first.address)).map_err(network_error)?;
        Ok(Self { first })
    }

    /// Links another host with the bridge. `number` is the last part of its address.
    ///
    /// # Errors
    /// As [`Network::make`].
    pub(crate) fn link(
        &self,
        harness: &Harness,
        name: &str,
        number: u8,
    ) -> Result<Host, EvaluateError> {
        let host = Host::alone(harness, name, number)?;
        let process = host.keeper.process();
        luc_network::link(self.first.network(), process, number, host.address)
            .map_err(network_error)?;
        Ok(host)
    }
}

impl Host {
    fn alone(harness: &Harness, name: &str, number: u8) -> Result<Self, EvaluateError> {
        let mut command = bound("KILL", false);
        command.args(["unshare", "--net", "sleep", "infinity"]);
        let keeper = Running::start(command, &harness.path("namespace.log"))?;
        let namespace = namespace_of(keeper.process())?;
        Ok(Self {
            keeper,
            name: name.to_owned(),
            address: Ipv4Addr::new(10, 78, 0, number),
            namespace,
        })
    }

    fn network(&self) -> Namespace {
        Namespace::Of(self.keeper.process())
    }

    /// Begins a command line that runs on this host and ends with this process.
    pub(crate) fn command(&self) -> Command {
        // A process that is stopped ends by nothing else.
        let mut command = bound("KILL", false);
        let namespace = format!("--net=/proc/{}/ns/net", self.keeper.process());
        command.args(["nsenter", &namespace]);
        command
    }
}

/// Returns the number of a process' network namespace, once it differs from this process'.
fn namespace_of(process: u32) -> Result<u64, EvaluateError> {
    let number = |process: &str| {
        let path = format!("/proc/{process}/ns/net");
        let about = fs::metadata(&path).map_err(EvaluateError::file("look at", path))?;
        Ok::<_, EvaluateError>(about.ino())
    };
    let (own, began) = (number("self")?, Instant::now());
    loop {
        let namespace = number(&process.to_string())?;
        if namespace != own {
            return Ok(namespace);
        }
        if began.elapsed() > ANSWER_TIMEOUT {
            return Err(EvaluateError::Command {
                command: "unshare --net sleep infinity".to_owned(),
                how: "it has no namespace".to_owned(),
                said: "root may make one".to_owned(),
            });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Loses `percent` of the IP packets that come to a host, at random.
pub(crate) fn lose(host: &Host, percent: u64) -> Result<(), EvaluateError> {
    luc_network::lose(host.network(), percent).map_err(network_error)
}

pub(crate) fn lose_nothing(host: &Host) -> Result<(), EvaluateError> {
    luc_network::lose_nothing(host.network()).map_err(network_error)
}

fn network_error(error: NetworkError) -> EvaluateError {
    match error {
        NetworkError::Run { command, reason } => EvaluateError::file("run", command)(reason),
        NetworkError::Failed { command, how, said } => {
            EvaluateError::Command { command, how, said }
        }
    }
}
