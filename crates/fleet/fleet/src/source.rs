//! Which traces to read, as people name them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::FleetError;

/// A trace, and what its host is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name that the user gives; `None`: the trace's own.
    pub name: Option<String>,
    /// The directory that `luc record --fleet` wrote.
    pub directory: PathBuf,
}

impl FromStr for Source {
    type Err = FleetError;

    /// `DIR`, or `NAME=DIR`. What is a directory as it stands is one; a name has no slash.
    fn from_str(text: &str) -> Result<Self, FleetError> {
        let plain = || Self { name: None, directory: PathBuf::from(text) };
        match text.split_once('=') {
            Some((name, directory)) if !name.contains('/') && !Path::new(text).is_dir() => {
                if name.is_empty() {
                    return Err(FleetError::NoName(text.to_owned()));
                }
                Ok(Self { name: Some(name.to_owned()), directory: PathBuf::from(directory) })
            }
            _ => Ok(plain()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_an_equals_sign() {
        let read =
            |text: &str| text.parse::<Source>().map(|source| (source.name, source.directory));
        let is = |name: Option<&str>, directory: &str| {
            (name.map(str::to_owned), PathBuf::from(directory))
        };
        assert_eq!(read("web.trace").expect("read"), is(None, "web.trace"));
        assert_eq!(read("web=a/b=c").expect("read"), is(Some("web"), "a/b=c"));
        assert_eq!(read("a/b=c").expect("read"), is(None, "a/b=c"));
        assert!(matches!(read("=a"), Err(FleetError::NoName(_))));
    }

    #[test]
    fn a_directory_with_an_equals_sign_is_one() {
        let folder = tempfile::Builder::new().prefix("a=b").tempdir_in(".").expect("made");
        let name = folder.path().file_name().expect("a name").to_str().expect("plain");
        let read: Source = name.parse().expect("read");
        assert_eq!(read.name, None);
    }
}
