//! A cluster answers as one process does, byte for byte, also when an executor is killed meanwhile.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use luc_testkit::fleet::PlantedFleet;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Asked, program, stdout};

const EXECUTORS: usize = 4;
/// A query is asked anew whose executor is killed, which the scheduler may only see after 10 s on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Queries whose answers have one order, and no sum of floating-point numbers.
const QUERIES: [&str; 9] = [
    "select host, count(*) as n, sum(on_ns - off_ns) as ns, min(on_ns), max(on_ns) from wait group by host order by host",
    "select host, cause, thread, count(*) as n, sum(on_ns - woken_ns) as ns from wait
     group by host, cause, thread order by ns desc, host, cause, thread limit 50",
    "select count(*), sum(bytes), count(distinct connection) from message where direction = 'sent' and host like 'db-%'",
    "select host, at_ns, thread, connection, direction, bytes from message
     order by bytes desc, at_ns, host, thread, connection, direction limit 200",
    "select e.from_host, e.to_host, count(*) as n, sum(e.bytes) as bytes, sum(e.to_ns - r.start_ns) as ns
     from fleet.edge e join fleet.request r on e.to_host = r.host and e.to_connection = r.connection and e.to_ns = r.start_ns
     where not r.is_sent group by 1, 2 order by 1, 2",
    "select a.id, count(*) as n, sum(b.time_ns) as ns from fleet.request a join fleet.request b
     on a.root = b.root and b.pre between a.pre and a.last where a.number <= 40 group by a.id order by a.id",
    "select global_ns(host, at_ns) as ns, host, thread, bytes from message order by ns, host, thread, bytes limit 300",
    "select part, cause, host, sum(time_ns) as ns, count(*) as n,
       rank() over (partition by host order by sum(time_ns) desc, part, cause) as place
     from fleet.path group by part, cause, host order by host, place, part, cause",
    "select a.id, a.host, a.pre, b.time_ns, b.requests from subtree(1) a join blame() b on a.host = b.host
     order by a.pre, b.time_ns, b.name, b.part, b.cause",
];

/// A port that nobody listens on, and the one after it.
fn two_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = first.local_addr().expect("an address").port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

