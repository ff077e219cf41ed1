//! Troubles to plant, as they are written on the command line.

use std::fmt;
use std::str::FromStr;

use luc_twin_truth::Kind;

use crate::error::TwinError;

/// A trouble to plant: `KIND[:HOW]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub kind: Kind,
    /// A directory for `disk`, `journal` and `writer`, else a number in the kind's unit. The number is drawn if none is
    /// given.
    pub how: Option<String>,
}

impl Spec {
    /// Returns the number in `how`.
    ///
    /// # Errors
    /// [`TwinError::Option`] if it is none, or 0.
    pub(crate) fn number(&self) -> Result<Option<u64>, TwinError> {
        let Some(how) = &self.how else {
            return Ok(None);
        };
        match how.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(self.wrong("the number after the colon is above 0")),
        }
    }

    /// Returns the directory in `how`.
    ///
    /// # Errors
    /// [`TwinError::Option`] if there is none.
    pub(crate) fn directory(&self) -> Result<&str, TwinError> {
        let how = self.how.as_deref().filter(|how| !how.is_empty());
        how.ok_or_else(|| self.wrong("a directory on a disk must follow, as in disk:/var/tmp"))
    }

    pub(crate) fn wrong(&self, why: &str) -> TwinError {
        TwinError::Option { what: format!("--plant {self}"), why: why.to_owned() }
    }
}

impl FromStr for Spec {
    type Err = TwinError;

    fn from_str(text: &str) -> Result<Self, TwinError> {
        let (name, how) = match text.split_once(':') {
            Some((name, how)) => (name, Some(how.to_owned())),
            None => (text, None),
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| TwinError::Option {
            what: format!("--plant {text}"),
            why: format!("it is one of {}", Kind::ALL.map(Kind::name).join(", ")),
        })?;
        Ok(Self { kind, how })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.how.iter().try_for_each(|how| write!(f, ":{how}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read_as_they_are_written() {
        for text in ["cpu", "cpu:8", "disk:/var/tmp/a:b", "share"] {
            let spec: Spec = text.parse().expect("valid");
            assert_eq!(spec.to_string(), text);
        }
        for kind in Kind::ALL {
            let spec: Spec = kind.name().parse().expect("valid");
            assert_eq!(spec.kind, kind);
        }
        let said = "gremlin".parse::<Spec>().expect_err("unknown").to_string();
        assert!(said.contains("journal"), "{said}");
        let zero: Spec = "cpu:0".parse().expect("read");
        zero.number().expect_err("no number above 0");
        "disk".parse::<Spec>().expect("read").directory().expect_err("none");
    }
}
