//! Hosts on one machine: network namespaces on a bridge, and links that lose or delay packets.
//!
//! A namespace belongs to a process and has no name, so it disappears with its last process. `ip`, `tc` and `nsenter`
//! do the work, which needs root.

mod program;

use std::net::Ipv4Addr;

pub use program::{Namespace, NetworkError};

use program::feed;

const BRIDGE: &str = "bridge";
/// Name of each host's own link.
const LINK: &str = "eth0";
/// Prefix of the network that all hosts of a bridge are in.
const PREFIX_BITS: u8 = 16;

/// Makes a bridge in a namespace that has none. With an address it is a host on the bridge, too.
///
/// # Errors
/// See [`NetworkError`].
pub fn make_bridge(at: Namespace, address: Option<Ipv4Addr>) -> Result<(), NetworkError> {
    let mut lines = format!("link add {BRIDGE} type bridge\nlink set {BRIDGE} up\n");
    if let Some(address) = address {
        lines += &format!("link set lo up\naddress add {address}/{PREFIX_BITS} dev {BRIDGE}\n");
    }
    ip(at, &lines)
}

/// Links the namespace of a process with a bridge, and gives it an address. Each link of a bridge needs its own
/// `number`.
///
/// # Errors
/// See [`NetworkError`].
pub fn link(
    bridge: Namespace,
    process: u32,
    number: u8,
    address: Ipv4Addr,
) -> Result<(), NetworkError> {
    ip(
        bridge,
        &format!(
            "link add host{number} type veth peer name {LINK} netns {process}\n\
             link set host{number} master {BRIDGE} up\n"
        ),
    )?;
    ip(
        Namespace::Of(process),
        &format!(
            "address add {address}/{PREFIX_BITS} dev {LINK}\nlink set {LINK} up\nlink set lo up\n"
        ),
    )
}

/// Loses `percent` of the IP packets that come to a host, at random.
///
/// A classic BPF program in `clsact` draws for each packet. netem would do it as well, but fewer kernels have it. If
/// packets were lost on their way out, the sender's TCP would notice and send them again without a timeout.
///
/// # Errors
/// See [`NetworkError`].
pub fn lose(at: Namespace, percent: u64) -> Result<(), NetworkError> {
    /// `SKF_AD_OFF + SKF_AD_RANDOM` of linux/filter.h: loads a random word.
    const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
    let threshold = u64::from(u32::MAX) * percent.min(100) / 100;
    // ld rand; jge threshold: pass (TC_ACT_OK), else drop (TC_ACT_SHOT).
    let program = format!("4,32 0 0 {RANDOM},53 0 1 {threshold},6 0 0 0,6 0 0 2");
    tc(at, &["qdisc", "add", "dev", LINK, "clsact"])?;
    let filter = ["filter", "add", "dev", LINK, "ingress", "protocol", "ip"];
    let by = ["bpf", "direct-action", "bytecode", &program];
    tc(at, &[&filter[..], &by].concat())
}

/// Ends [`lose`].
///
/// # Errors
/// See [`NetworkError`].
pub fn lose_nothing(at: Namespace) -> Result<(), NetworkError> {
    tc(at, &["qdisc", "del", "dev", LINK, "clsact"])
}

/// Limits the rate of the packets that leave a host, by delaying them.
///
/// # Errors
/// See [`NetworkError`].
pub fn slow_down(at: Namespace, kbit_per_s: u64) -> Result<(), NetworkError> {
    let rate = format!("{kbit_per_s}kbit");
    let to = ["qdisc", "add", "dev", LINK, "root", "tbf", "rate", &rate];
    // The bucket holds one packet, and the queue more than a run's connections send at once.
    let limits = ["burst", "1600", "limit", "1000000"];
    tc(at, &[&to[..], &limits].concat())
}

/// Ends [`slow_down`].
///
/// # Errors
/// See [`NetworkError`].
pub fn slow_down_nothing(at: Namespace) -> Result<(), NetworkError> {
    tc(at, &["qdisc", "del", "dev", LINK, "root"])
}

/// Runs these lines in `ip`.
fn ip(at: Namespace, lines: &str) -> Result<(), NetworkError> {
    feed(at, &["ip", "-batch", "-"], lines)
}

fn tc(at: Namespace, arguments: &[&str]) -> Result<(), NetworkError> {
    feed(at, &[&["tc"], arguments].concat(), "")
}
