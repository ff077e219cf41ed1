//! Temporary state of the machine that a test needs and must not leave behind.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Temporary state that is undone when this value is dropped or this process ends in any way. A shell in a process
/// group of its own undoes it.
#[derive(Debug)]
pub struct Meanwhile {
    shell: Child,
    /// The line that the shell printed.
    pub message: String,
}

impl Meanwhile {
    /// Runs the shell's words `begin`, which print one line, and in the end the words `end`. Both have `arguments` as
    /// `$1` and on.
    ///
    /// # Panics
    /// Where there is no shell.
    pub fn new(begin: &str, end: &str, arguments: &[&str]) -> Self {
        Self::under(&[], begin, end, arguments)
    }

    /// Makes a loop device on a file. Its path is the message. `options` are those of losetup.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn loop_device(file: &Path, options: &str) -> Self {
        // While the shell has it open, to detach it only says that it goes with its last user.
        let begin = format!(
            "device=$(\"$2\" --find --show {options} \"$1\") && exec 3<\"$device\" && \
             \"$2\" --detach \"$device\" && echo \"$device\""
        );
        // By its path: the shell of a guest has one of its own, which cannot do this.
        let losetup = program("losetup").expect("losetup (util-linux)");
        let arguments = [file, &losetup].map(|path| path.display().to_string());
        let made = Self::new(&begin, "true", &[&arguments[0], &arguments[1]]);
        assert!(!made.message.is_empty(), "no loop device on {file:?}");
        made
    }

    /// As [`new`](Self::new), but the program `wrapper` runs the shell.
    ///
    /// # Panics
    /// Where the wrapper cannot be started.
    pub fn under(wrapper: &[&str], begin: &str, end: &str, arguments: &[&str]) -> Self {
        let script = format!("{begin} || exit 1; read -r _; {end}");
        let words = [wrapper, &["sh", "-c", &script, "sh"], arguments].concat();
        let mut shell = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a shell starts");
        let mut message = String::new();
        let pipe = shell.stdout.as_mut().expect("a pipe");
        BufReader::new(pipe).read_line(&mut message).expect("read");
        let message = message.trim_end().to_owned();
        Self { shell, message }
    }
}

/// Finds a program in `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file())
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        // The end of its input is the shell's sign.
        drop(self.shell.stdin.take());
        let ended = self.shell.wait();
        let is_fine = ended.is_ok_and(|status| status.success());
        assert!(is_fine || self.message.is_empty() || std::thread::panicking());
    }
}
