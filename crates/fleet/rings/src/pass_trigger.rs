//! Passes a trigger from host to host, along requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use crate::pull::{PullError, PullFrom, RingPlace};

/// Maximum number of hops. Longer chains of services do not exist, but a host could make one up.
const MAX_HOPS: usize = 16;

/// Ring on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRing {
    /// HOST or USER@HOST for ssh.
    pub host: String,
    /// Directory of the ring on that host.
    pub directory: String,
    addresses: BTreeSet<IpAddr>,
}

impl OtherRing {
    /// Looks up the addresses of a host under which others ask it.
    ///
    /// # Errors
    /// [`PullError::Source`] for a directory of this host; [`PullError::NoAddress`] if the system knows no address.
    pub fn new(from: &PullFrom) -> Result<Self, PullError> {
        let RingPlace::There { host, directory } = &from.place else {
            return Err(PullError::Source {
                text: from.to_string(),
                reason: "a host is wanted whose services are asked",
            });
        };
        let machine = host.split_once('@').map_or(host.as_str(), |(_, name)| name);
        let addresses = (machine, 0)
            .to_socket_addrs()
            .map_err(|reason| PullError::NoAddress { host: machine.to_owned(), reason })?;
        Ok(Self {
            host: host.clone(),
            directory: directory.clone(),
            addresses: addresses.map(|address| address.ip()).collect(),
        })
    }
}

/// Visits the hosts that were asked at these addresses, then those that their services asked, and so on. `keep` has a
/// host keep its ring, and returns the addresses that its services at these ports asked. Returns the addresses that
/// belong to no host.
pub fn travel(
    others: &[OtherRing],
    called: BTreeSet<SocketAddr>,
    mut keep: impl FnMut(&OtherRing, &[u16]) -> BTreeSet<SocketAddr>,
) -> BTreeSet<SocketAddr> {
    let mut seen = BTreeSet::new();
    let mut strange = BTreeSet::new();
    let mut next = called;
    for _ in 0..MAX_HOPS {
        let mut asked: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        for address in next {
            if !seen.insert(address) {
                continue;
            }
            let is_its = |other: &OtherRing| other.addresses.contains(&address.ip().to_canonical());
            match others.iter().position(is_its) {
                Some(number) => asked.entry(number).or_default().push(address.port()),
                None => {
                    strange.insert(address);
                }
            }
        }
        if asked.is_empty() {
            break;
        }
        let called = asked.into_iter().map(|(number, ports)| keep(&others[number], &ports));
        next = called.flatten().collect();
    }
    strange
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(text: &str) -> Result<OtherRing, PullError> {
        OtherRing::new(&text.parse().expect("a source"))
    }

    fn addresses(texts: &[&str]) -> BTreeSet<SocketAddr> {
        let read = |text: &&str| text.parse().expect("an address");
        texts.iter().map(read).collect()
    }

    #[test]
    fn a_host_is_known_by_its_address() {
        let known = other("luc@10.0.0.2:/ring").expect("known");
        assert_eq!(known.host, "luc@10.0.0.2");
        assert_eq!(known.directory, "/ring");
        let refused = other("/ring").expect_err("no host").to_string();
        assert!(refused.contains("a host is wanted"), "{refused}");
        let refused = other("nobody.invalid:/ring").expect_err("no address").to_string();
        assert!(refused.contains("nobody.invalid"), "{refused}");
    }

    #[test]
    fn a_trigger_visits_each_host_once_for_each_port() {
        let others = ["10.0.0.2:/a", "10.0.0.3:/b", "10.0.0.4:/c"];
        let others = others.map(|text| other(text).expect("known"));
        let mut visits = Vec::new();
        let called = addresses(&["10.0.0.2:80", "10.0.0.2:81", "10.0.0.9:1"]);
        let strange = travel(&others, called, |other, ports| {
            visits.push((other.directory.clone(), ports.to_vec()));
            // They ask one another.
            match other.directory.as_str() {
                "/a" => addresses(&["10.0.0.3:90", "10.0.0.2:80"]),
                _ => addresses(&["10.0.0.2:80", "10.0.0.2:82", "10.0.0.3:90"]),
            }
        });
        let visit = |directory: &str, ports: &[u16]| (directory.to_owned(), ports.to_vec());
        let all = [visit("/a", &[80, 81]), visit("/b", &[90]), visit("/a", &[82])];
        assert_eq!(visits, all);
        assert_eq!(strange, addresses(&["10.0.0.9:1"]));
    }

    #[test]
    fn a_host_that_makes_up_addresses_ends_nothing_else() {
        let others = [other("10.0.0.2:/a").expect("known")];
        let mut port = 80;
        travel(&others, addresses(&["10.0.0.2:80"]), |_, _| {
            port += 1;
            addresses(&[&format!("10.0.0.2:{port}")])
        });
        assert_eq!(port, 80 + MAX_HOPS as u16);
    }
}
