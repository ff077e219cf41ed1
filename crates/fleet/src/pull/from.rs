//! Where a window is collected from: a directory here, or one on another host, by ssh.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::files::Received;
use super::stream::{Limits, StreamError, receive};
use super::{PullError, Pulled, keep};
use crate::window::{Window, segments};

/// How much is kept of what a command on another host says.
const SAID_BYTES: u64 = 4096;
/// How often it is looked whether to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A ring, and what its host is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullFrom {
    /// The name that the user gives.
    pub name: Option<String>,
    /// Where it is.
    pub place: Place,
}

/// Where a ring is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A directory here; it may be mounted from elsewhere.
    Here(PathBuf),
    /// On another host.
    There {
        /// HOST or USER@HOST, as ssh has it.
        host: String,
        /// The directory there.
        directory: String,
    },
}

impl fmt::Display for PullFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Here(directory) => directory.display().fmt(f),
            Place::There { host, directory } => write!(f, "{host}:{directory}"),
        }
    }
}

impl FromStr for PullFrom {
    type Err = PullError;

    /// `DIR`, `HOST:DIR` or `USER@HOST:DIR`, each with `NAME=` before it if wanted. What is a directory as it stands is one.
    fn from_str(text: &str) -> Result<Self, PullError> {
        let refused = |reason| PullError::Source {
            text: text.to_owned(),
            reason,
        };
        if Path::new(text).is_dir() {
            return Ok(Self {
                name: None,
                place: Place::Here(PathBuf::from(text)),
            });
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
            Some((host, directory)) if !host.contains('/') => {
                let (user, machine) = host.split_once('@').unwrap_or(("user", host));
                if !is_name(user) || !is_name(machine) {
                    return Err(refused(
                        "a host has letters, digits, '.', '-' and '_', and begins with none of the last three",
                    ));
                }
                // ssh hands it to a shell there.
                let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-+@%=,".contains(one);
                if directory.starts_with('-')
                    || directory.is_empty()
                    || !directory.chars().all(is_plain)
                {
                    return Err(refused(
                        "a directory on another host has letters, digits and '/._-+@%=,' and does not begin with '-'",
                    ));
                }
                Place::There {
                    host: host.to_owned(),
                    directory: directory.to_owned(),
                }
            }
            _ if rest.is_empty() => return Err(refused("it has no directory")),
            _ => Place::Here(PathBuf::from(rest)),
        };
        Ok(Self {
            name: name.map(str::to_owned),
            place,
        })
    }
}

