//! Names of traces on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::FleetError;

/// Directory of a trace, and its host's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceArgument {
    /// Name that the user gives; `None`: the trace's own.
    pub name: Option<String>,
    /// Directory that `luc record --fleet` wrote.
    pub directory: PathBuf,
}

impl FromStr for TraceArgument {
    type Err = FleetError;

    /// Parses `DIR` or `NAME=DIR`. Text that names an existing directory is a `DIR`; a name has no slash.
    fn from_str(text: &str) -> Result<Self, FleetError> {
        match text.split_once('=') {
            Some((name, directory)) if !name.contains('/') && !Path::new(text).is_dir() => {
                if name.is_empty() {
                    return Err(FleetError::NoName(text.to_owned()));
                }
                Ok(Self { name: Some(name.to_owned()), directory: PathBuf::from(directory) })
            }
            _ => Ok(Self { name: None, directory: PathBuf::from(text) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_an_equals_sign() {
        let read = |text: &str| {
            text.parse::<TraceArgument>().map(|source| (source.name, source.directory))
        };
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
        let read: TraceArgument = name.parse().expect("read");
        assert_eq!(read.name, None);
    }
}
