//! Network namespaces without names: each lives as long as the process that made it, so that nothing of it stays when
//! that process ends, however it ends.

use std::net::Ipv4Addr;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::TwinError;
use crate::program::{feed, run};

/// The addresses of a run's hosts begin so; only its own namespaces see them.
const PREFIX_BITS: u8 = 16;
const BRIDGE: &str = "bridge";
/// The name of each host's own link.
pub(crate) const LINK: &str = "eth0";

/// Moves the calling thread, and all that it starts later, into a new network namespace.
pub(crate) fn enter_new() -> Result<(), TwinError> {
    // SAFETY: without UnshareFlags::FILES no file descriptor is affected.
    let result = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    result.map_err(|errno| match errno {
        rustix::io::Errno::PERM => TwinError::Unable {
            what: "making a network namespace".into(),
            why: "root may; run it by sudo".into(),
        },
        errno => TwinError::system("making a network namespace")(errno),
    })
}

/// The address of a host.
pub(crate) fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host)
}

/// A bridge in the namespace of the calling thread, which must be its own.
pub(crate) fn make_bridge() -> Result<(), TwinError> {
    let commands = format!("link add {BRIDGE} type bridge\nlink set {BRIDGE} up\n");
    feed("ip", &["-batch", "-"], &commands)
}

/// Links the namespace of a process with the bridge, and gives it its address.
pub(crate) fn link(process: u32, host: u8) -> Result<(), TwinError> {
    let outer = format!("host{host}");
    feed(
        "ip",
        &["-batch", "-"],
        &format!(
            "link add {outer} type veth peer name {LINK} netns {process}\n\
             link set {outer} master {BRIDGE} up\n"
        ),
    )?;
    let namespace = format!("--net=/proc/{process}/ns/net");
    feed(
        "nsenter",
        &[&namespace, "ip", "-batch", "-"],
        &format!(
            "address add {}/{PREFIX_BITS} dev {LINK}\nlink set {LINK} up\nlink set lo up\n",
            address(host)
        ),
    )
}

/// Has so many percent of the IP packets that come to this host get lost, at random.
///
/// A classic BPF program in `clsact` draws for each packet. netem would do it as well, but fewer kernels have it. On
/// their way out the sender's TCP would notice, and send them again without a timeout.
pub(crate) fn lose(percent: u64) -> Result<(), TwinError> {
    /// `SKF_AD_OFF + SKF_AD_RANDOM` of linux/filter.h: loads a random word.
    const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
    let threshold = u64::from(u32::MAX) * percent.min(100) / 100;
    // ld rand; jge threshold: pass (TC_ACT_OK), else drop (TC_ACT_SHOT).
    let program = format!("4,32 0 0 {RANDOM},53 0 1 {threshold},6 0 0 0,6 0 0 2");
    run("tc", &["qdisc", "add", "dev", LINK, "clsact"])?;
    run(
        "tc",
        &[
            "filter",
            "add",
            "dev",
            LINK,
            "ingress",
            "protocol",
            "ip",
            "bpf",
            "direct-action",
            "bytecode",
            &program,
        ],
    )
}

/// Ends [`lose`].
pub(crate) fn lose_nothing() -> Result<(), TwinError> {
    run("tc", &["qdisc", "del", "dev", LINK, "clsact"])
}

/// Has the packets that leave this host wait until they pass at so many kbit/s.
pub(crate) fn slow_down(kbit_per_s: u64) -> Result<(), TwinError> {
    let rate = format!("{kbit_per_s}kbit");
    // The bucket holds one packet, and the queue more than a run's connections send at once.
    run(
        "tc",
        &[
            "qdisc", "add", "dev", LINK, "root", "tbf", "rate", &rate, "burst", "1600", "limit",
            "1000000",
        ],
    )
}

/// Ends [`slow_down`].
pub(crate) fn slow_down_nothing() -> Result<(), TwinError> {
    run("tc", &["qdisc", "del", "dev", LINK, "root"])
}
