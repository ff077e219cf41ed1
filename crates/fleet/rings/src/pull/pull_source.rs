//! Sources of windows: a directory on this host, one on another host, or an object store.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::segment_files::ReceivedAmount;
use super::ssh::{self, Ssh};
use super::tar_stream::{StreamLimits, receive};
use super::{PullError, Pulled, command, keep_segments};
use crate::time_window::{TimeWindow, segments};

/// Program that reaches object stores.
pub const STORE: &str = "luc-fleet-store";
/// Instructions to build and install that program.
pub const INSTALL_STORE: &str =
    "`make product-store install` in luc's sources builds and installs it";

/// Ring, and its host's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullFrom {
    /// Name that the user gives.
    pub name: Option<String>,
    pub place: RingPlace,
}

/// Location of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingPlace {
    /// Directory on this host, perhaps mounted from elsewhere.
    Here(PathBuf),
    There {
        /// HOST or USER@HOST for ssh.
        host: String,
        directory: String,
    },
    /// URL of a host's folder in an object store.
    Stored(String),
}

impl fmt::Display for PullFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            RingPlace::Here(directory) => directory.display().fmt(f),
            RingPlace::There { host, directory } => write!(f, "{host}:{directory}"),
            RingPlace::Stored(url) => url.fmt(f),
        }
    }
}

impl FromStr for PullFrom {
    type Err = PullError;

    /// Parses `DIR`, `HOST:DIR`, `USER@HOST:DIR` or `SCHEME://...`, each with an optional `NAME=` before it. Text that
    /// names an existing directory is a `DIR`.
    fn from_str(text: &str) -> Result<Self, PullError> {
        let refused = |reason| PullError::Source { text: text.to_owned(), reason };
        if Path::new(text).is_dir() {
            return Ok(Self { name: None, place: RingPlace::Here(PathBuf::from(text)) });
        }
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains(['/', ':']) => (Some(name), rest),
            _ => (None, text),
        };
        if name.is_some_and(|name| !is_name(name)) {
            return Err(refused(
                "a name has letters, digits, '.', '-' and '_', and begins with none of the last three",
            ));
        }
        let place = match rest.split_once(':') {
            Some((scheme, folder)) if is_scheme(scheme) && folder.starts_with("//") => {
                RingPlace::Stored(rest.trim_end_matches('/').to_owned())
            }
            Some((host, directory)) if !host.contains('/') => {
                let (user, machine) = host.split_once('@').unwrap_or(("user", host));
                if !is_name(user) || !is_name(machine) {
                    return Err(refused(
                        "a host has letters, digits, '.', '-' and '_', and begins with none of the last three",
                    ));
                }
                // ssh passes it to a shell there.
                let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-+@%=,".contains(one);
                if directory.starts_with('-')
                    || directory.is_empty()
                    || !directory.chars().all(is_plain)
                {
                    return Err(refused(
                        "a directory on another host has letters, digits and '/._-+@%=,' and does not begin with '-'",
                    ));
                }
                RingPlace::There { host: host.to_owned(), directory: directory.to_owned() }
            }
            _ if rest.is_empty() => return Err(refused("it has no directory")),
            _ => RingPlace::Here(PathBuf::from(rest)),
        };
        Ok(Self { name: name.map(str::to_owned), place })
    }
}

