//! A cluster answers as one process does, byte for byte, also when an executor is killed meanwhile.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use luc_testkit::fleet::PlantedFleet;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Asked, program, stdout};

const EXECUTORS: usize = 4;

/// Queries whose answers have one order, and no sum of floating-point numbers.
const QUERIES: [&str; 8] = [
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
];

/// A port that nobody listens on, and the one after it. Another program may take them before they are used; who starts
/// a server on them sees whether it listens.
fn two_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = first.local_addr().expect("an address").port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// Where an executor keeps rows for others.
fn of_executor(asked: &Asked, number: usize) -> PathBuf {
    asked.folder().join(format!("executor-{number}"))
}

/// Whether a file with rows is in a directory, or further down.
fn has_rows(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| match path.is_dir() {
        true => has_rows(&path),
        false => path.file_name().is_some_and(|name| name != "lock"),
    })
}

/// Servers that end with this.
struct Cluster {
    url: String,
    scheduler: Child,
    executors: Vec<Child>,
}

impl Cluster {
    fn start(asked: &Asked) -> Self {
        let port = two_ports();
        let url = format!("df://127.0.0.1:{port}");
        let serve = |words: &[&str]| {
            program(&asked.temporary())
                .arg("serve")
                .args(words)
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()
                .expect("started")
        };
        let scheduler = serve(&["scheduler", "--bind", &format!("127.0.0.1:{port}")]);
        listens(port);
        let executor = |number: usize| {
            let port = two_ports();
            let bind = format!("127.0.0.1:{port}");
            let directory = of_executor(asked, number);
            std::fs::create_dir(&directory).expect("made");
            let directory = directory.to_str().expect("UTF-8");
            let place = ["--bind", &bind, "--directory", directory];
            let words = ["executor", "--scheduler", &url, "--tasks", "1"];
            let child = serve(&[&words[..], &place[..]].concat());
            listens(port);
            listens(port + 1);
            child
        };
        let executors = (0..EXECUTORS).map(executor).collect();
        Self {
            url,
            scheduler,
            executors,
        }
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

fn listens(port: u16) {
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "port {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_cluster_answers_as_one_process_does() {
    let asked = Asked::about(PlantedFleet {
        back_ends: 3,
        requests: 400,
        waits: 3_000,
    });
    let cluster = Cluster::start(&asked);
    for query in QUERIES {
        let mut command = asked.command(&["--csv", query]);
        let one = stdout(&command.output().expect("run"), query);
        assert!(one.lines().count() > 1, "{query}: {one}");
        assert_eq!(cluster.answer(&asked, query), one, "{query}");
    }
    let words = [
        "--csv",
        "--cluster",
        &cluster.url,
        "select nothing from wait",
    ];
    let wrong = asked.command(&words).output().expect("run");
    assert_eq!(wrong.status.code(), Some(2));
    drop(cluster);
    asked.assert_nothing_is_left();
}

#[test]
fn a_killed_executor_changes_no_answer() {
    let asked = Asked::about(PlantedFleet {
        back_ends: 3,
        requests: 200,
        waits: 1_500,
    });
    // All pairs of a host's waits: long enough to be in the middle of it.
    let query = "select a.host, count(*) as n, sum((a.on_ns - b.off_ns) % 1000) as ns
        from wait a join wait b on a.host = b.host and a.on_ns > b.off_ns group by a.host order by a.host";
    let mut command = asked.command(&["--csv", query]);
    let one = stdout(&command.output().expect("run"), query);
    let mut cluster = Cluster::start(&asked);
    let mut asking = asked
        .command(&["--csv", "--cluster", &cluster.url, query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    // What an executor has written for others is lost with it.
    let victim = loop {
        assert!(
            asking.try_wait().expect("asked").is_none(),
            "it ended too soon"
        );
        let with_rows = (0..EXECUTORS).find(|&number| has_rows(&of_executor(&asked, number)));
        if let Some(number) = with_rows {
            break number;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    cluster.executors[victim].kill().expect("killed");
    cluster.executors[victim].wait().expect("ended");
    let out = asking.wait_with_output().expect("ended");
    assert_eq!(stdout(&out, query), one);
}
