//! A program of the tests that goes on until its input ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::compiled_programs;

/// Program of a test that is ended when this is dropped.
pub(crate) struct RunningProgram {
    program: Child,
    output: BufReader<ChildStdout>,
    /// Folder that the program was compiled in.
    folder: Option<tempfile::TempDir>,
}

impl RunningProgram {
    /// Starts a program with `words`, below the command `under`.
    pub(crate) fn start(name: &str, words: &[&str], under: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let path = compiled_programs::compiled(name, folder.path());
        let mut running = Self::of(&[under, &[path.as_str()], words].concat());
        running.folder = Some(folder);
        running
    }

    pub(crate) fn of(words: &[&str]) -> Self {
        let mut program = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let output = BufReader::new(program.stdout.take().expect("piped"));
        Self { program, output, folder: None }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Has it go on.
    pub(crate) fn go_on(&mut self) {
        let input = self.program.stdin.as_mut().expect("piped");
        input.write_all(b"\n").expect("written");
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        let _ = self.program.wait();
    }
}
