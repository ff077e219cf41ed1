//! Requests to a real PostgreSQL over its unix socket. Each statement is a request at the server's process. A
//! statement that waits for a lock is put to the session that has it. Skipped, with the reason, where PostgreSQL is
//! not installed.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{fleet, has_fleet, json, number};
use crate::common::fleet_recording::FleetRecording;
use crate::common::{is_root, stderr};

/// Statements of the session whose requests are counted.
const STATEMENTS: usize = 60;
/// The statements that wait for the other session's lock.
const LOCKED: usize = 3;
/// Shortest time that each of them waits.
const HELD: Duration = Duration::from_millis(200);

/// A server with a directory of its own, stopped when dropped.
struct Server {
    programs: PathBuf,
    folder: TempDir,
    user: (u32, u32),
}

impl Server {
    /// `None`, and a line that says why, where there is no PostgreSQL.
    fn new() -> Option<Self> {
        let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let mut versions: Vec<PathBuf> = installed
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .filter(|programs| programs.join("initdb").exists())
            .collect();
        versions.sort();
        let user = user("postgres");
        let (Some(programs), Some(user)) = (versions.pop(), user) else {
            luc_testkit::skipped!("PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a directory");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
        let own = folder.path().join("own");
        fs::create_dir(&own).expect("made");
        chown(&own, Some(user.0), Some(user.1)).expect("given");
        let server = Self { programs, folder, user };
        let data = server.own().join("data");
        let data = data.to_str().expect("text");
        server.run("initdb", &["-D", data, "-A", "trust", "-U", "postgres", "-N"]);
        let own = server.own();
        let options = format!("-k {} -c listen_addresses='' -F", own.display());
        let log = own.join("log");
        let log = log.to_str().expect("text");
        server.run("pg_ctl", &["-D", data, "-w", "-l", log, "-o", &options, "start"]);
        Some(server)
    }

    /// Its data and its socket, in a directory of its user.
    fn own(&self) -> PathBuf {
        self.folder.path().join("own")
    }

    /// Runs one of its programs as its user.
    fn run(&self, program: &str, words: &[&str]) {
        let output = Command::new("setpriv")
            .args([
                &format!("--reuid={}", self.user.0),
                &format!("--regid={}", self.user.1),
                "--clear-groups",
            ])
            .arg(self.programs.join(program))
            .args(words)
            .current_dir(self.own())
            .env_remove("PGPORT")
            .stdin(Stdio::null())
            .output()
            .expect("setpriv runs");
        assert!(output.status.success(), "{program}: {}", stderr(&output));
    }

    fn session(&self) -> Session {
        let mut psql = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"])
            .arg(self.own())
            .env_remove("PGPORT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        Session {
            input: psql.stdin.take().expect("piped"),
            output: BufReader::new(psql.stdout.take().expect("piped")),
            psql,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.own().join("data");
        let data = data.to_str().expect("text");
        self.run("pg_ctl", &["-D", data, "-w", "-m", "immediate", "stop"]);
    }
}

/// The number and the group of a user.
fn user(name: &str) -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let of_user = users.lines().find_map(|line| line.strip_prefix(&format!("{name}:")))?;
    let mut fields = of_user.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A client that takes one statement after the other.
struct Session {
    psql: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Has a statement carried out that has one row, which it returns.
    fn ask(&mut self, statement: &str) -> String {
        self.tell(statement);
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        line.trim().to_owned()
    }

    fn tell(&mut self, statement: &str) {
        writeln!(self.input, "{statement}").expect("told");
    }

    /// The process that serves it.
    fn server(&mut self) -> u64 {
        let answer = self.ask("select pg_backend_pid();");
        answer.parse().expect("a number")
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.psql.wait().expect("it ends").success());
    }
}

#[test]
fn statements_of_postgresql_are_requests_and_a_lock_has_its_holder() {
    if !is_root() || !has_fleet() {
        return;
    }
    let Some(server) = Server::new() else {
        return;
    };
    let (mut holder, mut waiter) = (server.session(), server.session());
    let (holds, serves) = (holder.server(), waiter.server());
    assert_eq!(holder.ask("create table t (n int); select 1;"), "1");
    let recording = FleetRecording::start(&["--all"]);
    for at in 0..STATEMENTS {
        if at % (STATEMENTS / LOCKED) != 7 {
            assert_eq!(waiter.ask("select count(*) from t;"), "0");
            continue;
        }
        assert_eq!(holder.ask("begin; lock table t; select 2;"), "2");
        waiter.tell("select count(*) from t;");
        thread::sleep(HELD);
        assert_eq!(holder.ask("commit; select 3;"), "3");
        let mut line = String::new();
        waiter.output.read_line(&mut line).expect("an answer");
    }
    let trace = recording.stop();
    let client = u64::from(holder.psql.id());
    holder.end();
    waiter.end();
    let socket = server.own().join(".s.PGSQL.5432");
    check(&trace.path(), socket.to_str().expect("text"), [client, holds, serves]);
}

/// Connections that are older than the trace; requests by the server's process, and what the slowest waited for.
fn check(trace: &Path, socket: &str, [client, holds, serves]: [u64; 3]) {
    let trace = trace.to_str().expect("text");
    let all = json(&["explain", "--json", "--rows", trace]);
    let rows = all["rows"]["requests"].as_array().expect("requests");
    let is_of = |row: &&Value, process: u64| {
        row["is_sent"] == false
            && row["local"] == socket
            && number(&row["asked"]["process"]) == process
            && row["answered_ns"].is_u64()
    };
    let count = |process| rows.iter().filter(|row| is_of(row, process)).count();
    assert_eq!(count(serves), STATEMENTS);
    // Three statements before the wait, and two to end it.
    assert_eq!(count(holds), 5 * LOCKED);
    // Whatever else runs on this machine is in the trace, too.
    let of_socket = |list: &Value, key: &str| {
        let found = list.as_array().expect("a list").iter().find(|one| one[key] == socket);
        found.unwrap_or_else(|| panic!("{socket} is not in {list}")).clone()
    };
    of_socket(&all["services"], "path");
    for format in ["--otlp", "--html", "--perfetto"] {
        let output = fleet(&["report", format, "-", trace]);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(socket), "{format} does not name {socket}");
    }
    // The session that has the lock waits for its client, who waits for us.
    let finding = &of_socket(&all["findings"], "address")["findings"][0];
    assert_eq!(number(&finding["who"]["process_id"]), client, "{finding}");
    let slowest = all["slowest"].as_array().expect("requests").iter();
    let of_server: Vec<&Value> = slowest.filter(|request| request["address"] == socket).collect();
    assert!(!of_server.is_empty(), "{}", all["slowest"]);
    for request in of_server.into_iter().take(LOCKED) {
        let rank = number(&request["number"]).to_string();
        let one = json(&["explain", "--json", "--request", &rank, trace]);
        let path = one["request"]["path"].as_array().expect("a path");
        let parts = path.iter().map(|part| number(&part["thread"]));
        assert!(parts.into_iter().any(|thread| thread == holds), "{one}");
    }
}