fn bound_to(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// A server that listens on so many ports, of which the first is told. One whose ports were taken by another program in
/// the meantime ends, and is started with others.
fn listening(ports: u16, start: impl Fn(u16) -> Child) -> (Child, u16) {
    let begin = Instant::now();
    loop {
        let port = two_ports();
        let mut child = start(port);
        let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        while child.try_wait().expect("a server").is_none() {
            if (port..port + ports).all(listens) {
                return (child, port);
            }
            if begin.elapsed() > Duration::from_secs(60) {
                let _ = child.kill();
                let _ = child.wait();
                panic!("nobody listens on port {port}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "a server ends as it starts");
    }
}

/// Where an executor keeps rows for others.
fn of_executor(asked: &Asked, number: usize) -> PathBuf {
    asked.folder().join(format!("executor-{number}"))
}

/// How many bytes of rows are in files in a directory, and further down.
fn rows_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let sizes = paths.map(|path| match path.is_dir() {
        true => rows_bytes(&path),
        false if path.ends_with("lock") => 0,
        // One that was removed meanwhile has none.
        false => path.metadata().map_or(0, |file| file.len()),
    });
    sizes.sum()
}

/// Servers that end with this.
struct Cluster {
    url: String,
    scheduler: Child,
    executors: Vec<Child>,
}

impl Cluster {
    fn start(asked: &Asked) -> Self {
        let serve = |words: &[&str]| {
            // Servers end with the test, whatever ends that.
            Command::new("setpriv")
                .args(["--pdeathsig", "TERM"])
                .arg(program(&asked.temporary()).get_program())
                .arg("serve")
                .args(words)
                .env("TMPDIR", asked.temporary())
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()
                .expect("started")
        };
        let (scheduler, port) =
            listening(1, |port| serve(&["scheduler", "--bind", &bound_to(port)]));
        let url = format!("df://127.0.0.1:{port}");
        let executor = |number: usize| {
            let directory = of_executor(asked, number);
            std::fs::create_dir(&directory).expect("made");
            let directory = directory.to_str().expect("UTF-8");
            let words = ["executor", "--scheduler", &url, "--tasks", "1"];
            let start = |port| {
                let place = ["--bind", &bound_to(port), "--directory", directory];
                serve(&[&words[..], &place[..]].concat())
            };
            listening(2, start).0
        };
        let executors = (0..EXECUTORS).map(executor).collect();
        Self { url, scheduler, executors }
    }

    fn answer(&self, asked: &Asked, query: &str) -> String {
        let mut command = asked.command(&["--csv", "--cluster", &self.url, query]);
        stdout(&command.output().expect("run"), query)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // One that has ended already is not there.
            if let Some(id) = id {
                let _ = kill_process(id, Signal::TERM);
            }
            let _ = child.wait();
        }
    }
}

/// Kills executors in the middle of a query, and sees that the answer is the same.
struct Killing {
    query: &'static str,
    answer: String,
    asking: Child,
    cluster: Cluster,
    /// Its files are removed when the servers have ended.
    asked: Asked,
}

impl Killing {
    fn start(query: &'static str) -> Self {
        let asked = Asked::about(PlantedFleet { back_ends: 3, requests: 200, waits: 1_500 });
        let one = asked.command(&["--csv", query]).output().expect("run");
        let answer = stdout(&one, query);
        let cluster = Cluster::start(&asked);
        let asking = asked
            .command(&["--csv", "--cluster", &cluster.url, query])
            .stdout(File::create(asked.folder().join("out")).expect("made"))
            .stderr(File::create(asked.folder().join("err")).expect("made"))
            .spawn()
            .expect("run");
        Self { query, answer, asking, cluster, asked }
    }

    fn until(&mut self, mut found: impl FnMut(&Asked) -> bool) {
        while !found(&self.asked) {
            let ended = self.asking.try_wait().expect("asked");
            assert!(ended.is_none(), "it ended too soon: {}", self.query);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn until_one_has_rows(&mut self) {
        let bytes = |asked: &Asked, number| rows_bytes(&of_executor(asked, number));
        self.until(|asked| (0..EXECUTORS).any(|number| bytes(asked, number) > 0));
    }

    /// Kills those executors that have most rows, which are lost with them.
    fn kill(&mut self, executors: usize) {
        let bytes = |number: &usize| rows_bytes(&of_executor(&self.asked, *number));
        let mut victims: Vec<usize> = (0..EXECUTORS).collect();
        victims.sort_by_cached_key(|number| std::cmp::Reverse(bytes(number)));
        for victim in &victims[..executors] {
            self.cluster.executors[*victim].kill().expect("killed");
            self.cluster.executors[*victim].wait().expect("ended");
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.asking.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("an id"), signal).expect("sent");
    }

    /// Sees that the answer is right. How often the query was asked anew.
    fn end(mut self) -> usize {
        let begin = Instant::now();
        let ended = loop {
            if let Some(ended) = self.asking.try_wait().expect("asked") {
                break ended;
            }
            assert!(begin.elapsed() < PATIENCE, "no answer: {}", self.query);
            std::thread::sleep(Duration::from_millis(10));
        };
        let text = |name: &str| std::fs::read_to_string(self.asked.folder().join(name));
        let said = text("err").expect("read");
        assert!(ended.success(), "{}: {ended}: {said}", self.query);
        let is = text("out").expect("read");
        // It may have a million lines.
        let [rows, should] = [&is, &self.answer].map(|text| text.lines().count());
        assert!(is == self.answer, "{}: {rows} lines for {should}", self.query);
        self.asked.assert_nothing_is_left();
        said.matches("asked anew").count()
    }
}

impl Drop for Killing {
    fn drop(&mut self) {
        // It may have ended; where a test fails it may stand still.
        let _ = self.asking.kill();
        let _ = self.asking.wait();
    }
}

#[test]
fn a_cluster_answers_as_one_process_does() {
    let asked = Asked::about(PlantedFleet { back_ends: 3, requests: 400, waits: 3_000 });
    let cluster = Cluster::start(&asked);
    for query in QUERIES {
        let mut command = asked.command(&["--csv", query]);
        let one = stdout(&command.output().expect("run"), query);
        assert!(one.lines().count() > 1, "{query}: {one}");
        assert_eq!(cluster.answer(&asked, query), one, "{query}");
    }
    let words = ["--csv", "--cluster", &cluster.url, "select nothing from wait"];
    let wrong = asked.command(&words).output().expect("run");
    assert_eq!(wrong.status.code(), Some(2));
    drop(cluster);
    asked.assert_nothing_is_left();
}

#[test]
fn an_executor_that_is_killed_in_the_middle_of_its_part_changes_no_answer() {
    // All pairs of a host's waits: long enough to be in the middle of it.
    let query = "select a.host, count(*) as n, sum((a.on_ns - b.off_ns) % 1000) as ns
        from wait a join wait b on a.host = b.host and a.on_ns > b.off_ns group by a.host order by a.host";
    let mut killing = Killing::start(query);
    killing.until_one_has_rows();
    killing.kill(1);
    killing.end();
}

#[test]
fn an_executor_that_is_killed_after_its_part_has_ended_changes_no_answer() {
    // The parts that read the files have ended when the one that pairs their rows has begun, which takes longest.
    let query = "select a.host, count(*) as n from (select host, on_ns % 997 as k from wait group by 1, 2) a
        join (select on_ns % 997 as k from wait group by 1) b on a.k % 2 = b.k % 2 and a.k * 7 % 11 <> b.k * 5 % 13
        group by a.host order by a.host";
    let mut killing = Killing::start(query);
    killing.until_one_has_rows();
    std::thread::sleep(Duration::from_secs(1));
    killing.kill(1);
    killing.end();
}

#[test]
fn executors_that_are_killed_while_their_rows_are_brought_change_no_answer() {
    let query = "select a.host, a.on_ns, b.off_ns, a.thread, b.thread as other
        from wait a join wait b on a.host = b.host and a.on_ns > b.off_ns where (a.on_ns + b.on_ns) % 3 = 0
        order by 1, 2, 3, 4, 5";
    let mut killing = Killing::start(query);
    killing.until(|asked| answer_bytes(&asked.temporary()) > 0);
    // It brings no more until executors are gone.
    killing.signal(Signal::STOP);
    killing.kill(EXECUTORS - 1);
    killing.signal(Signal::CONT);
    assert!(killing.end() > 0);
}

/// The size of an answer that is not whole, in a directory of the program in `temporary`.
fn answer_bytes(temporary: &Path) -> u64 {
    let directories = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    let answers = directories.map(|entry| entry.path().join("answer"));
    let sizes = answers.filter_map(|answer| answer.metadata().ok());
    sizes.map(|answer| answer.len()).sum()
}
