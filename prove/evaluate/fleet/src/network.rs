//! Hosts that each have a network namespace, on one bridge. A namespace has no name: it lives as long as a process that
//! only keeps it, which ends with this one.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line};

use crate::program::{LOOK, PATIENCE, bound};
use crate::running::Running;

const BRIDGE: &str = "bridge";
/// The name of each host's own link.
const LINK: &str = "eth0";
const PREFIX_BITS: u8 = 16;
/// The last part of the address of the host that has the bridge.
const FIRST: u8 = 1;

/// A host. Dropped, its namespace is left to what still runs in it.
#[derive(Debug)]
pub(crate) struct Host {
    keeper: Running,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// The number of its network namespace.
    pub(crate) namespace: u64,
}

/// The host that has the bridge, and an address on it.
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
        let first = Host::alone(harness, name, FIRST)?;
        ip(
            first.command(),
            &format!(
                "link add {BRIDGE} type bridge\nlink set {BRIDGE} up\nlink set lo up\n\
                 address add {}/{PREFIX_BITS} dev {BRIDGE}\n",
                first.address
            ),
        )?;
        Ok(Self { first })
    }

    /// Links another host with the bridge; `number` is the last part of its address.
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
        ip(
            self.first.command(),
            &format!(
                "link add host{number} type veth peer name {LINK} netns {}\n\
                 link set host{number} master {BRIDGE} up\n",
                host.keeper.process()
            ),
        )?;
        ip(
            host.command(),
            &format!(
                "address add {}/{PREFIX_BITS} dev {LINK}\nlink set {LINK} up\nlink set lo up\n",
                host.address
            ),
        )?;
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

    /// The beginning of a command line that runs something on this host, and ends with this process.
    pub(crate) fn command(&self) -> Command {
        let mut command = bound("TERM", false);
        let namespace = format!("--net=/proc/{}/ns/net", self.keeper.process());
        command.args(["nsenter", &namespace]);
        command
    }
}

/// The number of a process' network namespace, once that is another one than this process'.
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
        if began.elapsed() > PATIENCE {
            return Err(EvaluateError::Command {
                command: "unshare --net sleep infinity".to_owned(),
                how: "it has no namespace".to_owned(),
                said: "root may make one".to_owned(),
            });
        }
        thread::sleep(LOOK);
    }
}

/// Has so many percent of the IP packets that come to a host get lost, at random.
///
/// A classic BPF program in `clsact` draws for each packet, as the search twin's does.
pub(crate) fn lose(host: &Host, percent: u64) -> Result<(), EvaluateError> {
    /// `SKF_AD_OFF + SKF_AD_RANDOM` of linux/filter.h: loads a random word.
    const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
    let threshold = u64::from(u32::MAX) * percent.min(100) / 100;
    // ld rand; jge threshold: pass (TC_ACT_OK), else drop (TC_ACT_SHOT).
    let program = format!("4,32 0 0 {RANDOM},53 0 1 {threshold},6 0 0 0,6 0 0 2");
    tc(host, &format!("qdisc add dev {LINK} clsact"), "")?;
    let filter = format!("filter add dev {LINK} ingress protocol ip bpf direct-action bytecode");
    tc(host, &filter, &program)
}

/// Ends [`lose`].
pub(crate) fn lose_nothing(host: &Host) -> Result<(), EvaluateError> {
    tc(host, &format!("qdisc del dev {LINK} clsact"), "")
}

/// Has `tc` do these words on a host; the last one may have spaces.
fn tc(host: &Host, words: &str, last: &str) -> Result<(), EvaluateError> {
    let mut command = host.command();
    command.arg("tc").args(words.split(' '));
    if !last.is_empty() {
        command.arg(last);
    }
    feed(command, "")
}

/// Has `ip` do these lines on a host.
fn ip(mut command: Command, lines: &str) -> Result<(), EvaluateError> {
    command.args(["ip", "-batch", "-"]);
    feed(command, lines)
}

/// Runs a program with this standard input.
fn feed(mut command: Command, lines: &str) -> Result<(), EvaluateError> {
    let text = line(&command);
    let failed = || EvaluateError::file("run", &text);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed())?;
    let written = match child.stdin.take() {
        Some(mut input) => input.write_all(lines.as_bytes()),
        None => Ok(()),
    };
    let output = child.wait_with_output().map_err(failed())?;
    if output.status.success() {
        return written.map_err(failed());
    }
    Err(EvaluateError::Command {
        command: text,
        how: output.status.to_string(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