/// Whether it can be the name of a host, and of a directory.
fn is_name(text: &str) -> bool {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    text.starts_with(|one: char| one.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// A host's name as a directory's: it is not trusted.
fn as_name(text: &str) -> String {
    let plain = |one: char| {
        if one.is_ascii_alphanumeric() || "._-".contains(one) {
            one
        } else {
            '-'
        }
    };
    let name: String = text.chars().take(64).map(plain).collect();
    let name = name.trim_start_matches(['.', '-', '_']);
    if name.is_empty() {
        "host".to_owned()
    } else {
        name.to_owned()
    }
}

impl PullFrom {
    /// Puts what it has of a window into a directory. `look` is told how many bytes have come, and says whether to go on.
    pub(super) fn fetch(
        &self,
        window: Window,
        into: &Path,
        look: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Pulled, PullError> {
        let (own, received, said) = match &self.place {
            Place::Here(directory) => {
                let segments = segments(directory, window)?;
                let host = segments.first().map(|one| one.trace.host.clone());
                let received = keep::copy(&segments, into, look)?;
                (host.unwrap_or_default(), received, String::new())
            }
            Place::There { host, directory } => {
                let machine = host
                    .split_once('@')
                    .map_or(host.as_str(), |(_, machine)| machine);
                let (received, said) = by_ssh(host, directory, window, into, look)?;
                (machine.to_owned(), received, said)
            }
        };
        Ok(Pulled {
            name: self.name.clone().unwrap_or_else(|| as_name(&own)),
            received,
            said,
        })
    }
}

/// Has the host send it; returns what ssh said last, too.
fn by_ssh(
    host: &str,
    directory: &str,
    window: Window,
    into: &Path,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(Received, String), PullError> {
    let remote = |reason: String| PullError::Remote {
        host: host.to_owned(),
        reason,
    };
    let [from, to] = [window.from, window.to].map(|moment| {
        format!(
            "{}.{:09}",
            moment.0 / 1_000_000_000,
            moment.0 % 1_000_000_000
        )
    });
    let mut child = Command::new("ssh")
        .args([
            host,
            "--",
            "luc-fleet",
            "window",
            "--from",
            &from,
            "--to",
            &to,
            directory,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| remote(format!("ssh cannot be run ({error}); install it")))?;
    let (Some(out), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(remote("ssh has no output".to_owned()));
    };
    let bytes = AtomicU64::new(0);
    let out = Counted { out, bytes: &bytes };
    let mut is_interrupted = false;
    let mut wait_for = |child: &mut Child, is_finished: &dyn Fn() -> bool| {
        while !is_finished() {
            if look(bytes.load(Ordering::Relaxed)).is_break() {
                is_interrupted = true;
                end(child);
            }
            thread::sleep(LOOK_INTERVAL);
        }
    };
    let (received, said) = thread::scope(|scope| {
        let said = scope.spawn(|| last_line(said));
        let received = scope.spawn(|| receive(out, into, Limits::default()));
        wait_for(&mut child, &|| received.is_finished());
        let received = joined(received);
        if received
            .as_ref()
            .is_err_and(|error| !matches!(error, StreamError::Nothing))
        {
            end(&mut child);
        }
        wait_for(&mut child, &|| said.is_finished());
        (received, joined(said))
    });
    let status = child.wait().map_err(|error| remote(error.to_string()))?;
    // Ctrl-C of a terminal ends ssh, too, maybe first.
    if is_interrupted || look(bytes.load(Ordering::Relaxed)).is_break() {
        return Err(PullError::Interrupted);
    }
    match received {
        // What the command says tells more than that nothing came.
        Ok(_) | Err(StreamError::Nothing) if !status.success() => {
            let said = if said.is_empty() {
                status.to_string()
            } else {
                said
            };
            Err(remote(said))
        }
        Ok(received) => Ok((received, said)),
        Err(reason) => Err(PullError::Stream {
            host: host.to_owned(),
            reason,
        }),
    }
}

/// Ends the command, if it has not ended.
fn end(child: &mut Child) {
    let _ = child.kill();
}

/// What a thread returns.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|reason| panic::resume_unwind(reason))
}

/// Counts what is read.
struct Counted<'a, R> {
    out: R,
    bytes: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.out.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The last line of what is said, made harmless. All of it is read, so that nobody waits.
fn last_line(mut said: impl Read) -> String {
    let mut text = Vec::new();
    let _ = said.by_ref().take(SAID_BYTES).read_to_end(&mut text);
    let _ = io::copy(&mut said, &mut io::sink());
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    luc_units::plain(line.unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_before_a_colon() {
        let read = |text: &str| {
            text.parse::<PullFrom>()
                .map(|from| (from.name, from.place))
                .ok()
        };
        let there = |host: &str, directory: &str| Place::There {
            host: host.to_owned(),
            directory: directory.to_owned(),
        };
        let here = |path: &str| Place::Here(PathBuf::from(path));
        assert_eq!(read("web:/ring"), Some((None, there("web", "/ring"))));
        assert_eq!(
            read("luc@web-1.a:r=1"),
            Some((None, there("luc@web-1.a", "r=1")))
        );
        assert_eq!(
            read("a=web:ring"),
            Some((Some("a".to_owned()), there("web", "ring")))
        );
        assert_eq!(
            read("a=mnt/b:c"),
            Some((Some("a".to_owned()), here("mnt/b:c")))
        );
        assert_eq!(read("./a:b"), Some((None, here("./a:b"))));
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
            assert!(
                matches!(read, Err(PullError::Source { .. })),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn a_host_s_own_name_becomes_harmless() {
        assert_eq!(as_name("web-1.example"), "web-1.example");
        assert_eq!(as_name("../../etc"), "etc");
        assert_eq!(as_name("a/b c"), "a-b-c");
        assert_eq!(as_name(""), "host");
        assert_eq!(as_name(&"a".repeat(300)).len(), 64);
    }

    #[test]
    fn only_the_last_line_is_repeated_and_harmless() {
        assert_eq!(
            last_line(&b"one\n\x1b[2Jtwo\n\n"[..]),
            luc_units::plain("\x1b[2Jtwo")
        );
        assert_eq!(last_line(&b""[..]), "");
    }
}
