//! Has another host keep a window of its ring, and learns whom its services asked.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use super::PullError;
use super::ssh::{self, Ssh};
use super::tar_stream::StreamError;
use crate::pass_trigger::OtherRing;
use crate::time_window::TimeWindow;

/// Options of ssh: it must not ask for a password, and a host that is gone must not hold up others.
const SSH_OPTIONS: [&str; 3] =
    ["-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=5"];
/// Maximum number of addresses; services ask fewer others.
const MAX_ADDRESSES: usize = 1_000;
/// Maximum length of a line with an address; real ones are shorter.
const MAX_LINE_BYTES: u64 = 64;

/// Result of another host that kept a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotelyKept {
    /// Addresses on other hosts that its services at the ports asked.
    pub called: BTreeSet<SocketAddr>,
    /// Last line that luc-fleet there or ssh printed.
    pub said: String,
}

/// Has a host keep a window of its ring, by `luc-fleet freeze` on that host. `look` returns whether to go
/// on.
///
/// # Errors
/// [`PullError`] if the host cannot be reached, or has nothing of the window.
pub fn freeze_there(
    ring: &OtherRing,
    window: TimeWindow,
    ports: &[u16],
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<RemotelyKept, PullError> {
    let [from, to] = window.seconds();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut words = vec!["freeze", "--from", &from, "--to", &to];
    for port in &ports {
        words.extend(["--called-by", port]);
    }
    words.push(&ring.directory);
    let (called, said) = ssh::run(
        Ssh { host: &ring.host, options: &SSH_OPTIONS },
        &words,
        |out| parse_addresses(out),
        look,
    )?;
    Ok(RemotelyKept { called, said })
}

/// Parses an address on each line.
fn parse_addresses(from: impl Read) -> Result<BTreeSet<SocketAddr>, StreamError> {
    let mut text = String::new();
    let max_bytes = MAX_ADDRESSES as u64 * MAX_LINE_BYTES;
    from.take(max_bytes).read_to_string(&mut text).map_err(StreamError::Read)?;
    let read =
        |line: &str| line.parse().map_err(|_| StreamError::NoAddress(luc_units::plain(line)));
    text.lines().take(MAX_ADDRESSES).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_by_lines() {
        let read = |text: &str| parse_addresses(text.as_bytes());
        let all = read("10.0.0.2:80\n[fd00::1]:443\n").expect("read");
        let texts: Vec<String> = all.iter().map(SocketAddr::to_string).collect();
        assert_eq!(texts, ["10.0.0.2:80", "[fd00::1]:443"]);
        assert_eq!(read("").expect("read"), BTreeSet::new());
        for text in ["10.0.0.2", "web:80", "10.0.0.2:80 ", "\x1b[2J"] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains("no address"), "{error}");
            assert!(!error.contains('\x1b'), "{error}");
        }
    }
}
