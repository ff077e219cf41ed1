//! Hosts that are network namespaces of this test. Only file descriptors hold them, so nothing of them is left,
//! however the test ends.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::thread;

use luc_events::Inode;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Network namespace that stands for a host.
pub(crate) struct NamespaceHost {
    namespace: File,
}

impl NamespaceHost {
    fn new() -> Self {
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", "ip link set lo up; echo; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it says when it is there");
        let namespace = File::open(format!("/proc/{}/ns/net", child.id())).expect("a namespace");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        Self { namespace }
    }

    /// The path by which commands find it while this process lives.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd())
    }

    /// Its number, as traces have it.
    pub(crate) fn inode(&self) -> Inode {
        Inode(self.namespace.metadata().expect("its metadata").ino())
    }

    /// A command in it.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).args(words);
        command
    }

    /// Runs a command in it.
    pub(crate) fn run(&self, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let output = self.command(&words).output().expect("nsenter runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}");
    }

    /// Does `work` on a thread that is in it. What that opens stays in it, whoever uses it.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.namespace.as_fd(), kind).expect("entered");
                work()
            });
            inside.join().expect("no failure")
        })
    }
}

/// Two hosts and what is between them.
pub(crate) struct TwoHosts {
    pub(crate) client: NamespaceHost,
    pub(crate) server: NamespaceHost,
    /// The host between them, with the devices `to_client` and `to_server`.
    pub(crate) between: NamespaceHost,
}

/// Addresses of the two ends; the client's end in 1, the server's end in 2.
pub(crate) const SERVER_IPV4: &str = "10.77.0.2";
pub(crate) const SERVER_IPV6: &str = "fd77::2";

impl TwoHosts {
    /// Two hosts on a bridge of a third. `None`, and a line that says why, where this cannot be had.
    pub(crate) fn new() -> Option<Self> {
        if !crate::common::is_root() {
            return None;
        }
        let there = Command::new("ip").arg("-V").output().is_ok();
        if !there {
            luc_testkit::skipped!("ip (iproute2) is not installed");
            return None;
        }
        let place = Self {
            client: NamespaceHost::new(),
            server: NamespaceHost::new(),
            between: NamespaceHost::new(),
        };
        place.between.run("ip link add bridge type bridge forward_delay 0");
        place.between.run("ip link set bridge up");
        for (host, name, number) in [(&place.client, "client", 1), (&place.server, "server", 2)] {
            host.run(&format!("ip link add eth0 type veth peer name to_{name}"));
            host.run(&format!("ip link set to_{name} netns {}", place.between.path()));
            place.between.run(&format!("ip link set to_{name} master bridge up"));
            // Without duplicate address detection the address can be used at once.
            let disable = "sysctl -qw net.ipv6.conf.eth0.accept_dad=0";
            let _ = host.command(&disable.split(' ').collect::<Vec<_>>()).output();
            host.run("ip link set eth0 up");
            host.run(&format!("ip address add 10.77.0.{number}/24 dev eth0"));
            host.run(&format!("ip address add fd77::{number}/64 dev eth0 nodad"));
        }
        Some(place)
    }
}
