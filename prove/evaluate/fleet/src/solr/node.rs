//! Solr, built from Maven's packages, and its nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, remove_folder, stop_if_interrupted};

use super::settings::VOCABULARY;
use crate::network::Host;
use crate::program::POLL_INTERVAL;
use crate::running::Running;

/// Port of each node on its host.
const PORT: u16 = 8983;
/// Number of documents in each shard.
const DOCUMENTS: u32 = 5_000;
/// Maximum time for a node to answer: it has to index, and others may have the processors.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// Line of a node that answers.
const READY: &str = "ready";

macro_rules! subject {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../subjects/fleet/solr/", $name)))
    };
}

/// Files that the nodes are built from.
const PROGRAM: [(&str, &str); 2] = [subject!("pom.xml"), subject!("Node.java")];
const CONFIGURATION: [(&str, &str); 1] = [subject!("solr.xml")];
const CORE_FILES: [(&str, &str); 2] = [subject!("solrconfig.xml"), subject!("schema.xml")];

#[derive(Debug)]
pub(crate) struct Solr {
    folder: PathBuf,
    /// Names and versions of the programs.
    pub(crate) version: String,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Running,
    pub(crate) host: Host,
    /// Folder of its files.
    pub(super) home: PathBuf,
    log: PathBuf,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'s> {
    /// Folder of its files.
    pub(super) home: &'s Path,
    /// Whether it has documents.
    pub(super) is_shard: bool,
    pub(super) shards: &'s str,
    /// Seed of its documents.
    pub(super) seed: u64,
    /// The only processor that it may run on.
    pub(super) processor: Option<usize>,
}

impl Solr {
    /// Fetches the jars, unless Maven has them already, and compiles the node.
    ///
    /// # Errors
    /// Maven or the compiler fails.
    pub(crate) fn make(harness: &Harness) -> Result<Self, EvaluateError> {
        let folder = harness.path("solr");
        fs::create_dir(&folder).map_err(EvaluateError::file("make", &folder))?;
        write(&folder, &PROGRAM)?;
        let mut command = Command::new("mvn");
        command.args(["--batch-mode", "--quiet", "dependency:copy-dependencies"]);
        harness.execute(command.current_dir(&folder), &[0])?;
        let mut command = Command::new("javac");
        command.args(["-cp", "lib/*", "Node.java"]);
        harness.execute(command.current_dir(&folder), &[0])?;
        let java = harness.execute(Command::new("java").arg("--version"), &[0])?;
        let java = java.stdout.lines().next().unwrap_or_default().to_owned();
        let jars = fs::read_dir(folder.join("lib"));
        let jars = jars.map_err(EvaluateError::file("look into", folder.join("lib")))?;
        let version = |name: &str| {
            let file = name.strip_prefix("solr-core-")?;
            file.strip_suffix(".jar").map(str::to_owned)
        };
        let mut names = jars.flatten().map(|jar| jar.file_name());
        let solr = names.find_map(|name| version(&name.to_string_lossy()));
        let solr = solr.ok_or_else(|| missing("solr-core"))?;
        Ok(Self { folder, version: format!("Solr {solr}, {java}") })
    }

    /// Starts a node on a host. It answers soon.
    pub(super) fn start(
        &self,
        harness: &Harness,
        host: Host,
        setup: Setup<'_>,
    ) -> Result<Node, EvaluateError> {
        remove_folder(setup.home)?;
        let core = setup.home.join("search");
        let settings = core.join("conf");
        fs::create_dir_all(&settings).map_err(EvaluateError::file("make", &settings))?;
        write(setup.home, &CONFIGURATION)?;
        write(&settings, &CORE_FILES)?;
        write(&core, &[("core.properties", "name=search\n")])?;
        let mut command = host.command();
        if let Some(processor) = setup.processor {
            command.args(["taskset", "--cpu-list", &processor.to_string()]);
        }
        // HTTP/1.1 between nodes: several requests at once on one connection are not told apart.
        command.args(["java", "-Xmx256m", "-Dsolr.http1=true"]);
        command.arg(format!("-Dluc.shards={}", setup.shards));
        command.args(["-cp", ".:lib/*", "Node"]);
        command.arg(host.address.to_string()).arg(PORT.to_string());
        command.arg(setup.home);
        let documents = if setup.is_shard { DOCUMENTS } else { 0 };
        let numbers = [u64::from(documents), VOCABULARY, setup.seed];
        command.args(numbers.map(|number| number.to_string()));
        command.current_dir(&self.folder);
        let log = harness.path(&format!("{}.log", host.name));
        Ok(Node { server: Running::start(command, &log)?, host, home: setup.home.to_owned(), log })
    }
}

impl Node {
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        (self.host.address, PORT).into()
    }

    /// Waits until it answers.
    pub(super) fn wait(&self) -> Result<(), EvaluateError> {
        let began = Instant::now();
        loop {
            let said = fs::read_to_string(&self.log);
            let said = said.map_err(EvaluateError::file("read", &self.log))?;
            if said.lines().any(|line| line == READY) {
                return Ok(());
            }
            stop_if_interrupted()?;
            if began.elapsed() > START_TIMEOUT || said.contains("Exception") {
                let last = said.lines().rev().take(20).collect::<Vec<_>>();
                return Err(EvaluateError::Command {
                    command: self.server.command.clone(),
                    how: "it does not answer".to_owned(),
                    said: last.into_iter().rev().collect::<Vec<_>>().join("\n"),
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns a node's address in Solr's format.
pub(super) fn shard_at(host: &Host) -> String {
    format!("{}:{PORT}/solr/search", host.address)
}

fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), EvaluateError> {
    files.iter().try_for_each(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(EvaluateError::file("write", &path))
    })
}