/// Whether a text can name a host and a directory.
fn is_name(text: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    text.starts_with(|one: char| one.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// Whether a text can stand before `://`.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|one: char| one.is_ascii_alphabetic())
        && text.chars().all(|one| one.is_ascii_alphanumeric())
}

/// Turns an untrusted host name into a directory name.
#[must_use]
pub fn host_name(text: &str) -> String {
    let plain = |one: char| {
        if one.is_ascii_alphanumeric() || "._-".contains(one) { one } else { '-' }
    };
    let name: String = text.chars().take(64).map(plain).collect();
    let name = name.trim_start_matches(['.', '-', '_']);
    if name.is_empty() { "host".to_owned() } else { name.to_owned() }
}

impl PullFrom {
    /// Puts the source's part of a window into a directory. `look` is called with the bytes that have come, and returns
    /// whether to go on.
    pub(super) fn fetch(
        &self,
        window: TimeWindow,
        into: &Path,
        look: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Pulled, PullError> {
        let (own, received, said) = match &self.place {
            RingPlace::Here(directory) => {
                let segments = segments(directory, window)?;
                let host = segments.first().map(|one| one.trace.host.clone());
                let received = keep_segments::copy(&segments, into, look)?;
                (host.unwrap_or_default(), received, String::new())
            }
            RingPlace::There { host, directory } => {
                let machine = host.split_once('@').map_or(host.as_str(), |(_, machine)| machine);
                let (received, said) = fetch_by_ssh(host, directory, window, into, look)?;
                (machine.to_owned(), received, said)
            }
            RingPlace::Stored(url) => {
                let folder = url.rsplit('/').next().unwrap_or_default();
                let (received, said) = fetch_from_store(url, window, into, look)?;
                (folder.to_owned(), received, said)
            }
        };
        Ok(Pulled { name: self.name.clone().unwrap_or_else(|| host_name(&own)), received, said })
    }
}

/// Gets a window from a host by ssh. Also returns the last line that ssh printed.
fn fetch_by_ssh(
    host: &str,
    directory: &str,
    window: TimeWindow,
    into: &Path,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(ReceivedAmount, String), PullError> {
    let [from, to] = window.seconds();
    let words = ["window", "--from", &from, "--to", &to, directory];
    ssh::run(
        Ssh { host, options: &[] },
        &words,
        |out| receive(out, into, StreamLimits::default()),
        look,
    )
}

/// Gets a window by luc-fleet-store. Also returns the last line that it printed.
fn fetch_from_store(
    url: &str,
    window: TimeWindow,
    into: &Path,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(ReceivedAmount, String), PullError> {
    // A missing program fails to run, which the error says.
    let program = luc_host::installed_programs::beside(STORE);
    let mut command = Command::new(program.unwrap_or_else(|| STORE.into()));
    let [from, to] = window.seconds();
    command.args(["window", "--from", &from, "--to", &to, url]);
    let received =
        |out: command::CountingReader<'_, _>| receive(out, into, StreamLimits::default());
    command::run(command, INSTALL_STORE, url, received, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_before_a_colon() {
        let read = |text: &str| text.parse::<PullFrom>().map(|from| (from.name, from.place)).ok();
        let there = |host: &str, directory: &str| RingPlace::There {
            host: host.to_owned(),
            directory: directory.to_owned(),
        };
        let here = |path: &str| RingPlace::Here(PathBuf::from(path));
        assert_eq!(read("web:/ring"), Some((None, there("web", "/ring"))));
        assert_eq!(read("luc@web-1.a:r=1"), Some((None, there("luc@web-1.a", "r=1"))));
        assert_eq!(read("a=web:ring"), Some((Some("a".to_owned()), there("web", "ring"))));
        assert_eq!(read("a=mnt/b:c"), Some((Some("a".to_owned()), here("mnt/b:c"))));
        assert_eq!(read("./a:b"), Some((None, here("./a:b"))));
        let stored = |url: &str| RingPlace::Stored(url.to_owned());
        let url = "s3://traces/rings/web";
        assert_eq!(read(&format!("{url}/")), Some((None, stored(url))));
        assert_eq!(read(&format!("a={url}")), Some((Some("a".to_owned()), stored(url))));
    }

    #[test]
    fn neither_a_host_nor_a_directory_is_an_option_or_a_command() {
        for text in [
            "-oProxyCommand=id:/ring",
            "x=-oProxyCommand:/ring",
            "-v:/ring",
            "a@-v:/ring",
            "-a@web:/ring",
            ":/ring",
            "web:",
            "web:-r",
            "web:/ring;id",
            "web:$(id)",
            "web:/a b",
            "web:`id`",
            "web:/a\nb",
            "we b:/ring",
            "..=ring",
            "=ring",
            "",
        ] {
            let read = text.parse::<PullFrom>();
            assert!(matches!(read, Err(PullError::Source { .. })), "{text}: {read:?}");
        }
    }

    #[test]
    fn a_host_s_own_name_becomes_harmless() {
        assert_eq!(host_name("web-1.example"), "web-1.example");
        assert_eq!(host_name("../../etc"), "etc");
        assert_eq!(host_name("a/b c"), "a-b-c");
        assert_eq!(host_name(""), "host");
        assert_eq!(host_name(&"a".repeat(300)).len(), 64);
    }
}
