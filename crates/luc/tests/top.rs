//! `luc top` end to end, in a terminal: what it shows of known work on an emulated disk, how it bears resizes and
//! signals, and that it gives the terminal back. Needs root, FUSE, loop devices and BTF; skipped, with the reason, where
//! they are missing.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// So long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tests take turns: each wants the machine's processors for itself.
static TURN: Mutex<()> = Mutex::new(());

/// An emulated disk with ext4; gone when dropped.
struct Bench {
    root: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, and a line that says why, where this cannot be had.
    fn new(test: &str) -> Option<Self> {
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if let Err(error) = File::options().read(true).write(true).open(device) {
                println!("skipped: {device}: {error}");
                return None;
            }
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let root = std::env::temp_dir().join(format!("luc-top-{test}-{}", std::process::id()));
        fs::create_dir_all(root.join("mnt")).expect("made");
        let bench = Self { root, _turn: turn };
        let probe = bench.luc(&["record", "-q", "--out", &bench.path("probe"), "--", "true"]);
        if !probe.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&probe.stderr).trim());
            return None;
        }
        let mount = bench.path("mnt");
        let made = bench.luc(&[
            "disk", "create", "top", "--flush", "6ms", "--write", "20us", "--size", "256M",
            "--mkfs", "ext4", "--mount", &mount,
        ]);
        assert!(made.status.success(), "{made:?}");
        Some(bench)
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
        command.args(arguments).env("LUC_RUN_DIR", &self.root);
        command
    }

    fn luc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("luc runs")
    }

    /// Four threads that create and fsync files, until dropped.
    fn load(&self) -> Load {
        let arguments = [
            "bench",
            "metarates",
            "--dir",
            &self.path("mnt"),
            "--threads",
            "4",
            "--seconds",
            "600",
            "--file-size",
            "1k",
        ];
        let child = self
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Load(child.expect("luc runs"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.luc(&["disk", "remove", "top"]);
        let _ = fs::remove_dir_all(&self.root);
    }
}

struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        // SIGTERM, so that it removes its files.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// `luc top` in a terminal.
struct Terminal {
    child: Child,
    master: File,
    output: Receiver<Vec<u8>>,
    said: Vec<u8>,
    screen: Screen,
}

impl Terminal {
    fn open(bench: &Bench, arguments: &[&str], columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        let slave = File::from(slave.expect("opened"));
        let master = File::from(master);
        resize(&master, columns, rows);
        let copy = || Stdio::from(slave.try_clone().expect("copied"));
        // A terminal tells only its own session that its size has changed.
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_luc"), "top"])
            .args(arguments)
            .env("LUC_RUN_DIR", &bench.root)
            .env("TERM", "xterm-256color")
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("setsid of util-linux runs");
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
        Self {
            child,
            master,
            output,
            said: Vec::new(),
            screen: Screen::new(columns, rows),
        }
    }

    /// Waits until the screen is as wanted, and returns what was found.
    fn wait<T>(&mut self, what: &str, found: impl Fn(&[String]) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.said.extend_from_slice(&bytes);
                self.screen.take(&bytes);
            }
            let lines = self.screen.lines();
            if let Some(found) = found(&lines) {
                return found;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{what} does not come:\n{}",
                lines.join("\n")
            );
        }
    }

    fn press(&self, keys: &str) {
        rustix::io::write(&self.master, keys.as_bytes()).expect("typed");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.screen = Screen::new(columns, rows);
        resize(&self.master, columns, rows);
    }

    /// Whether lines are edited and echoed, as when it was opened.
    fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// The end: the exit status, and whether the terminal was given back.
    fn end(mut self) -> (Option<i32>, bool) {
        let status = self.child.wait().expect("it ends");
        let as_it_was = self.is_as_it_was();
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.said.extend_from_slice(&bytes);
        }
        let said = String::from_utf8_lossy(&self.said);
        let last = |text: &str| said.rfind(text);
        let left =
            last("\x1b[?1049l") > last("\x1b[?1049h") && last("\x1b[?25h") > last("\x1b[?25l");
        (status.code(), as_it_was && left)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
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
        self.cells
            .iter()
            .map(|line| line.iter().collect())
            .collect()
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
            let end = left
                .char_indices()
                .skip(2)
                .find(|(_, character)| ('@'..='~').contains(character));
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
        let mut numbers = numbers
            .split(';')
            .map(|number| number.parse::<usize>().unwrap_or(1));
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

/// Commits per second of the file system whose line begins so, if there are any.
fn commits_per_s(lines: &[String], mount: &str) -> Option<f64> {
    let lines = lines.iter().filter(|line| line.starts_with(mount));
    let rate = |line: &String| {
        let mut words = line.split_whitespace().skip(1);
        words.find_map(|word| word.parse::<f64>().ok())
    };
    lines.filter_map(rate).find(|rate| *rate > 0.0)
}

