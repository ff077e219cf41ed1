//! `luc top` in a terminal, and what that shows.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::common::{EmulatedTestDisk, LUC, TIMEOUT};

/// `luc top` in a terminal.
pub(crate) struct TopTerminal {
    child: Child,
    master: File,
    output: Receiver<Vec<u8>>,
    message: Vec<u8>,
    screen: Screen,
}

impl TopTerminal {
    pub(crate) fn open(
        bench: &EmulatedTestDisk,
        arguments: &[&str],
        columns: u16,
        rows: u16,
    ) -> Self {
        let (child, master) = start(bench, arguments, columns, rows);
        let (sender, output) = channel();
        let mut reader = master.try_clone().expect("copied");
        spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, master, output, message: Vec::new(), screen: Screen::new(columns, rows) }
    }

    /// Waits until the screen is as wanted, and returns what was found.
    pub(crate) fn wait<T>(&mut self, what: &str, found: impl Fn(&[String]) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.message.extend_from_slice(&bytes);
                self.screen.take(&bytes);
            }
            let lines = self.screen.lines();
            if let Some(found) = found(&lines) {
                return found;
            }
            assert!(begin.elapsed() < TIMEOUT, "{what} does not come:\n{}", lines.join("\n"));
        }
    }

    pub(crate) fn press(&self, keys: &str) {
        rustix::io::write(&self.master, keys.as_bytes()).expect("typed");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen = Screen::new(columns, rows);
        resize(&self.master, columns, rows);
    }

    /// Whether it has stopped, as by Ctrl-Z.
    pub(crate) fn is_stopped(&self) -> bool {
        let state = format!("/proc/{}/stat", self.child.id());
        let state = fs::read_to_string(state).expect("it lives");
        state.contains(") T ")
    }

    /// Whether lines are edited and echoed, as when it was opened.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// The end: the exit status, and whether the terminal was given back.
    pub(crate) fn end(mut self) -> (Option<i32>, bool) {
        let status = self.child.wait().expect("it ends");
        let as_it_was = self.is_as_it_was();
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.message.extend_from_slice(&bytes);
        }
        let message = String::from_utf8_lossy(&self.message);
        let last = |text: &str| message.rfind(text);
        let left =
            last("\x1b[?1049l") > last("\x1b[?1049h") && last("\x1b[?25h") > last("\x1b[?25l");
        (status.code(), as_it_was && left)
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `luc top` in a new terminal, whose other end is returned.
pub(crate) fn start(
    bench: &EmulatedTestDisk,
    arguments: &[&str],
    columns: u16,
    rows: u16,
) -> (Child, File) {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    let slave = File::from(slave.expect("opened"));
    let master = File::from(master);
    resize(&master, columns, rows);
    let copy = || Stdio::from(slave.try_clone().expect("copied"));
    // A terminal tells only its own session that its size has changed.
    let mut command = Command::new("setsid");
    bench.set_environment(&mut command);
    let child = command
        .args(["--ctty", LUC, "top"])
        .args(arguments)
        .env("TERM", "xterm-256color")
        .stdin(copy())
        .stdout(copy())
        .stderr(copy())
        .spawn()
        .expect("setsid of util-linux runs");
    (child, master)
}

fn resize(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("resized");
}

/// As much of a terminal as is needed to read what it shows.
struct Screen {
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    rest: String,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            cells: vec![vec![' '; columns.into()]; rows.into()],
            row: 0,
            column: 0,
            rest: String::new(),
        }
    }

    fn lines(&self) -> Vec<String> {
        self.cells.iter().map(|line| line.iter().collect()).collect()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.push_str(&String::from_utf8_lossy(bytes));
        let text = std::mem::take(&mut self.rest);
        let mut left = text.as_str();
        while let Some(first) = left.chars().next() {
            if first != '\x1b' {
                self.put(first);
                left = &left[first.len_utf8()..];
                continue;
            }
            let end =
                left.char_indices().skip(2).find(|(_, character)| ('@'..='~').contains(character));
            match end {
                Some((at, action)) => {
                    self.act(&left[2..at], action);
                    left = &left[at + 1..];
                }
                None => {
                    self.rest = left.to_owned();
                    return;
                }
            }
        }
    }

    fn put(&mut self, character: char) {
        if character.is_control() {
            return;
        }
        let place = self.cells.get_mut(self.row);
        if let Some(cell) = place.and_then(|line| line.get_mut(self.column)) {
            *cell = character;
        }
        self.column += 1;
    }

    fn act(&mut self, numbers: &str, action: char) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
        match action {
            'H' => {
                self.row = numbers.next().unwrap_or(1) - 1;
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            'J' => self.cells.iter_mut().for_each(|line| line.fill(' ')),
            _ => {}
        }
    }
}
