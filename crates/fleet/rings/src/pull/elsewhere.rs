//! Has another host keep what its ring has of a window, and say whom its services asked.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use super::stream::StreamError;
use super::{PullError, there};
use crate::window::Window;

/// Nobody is there to type a password, and a host that is gone must not hold up the others.
const OPTIONS: [&str; 3] = ["-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=5"];
/// More is not taken: services ask fewer others.
const MOST_ADDRESSES: usize = 1_000;
/// The longest that a line with an address may be, and more.
const LINE_BYTES: u64 = 64;

/// What another host has kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptThere {
    /// Whom its services that answer at the ports asked on other hosts.
    pub called: BTreeSet<SocketAddr>,
    /// The last line that luc-fleet there or ssh said.
    pub said: String,
}

/// Has a host keep a window of the ring in a directory there, by `luc-fleet freeze`. `look` says whether to go on.
///
/// # Errors
/// [`PullError`]: it cannot be reached, or has nothing of the window.
pub fn freeze_there(
    (host, directory): (&str, &str),
    window: Window,
    ports: &[u16],
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<KeptThere, PullError> {
    let [from, to] = window.seconds();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut words = vec!["freeze", "--from", &from, "--to", &to];
    for port in &ports {
        words.extend(["--called-by", port]);
    }
    words.push(directory);
    let (called, said) = there::run((&OPTIONS, host), &words, |out| addresses(out), look)?;
    Ok(KeptThere { called, said })
}

/// Reads an address from each line.
fn addresses(from: impl Read) -> Result<BTreeSet<SocketAddr>, StreamError> {
    let mut text = String::new();
    let most = MOST_ADDRESSES as u64 * LINE_BYTES;
    from.take(most).read_to_string(&mut text).map_err(StreamError::Read)?;
    let read = |line: &str| {
        let address: Option<SocketAddr> = line.parse().ok();
        address.ok_or_else(|| StreamError::NoAddress(luc_units::plain(line)))
    };
    text.lines().take(MOST_ADDRESSES).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_by_lines() {
        let read = |text: &str| addresses(text.as_bytes());
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
