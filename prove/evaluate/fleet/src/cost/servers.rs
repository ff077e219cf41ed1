//! The distribution's servers, each an instance that ends with this process.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{ANSWER_TIMEOUT, POLL_INTERVAL, USER, answers, bound, free_port, started};
use crate::solr::node::Solr;
use crate::solr::service::{Load, Service, Wanted};

/// Id of the user that runs PostgreSQL, which refuses to be root.
const USER_ID: u32 = 65_534;

/// Scale of pgbench's smallest table: at least the number of its clients.
const SCALE: &str = "10";

/// Number of values in Redis' list, of 100 bytes each.
pub(crate) const LIST: u32 = 300;

/// Number of clients of the search service.
pub(crate) const SEARCH_CLIENTS: u64 = 8;
/// Number of queries of each client before anything is measured.
pub(crate) const QUERIES_BEFORE: u64 = 500;
/// Maximum time for these queries.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Redis,
    Postgresql,
    Solr,
}

#[derive(Debug)]
struct Running {
    server: Server,
    child: Child,
    port: u16,
}

impl Running {
    /// Ends it at once. Its files are removed, too.
    fn end(&mut self) {
        let signal = match self.server {
            Server::Redis => Signal::TERM,
            // Without waiting for its clients.
            Server::Postgresql => Signal::INT,
            // It has processes of its own.
            Server::Solr => Signal::TERM,
        };
        let _ = kill_process(Pid::from_child(&self.child), signal);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Servers that the evaluation needs.
#[derive(Debug)]
pub(crate) struct Servers {
    running: Vec<Running>,
    search: Option<Service>,
    programs: PathBuf,
    /// Names and versions, for the page.
    pub(crate) versions: Vec<String>,
}

impl Servers {
    /// Starts the wanted servers, and waits until they answer.
    pub(crate) fn start(
        harness: &Harness,
        wanted: impl Iterator<Item = Server>,
    ) -> Result<Self, EvaluateError> {
        let mut servers = Self {
            running: Vec::new(),
            search: None,
            programs: PathBuf::new(),
            versions: Vec::new(),
        };
        for server in wanted {
            if !servers.processes(server).is_empty() {
                continue;
            }
            let port = free_port()?;
            let (child, package) = match server {
                Server::Solr => {
                    let solr = Solr::make(harness)?;
                    let service = Service::start(harness, &solr, Wanted::default())?;
                    // Java compiles what runs often.
                    service.ask(harness, search(Some(QUERIES_BEFORE), WARM_UP_TIMEOUT))?;
                    servers.search = Some(service);
                    servers.versions.push(solr.version);
                    continue;
                }
                Server::Redis => (redis(harness, port)?, "redis-server"),
                Server::Postgresql => {
                    servers.programs = newest_programs()?;
                    (postgresql(harness, &servers.programs, port)?, "postgresql")
                }
            };
            servers.running.push(Running { server, child, port });
            answers(port)?;
            servers.versions.push(format!("{package} {}", harness.package_version(package)?));
            match server {
                Server::Postgresql => servers.fill(harness)?,
                Server::Redis => push_list(harness, port)?,
                Server::Solr => {}
            }
        }
        Ok(servers)
    }

    fn find(&self, server: Server) -> Option<&Running> {
        self.running.iter().find(|known| known.server == server)
    }

    /// Port of the server; 0 if it does not run.
    pub(crate) fn port(&self, server: Server) -> u16 {
        self.find(server).map_or(0, |known| known.port)
    }

    /// First process of each of the server's nodes.
    pub(crate) fn processes(&self, server: Server) -> Vec<u32> {
        let of_search = self.search.as_ref().filter(|_| server == Server::Solr);
        let nodes = of_search.map(Service::processes).unwrap_or_default();
        let others = self.find(server).map(|known| known.child.id());
        nodes.into_iter().chain(others).collect()
    }

    /// Command line of the search service's clients.
    pub(crate) fn searching(&self, harness: &Harness, seconds: f64) -> Vec<String> {
        let Some(search_service) = &self.search else {
            return Vec::new();
        };
        let load = search(None, Duration::from_secs_f64(seconds));
        let command = search_service.clients(harness, load);
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Path of a program of PostgreSQL.
    pub(crate) fn of_postgresql(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    fn fill(&self, harness: &Harness) -> Result<(), EvaluateError> {
        let began = Instant::now();
        loop {
            let mut command = Command::new(self.of_postgresql("pgbench"));
            command.args(["-i", "-q", "-s", SCALE, "-h", "127.0.0.1", "-U", USER]);
            command.arg("-p").arg(self.port(Server::Postgresql).to_string());
            command.arg("postgres");
            // It listens before it lets clients in.
            match harness.execute(&mut command, &[0]) {
                Ok(_) => return Ok(()),
                Err(EvaluateError::Interrupted) => return Err(EvaluateError::Interrupted),
                Err(error) if began.elapsed() > ANSWER_TIMEOUT => return Err(error),
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

/// Makes a load with this number of queries of each client; `None`: as many as they can make in this time.
fn search(queries: Option<u64>, longest: Duration) -> Load {
    Load { clients: SEARCH_CLIENTS, queries, longest, think: Duration::ZERO, seed: 1 }
}

fn redis(harness: &Harness, port: u16) -> Result<Child, EvaluateError> {
    let mut command = bound("KILL", false);
    command.args(["redis-server", "--bind", "127.0.0.1", "--port"]);
    command.arg(port.to_string());
    command.args(["--save", "", "--appendonly", "no", "--dir"]);
    command.arg(harness.path(""));
    started(command, &harness.path("redis.log"))
}

/// Fills a list, one value after the other.
fn push_list(harness: &Harness, port: u16) -> Result<(), EvaluateError> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-q", "-c", "1", "-p"]);
    command.args([port.to_string(), "-n".to_owned(), LIST.to_string()]);
    command.args(["rpush", "list", &"x".repeat(100)]);
    harness.execute(&mut command, &[0])?;
    Ok(())
}

/// Starts PostgreSQL with data of its own that nothing synchronizes: the disk is not measured.
fn postgresql(harness: &Harness, programs: &Path, port: u16) -> Result<Child, EvaluateError> {
    let folder = harness.path("postgresql");
    fs::create_dir(&folder).map_err(EvaluateError::file("make", &folder))?;
    let id = Some(USER_ID);
    chown(&folder, id, id).map_err(EvaluateError::file("hand over", &folder))?;
    let mut command = bound("KILL", true);
    command.arg(programs.join("initdb"));
    command.args(["--no-sync", "--auth=trust", "-D"]).arg(&folder);
    harness.execute(&mut command, &[0])?;
    let mut command = bound("INT", true);
    command.arg(programs.join("postgres"));
    command.arg("-D").arg(&folder).arg("-k").arg(&folder);
    command.arg("-p").arg(port.to_string());
    for setting in [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "full_page_writes=off",
        "autovacuum=off",
        "checkpoint_timeout=1h",
        "max_wal_size=8GB",
    ] {
        command.arg("-c").arg(setting);
    }
    started(command, &harness.path("postgresql.log"))
}

/// Finds the programs of the newest PostgreSQL.
fn newest_programs() -> Result<PathBuf, EvaluateError> {
    let all = Path::new("/usr/lib/postgresql");
    let entries = fs::read_dir(all).map_err(EvaluateError::file("look into", all))?;
    let versions = entries.flatten().map(|entry| entry.path());
    versions
        .map(|path| path.join("bin"))
        .filter(|path| path.join("postgres").exists())
        .max()
        .ok_or_else(|| missing("PostgreSQL"))
}
