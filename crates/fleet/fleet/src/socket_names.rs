//! Numbers the names of sockets, and formats addresses.

use std::collections::HashMap;

use luc_fleet_requests::{EndAddress, NameId};
use luc_units::plain;

/// Names of all hosts' sockets, without control characters.
#[derive(Debug, Default)]
pub(crate) struct SocketNames {
    numbers: HashMap<String, NameId>,
    names: Vec<String>,
}

impl SocketNames {
    /// Number of a name; `None` for the empty one.
    pub(crate) fn number(&mut self, name: &str) -> Option<NameId> {
        if name.is_empty() {
            return None;
        }
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let number = NameId(u32::try_from(self.names.len()).ok()?);
        self.numbers.insert(name.to_owned(), number);
        self.names.push(plain(name));
        Some(number)
    }

    /// Name with a number.
    pub(crate) fn name(&self, number: NameId) -> Option<&str> {
        self.names.get(number.0 as usize).map(String::as_str)
    }

    /// Formats an address for people. A socket without a name is called by its kind.
    pub(crate) fn address(&self, address: EndAddress) -> String {
        let named = |name: Option<NameId>| name.and_then(|number| self.name(number));
        match address {
            EndAddress::Internet(address) => address.to_string(),
            EndAddress::Unix(name) => named(name).unwrap_or("unix socket").to_owned(),
            EndAddress::Pipe(name) => named(name).unwrap_or("pipe").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_number() {
        let mut names = SocketNames::default();
        let first = names.number("/run/a");
        assert_eq!(names.number("/run/a"), first);
        assert_ne!(names.number("@b\u{1b}[2J"), first);
        assert_eq!(names.number(""), None);
        assert_eq!(names.address(EndAddress::Unix(first)), "/run/a");
        assert_eq!(names.address(EndAddress::Unix(None)), "unix socket");
        assert_eq!(names.address(EndAddress::Pipe(Some(NameId(9)))), "pipe");
        let other = names.number("@b\u{1b}[2J");
        assert!(!names.address(EndAddress::Unix(other)).contains('\u{1b}'));
    }
}