#[test]
fn it_shows_commits_bears_resizes_and_stops_and_gives_the_terminal_back() {
    let Some(bench) = Bench::new("view") else {
        return;
    };
    let mount = bench.path("mnt");
    let _load = bench.load();
    let mut terminal = Terminal::open(&bench, &["--delay", "500ms"], 120, 30);
    let rate = terminal.wait("a rate of commits", |lines| commits_per_s(lines, &mount));
    assert!(rate < 1_000.0, "a flush takes 6 ms: {rate}");
    terminal.wait("the keys", |lines| {
        lines[29].contains("F1Help").then_some(())
    });
    terminal.wait("the caller", |lines| {
        let line = lines
            .iter()
            .find(|line| line.trim_end().ends_with(" luc"))?;
        line.contains('%').then_some(())
    });

    terminal.resize(20, 5);
    terminal.wait("a tiny view", |lines| {
        lines[4].contains("F1Help").then_some(())
    });
    terminal.resize(90, 40);
    terminal.wait("a larger view", |lines| {
        commits_per_s(lines, &mount[..16])?;
        lines[39].contains("F1Help").then_some(())
    });

    terminal.press("?");
    terminal.wait("the help", |lines| {
        lines.concat().contains("any other key").then_some(())
    });
    terminal.press("x");

    terminal.signal(Signal::TSTP);
    let state = format!("/proc/{}/stat", terminal.child.id());
    let begin = Instant::now();
    while !fs::read_to_string(&state)
        .expect("it lives")
        .contains(") T ")
    {
        assert!(begin.elapsed() < PATIENCE, "it does not stop");
        sleep(Duration::from_millis(20));
    }
    assert!(
        terminal.is_as_it_was(),
        "stopped, it has given the terminal back"
    );
    terminal.resize(100, 30);
    terminal.signal(Signal::CONT);
    terminal.wait("the view after the stop", |lines| {
        commits_per_s(lines, &mount[..16])
    });
    assert!(!terminal.is_as_it_was());

    terminal.press("q");
    assert_eq!(terminal.end(), (Some(0), true));

    let mut terminal = Terminal::open(&bench, &[], 80, 24);
    terminal.wait("the view", |lines| {
        lines[0].contains("luc top").then_some(())
    });
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end(), (Some(0), true));
}

#[test]
fn lines_and_json_are_for_scripts() {
    let Some(bench) = Bench::new("batch") else {
        return;
    };
    let mount = bench.path("mnt");
    let _load = bench.load();
    let output = bench.luc(&[
        "top", "--batch", "--json", "--count", "2", "--delay", "1s", "--device", &mount,
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let found = line["file_systems"].as_array().expect("a list");
        let found = found
            .iter()
            .find(|found| found["mount_point"] == mount.as_str())
            .expect("the mounted file system");
        let figure = |name: &str| found[name].as_f64().unwrap_or(0.0);
        assert!(figure("commits_per_s") > 0.0, "{found}");
        // Each commit takes a flush, and serves as many as wait.
        assert!(figure("syncs_per_commit") > 1.0, "{found}");
        assert!(figure("syncs_per_s") > figure("commits_per_s"), "{found}");
        assert!(figure("commit_ns") > 6e6, "{found}");
        let processes = line["processes"].as_array().expect("a list");
        let caller = processes.iter().find(|process| process["comm"] == "luc");
        let lost_ns = caller.expect("the caller")["lost_ns_per_s"].as_f64();
        // Four threads cannot lose more than four seconds a second.
        assert!((1e9..4.4e9).contains(&lost_ns.unwrap_or(0.0)), "{line}");
        assert_eq!(line["machine"]["lost"], 0);
    }
    let output = bench.luc(&["top", "--once", "--delay", "500ms"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(commits_per_s(&lines, &mount).is_some(), "{text}");
}

#[test]
fn a_trace_recorded_as_summary_is_explained() {
    let Some(bench) = Bench::new("summary") else {
        return;
    };
    let (mount, trace) = (bench.path("mnt"), bench.path("trace"));
    let load = bench.load();
    let recorded = bench.luc(&[
        "record",
        "-q",
        "--summary",
        "--duration",
        "3s",
        "--out",
        &trace,
    ]);
    assert!(recorded.status.success(), "{recorded:?}");
    drop(load);
    let output = bench.luc(&["explain", "--json", &trace]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["trace"]["mode"], "summary");
    let found = &report["file_systems"][0];
    assert_eq!(found["mount_point"], mount.as_str());
    let mean_ns = |of: &serde_json::Value| of["mean_ns"].as_u64().unwrap_or(0);
    let commit_ns = mean_ns(&found["commits"]["full"]);
    assert!(commit_ns > 6_000_000, "{found}");
    assert!(mean_ns(&found["syncs"]["latency"]) > commit_ns, "{found}");
    let findings = report["findings"].as_array().expect("a list");
    let is_one = |kind: &str| findings.iter().any(|finding| finding["kind"] == kind);
    assert!(
        is_one("synchronization_bound") && is_one("device_bound"),
        "{findings:?}"
    );
}

#[test]
fn what_cannot_be_shown_is_said_in_one_line() {
    let said = |output: Output| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    let luc = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_luc"))
            .args(arguments)
            .output();
        said(output.expect("luc runs"))
    };
    assert!(luc(&["top"]).contains("--batch"));
    assert!(luc(&["top", "--json"]).contains("--batch"));
    assert!(luc(&["top", "--once", "--delay", "1ns"]).contains("250ms"));
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let capable = status
        .lines()
        .any(|line| line.starts_with("CapEff:") && !line.ends_with("0000000000000000"));
    let mut command = Command::new("setpriv");
    if capable {
        command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]);
    }
    let output = command
        .args([env!("CARGO_BIN_EXE_luc"), "top", "--once"])
        .output();
    assert!(said(output.expect("setpriv runs")).contains("needs root"));
}
