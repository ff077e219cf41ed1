//! Programs of the system that work in a network namespace.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// The namespace of the calling thread.
    Own,
    /// The namespace of a process.
    Of(u32),
}

/// An error of a program of the system.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("cannot run `{command}`: {reason}; iproute2 has ip and tc, and util-linux has nsenter")]
    Run {
        /// The command line and its input.
        command: String,
        reason: io::Error,
    },
    #[error("`{command}` failed ({how}): {said}")]
    Failed {
        /// The command line and its input.
        command: String,
        how: String,
        said: String,
    },
}

/// Runs a program with this text as its standard input, and waits for its end.
pub(crate) fn feed(at: Namespace, words: &[&str], text: &str) -> Result<(), NetworkError> {
    let net;
    let words = match at {
        Namespace::Own => words.to_vec(),
        Namespace::Of(process) => {
            net = format!("--net=/proc/{process}/ns/net");
            [&["nsenter", &net], words].concat()
        }
    };
    let command = || format!("{} {}", words.join(" "), text).trim().to_owned();
    let failed = |reason| NetworkError::Run { command: command(), reason };
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let written = match child.stdin.take() {
        Some(mut input) => input.write_all(text.as_bytes()),
        None => Ok(()),
    };
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return written.map_err(failed);
    }
    Err(NetworkError::Failed {
        command: command(),
        how: output.status.to_string(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let nobody = Namespace::Of(u32::MAX);
        let failed = feed(nobody, &["ip", "-batch", "-"], "link set lo up\n");
        let said = failed.expect_err("no such process").to_string();
        assert!(said.starts_with(
            "`nsenter --net=/proc/4294967295/ns/net ip -batch - link set lo up` failed"
        ));
        assert!(said.contains("No such file or directory"), "{said}");
        let missing = feed(Namespace::Own, &["luc-no-such-program"], "");
        let said = missing.expect_err("no such program").to_string();
        assert!(said.contains("cannot run `luc-no-such-program`: "), "{said}");
    }
}
